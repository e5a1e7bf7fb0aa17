"""Parser of a `graph.nnef`: its header, its fragments and its graph, as flat assignments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from t2n_core.errors import InputError, SpecError
from t2n_core.nnef.reading.document import Assignment, Document, FragmentText
from t2n_core.nnef.reading.flat import flat_assignments, with_single_names
from t2n_core.nnef.reading.grammar import GrammarReader, Token
from t2n_core.nnef.reading.identifiers import with_plain_identifiers
from t2n_core.nnef.signatures import fragment_signature

_LONGEST: Final = 64 << 20
"""Most characters of a text that is read."""


def read_text(text: str) -> Document:
    """Return the content of a `graph.nnef`.

    A call inside a call becomes a separate assignment, and so does each operator of `y = a + b * 2`. Operators in
    arguments stay expressions, since sizes are written with them. Quoted identifiers, `i"y.out"`, become plain ones,
    `y_out`. Raises InputError, with line and column, for text that is not NNEF, and for comprehensions, branches and
    ranges of items in the graph.
    """
    if len(text) > _LONGEST:
        raise InputError(f"the text has {len(text)} characters, and at most {_LONGEST} are read")
    try:
        return _read_document(with_plain_identifiers(text))
    except RecursionError:
        raise InputError("the graph is nested too deeply") from None


def _read_document(text: str) -> Document:
    reader = GrammarReader(text)
    extensions: list[str] = []
    fragments: dict[str, FragmentText] = {}
    while not reader.at("graph"):
        if reader.at("version"):
            reader.skip_to(";")
        elif reader.at("extension"):
            start = reader.peek().start
            extensions.append(" ".join(text[start : reader.skip_to(";") - 1].split()[1:]))
        elif reader.at("fragment"):
            fragment = _read_fragment(reader, text)
            if fragment is not None:
                fragments[fragment.name] = fragment
        else:
            raise reader.wrong("`version`, `extension`, `fragment` or `graph` is expected")
    reader.take("graph")
    name = reader.name()
    inputs = reader.names_in_parentheses()
    reader.take("->")
    outputs = reader.names_in_parentheses()
    if not outputs:
        raise InputError(f"the graph {name} has no output")
    assignments = tuple(flat_assignments(reader, inputs))
    results = [result for assignment in assignments for result in assignment.results]
    if len(set(results)) < len(results):
        assignments = with_single_names(assignments, inputs)
    return Document(name, inputs, outputs, assignments, tuple(extensions), fragments)


def _read_fragment(reader: GrammarReader, text: str) -> FragmentText | None:
    """Return a fragment; None for one without a body, which declares an operator."""
    start = reader.take("fragment").start
    name = reader.name()
    reader.skip_before("{", ";")
    if reader.at(";"):
        reader.take(";")
        return None
    opening = reader.skip_to("{") - 1
    end = reader.skip_to("}")
    fragment_text = text[start:end]
    try:
        signature = fragment_signature(name, fragment_text)
    except SpecError as wrong:
        raise InputError(str(wrong)) from wrong
    block = GrammarReader(text[opening:end])
    uses = frozenset(_operators_in(block.tokens))
    tensors = [parameter.name for parameter in signature.parameters if parameter.is_tensor]
    body: tuple[Assignment, ...] | None
    try:
        body = tuple(flat_assignments(block, tensors))
    except InputError:
        body = None
    parameters, results = ([p.name for p in group] for group in (signature.parameters, signature.results))
    return FragmentText(name, fragment_text, tuple(parameters), tuple(results), body, uses)


def _operators_in(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the names that are called, `f(` or `f<scalar>(`, and the names of scan bodies, `body = "f"`."""
    texts = [token.text for token in tokens]
    for index, token in enumerate(tokens):
        following = texts[index + 1 : index + 5]
        if token.kind == "name" and (
            following[:1] == ["("] or (following[:1] == ["<"] and following[2:] == [">", "("])
        ):
            yield token.text
        elif token.text == "body" and following[:1] == ["="] and tokens[index + 2].kind == "string":
            yield following[1][1:-1]
