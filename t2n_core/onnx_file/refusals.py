"""The reason why tract refuses an ONNX model, from its message: the node, the kind, and what helps."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

REFUSAL: Final = "refusal"
"""Fact of an outcome: the kind of the reason why the engine refuses an ONNX model."""


class Kind(StrEnum):
    """The kinds of reasons, as records have them."""

    OPERATOR = "operator"
    FUNCTION = "function"
    SEQUENCE = "sequence"
    CONSTANT = "constant"
    OPTION = "option"
    DATA_TYPE = "data type"
    CONTROL_FLOW = "control flow"
    SHAPE_ARITHMETIC = "shape arithmetic"
    DIMENSION_NAME = "dimension name"
    SHAPE = "shape"
    OPTIONAL_INPUT = "optional input"
    UNTYPED_INPUT = "untyped input"
    OPTIMISER = "optimiser"
    SHAPE_OUTPUT = "shape output"


_HINTS: Final = {
    Kind.OPERATOR: "this release does not implement the operator; `--repair` replaces functions of ONNX by their nodes,"
    " another release may have it, and an export by `t2n export` avoids it",
    Kind.FUNCTION: "the operator is a function of the model, and this release reads none:"
    " `--repair` replaces it by its nodes",
    Kind.SEQUENCE: "tract has no sequences of tensors, strings or optional values: export the model without them, as by"
    " `t2n export`",
    Kind.CONSTANT: "tract needs this input as a constant: store it as an initializer, or fold constants by `--repair`",
    Kind.OPTION: "this release does not implement this form of the operator: try another one, or avoid the option",
    Kind.DATA_TYPE: "this release does not combine these data types: cast the inputs of the node to one type",
    Kind.CONTROL_FLOW: "tract analyses both branches of an If, and bodies of Loop and Scan, at all sizes:"
    " fix the condition when the model is exported, or try `--repair`",
    Kind.SHAPE_ARITHMETIC: "this release computes sizes in a type of its own, and cannot do so at this node:"
    " try `--repair` or a newer release, or fix the sizes when the model is exported",
    Kind.DIMENSION_NAME: "this release cannot parse the name of a dimension: `--repair` renames or removes it",
    Kind.SHAPE: "a shape that the file declares contradicts the one that tract infers:"
    " `--repair` removes the shapes of intermediate values",
    Kind.OPTIONAL_INPUT: "this release knows the operator with another number of inputs: try another opset or release",
    Kind.UNTYPED_INPUT: "tract needs the type of each input of a graph: infer types, as `--repair` does",
    Kind.OPTIMISER: "the file loads, and a rewrite of the optimiser fails: this is a bug of the engine;"
    " try another release, or an export by `t2n export`",
    Kind.SHAPE_OUTPUT: "the output is a size in tract's own type, which its C interface cannot return:"
    " cast the output to int64 in the model",
}

_MESSAGES: Final[Mapping[Kind, Sequence[str]]] = {
    Kind.OPERATOR: [r"Unimplemented\(", "UnimplementedOp", "can not be made a Typed", "can not be typed"],
    Kind.SHAPE_OUTPUT: ["Unsupported DatumType in the public API TDim"],
    Kind.DIMENSION_NAME: [r"pars(e|ing) (error|dim|tdim)", "failed to parse", "invalid symbol", "dead .* SymbolScope"],
    Kind.CONSTANT: [
        "as a constant|to be (a )?constant|must be (a )?const|(is|are) not const|only if .+ is a const",
        "expects? (a )?constant|to be (a )?const|non constant|must be a known scalar|input is variable",
        "value out of Constant",
        "Neither (sizes|shape) no[rt] scales? makes sense|without a determined fact",
    ],
    Kind.CONTROL_FLOW: [r'node #\d+ "[^"]*" (If|Loop|Scan)\b'],
    Kind.SHAPE_ARITHMETIC: [r"\bTDim\b|Undetermined symbol|Can't divide|Reshape volume mismatch"],
    Kind.OPTIMISER: ["Trying to substitute", "Output mismatch after rewiring", "running pass", "After rule"],
    Kind.DATA_TYPE: [
        r"No super type|Impossible to unify [FIUB]\w+ with [FIUB]\w+|must be floating point|does not support",
        "datum type error|Unsupported DatumType|takes no input of dtype|incompatible types?",
    ],
    Kind.UNTYPED_INPUT: ["has no (value )?type"],
    Kind.OPTIONAL_INPUT: ["wrong n+umber of (in|out)puts", "wrong (in|out)put number"],
    Kind.OPTION: [
        r"is not (yet )?(supported|implemented)|unsupported|^\w*mode: |unexpected value|expected attribute",
        "unimplemented",
    ],
    Kind.SHAPE: ["unify|shape|rank|broadcast|dimension"],
}
"""Parts of messages; the first kind that fits counts."""
_NO_TENSORS: Final = re.compile("Sequence|^Optional|^String|^TfIdfVectorizer$|^RegexFullMatch$")
"""The operators whose inputs or outputs are no tensors of numbers."""
_PATTERNS: Final = {kind: re.compile("|".join(parts), re.IGNORECASE) for kind, parts in _MESSAGES.items()}
_NODE: Final = re.compile(r'#\d+ "([^"]*)" (?:Unimplemented\()?(\w+)|Building node (\S*) \((\w+)\)')
_UNIMPLEMENTED: Final = re.compile(r'UnimplementedOp \{.*?name: "(\w+)"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why the engine refuses a model; node and operator are empty where the message names none."""

    kind: Kind
    node: str
    op: str

    @property
    def hint(self) -> str:
        """Return what helps, with the node."""
        where = f"node `{self.node}` ({self.op})" if self.node else self.op
        return f"{where}: {_HINTS[self.kind]}" if where else _HINTS[self.kind]


def refusal_of(message: str, functions: Collection[str] = ()) -> Refusal | None:
    """Return the reason that a message of the engine gives, deepest cause first; None for one of no known kind.

    `functions` are the names of the model's functions. The innermost of the nodes counts: an outer one is the `If` or
    `Loop` that contains it.
    """
    kind = next((kind for kind, pattern in _PATTERNS.items() if pattern.search(message)), None)
    if kind is None:
        return None
    node = _NODE.search(message)
    name, op = ("", "") if node is None else (node[1] or node[3] or "", node[2] or node[4])
    if unimplemented := _UNIMPLEMENTED.search(message):
        op = unimplemented[1]
    if kind is Kind.OPERATOR:
        kind = Kind.FUNCTION if op in functions else Kind.SEQUENCE if _NO_TENSORS.search(op) else kind
    return Refusal(kind, name, op)
