"""A random model with state as Python source, and the loop that a program runs over it."""

from __future__ import annotations

import linecache
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from conformance.lab.fuzz.states.trees import (
    COUNT,
    EXAMPLES,
    ROW,
    ROWS,
    WIDE,
    Leaf,
    Node,
    Path,
    Tree,
    build,
    draw_tree,
    forms,
    leaves,
    nodes,
    read,
)

_HEAD = """import torch
from torch import nn

from conformance.lab.fuzz.states.objects import Attributes, Fields, Named

"""
_DEEPEST = 3
_SHARE_OF_MOVED_NODES = 0.25
_SHARE_IN_PLACE = 0.15
_READ = {ROW: "{0}", WIDE: "{0}.sum(-1, keepdim=True)", COUNT: "{0}.to(x.dtype)", ROWS: "{0}.sum(1)"}
"""Form of a tensor -> what a model adds to its output of it."""
_CHANGES = {
    ROW: ("{0} + x * {1}", "0.5 * {0} - total", "x", "x.clone()", "{0} * 1"),
    WIDE: ("{0} + x.sum(-1, keepdim=True) * {1}", "0.5 * {0} - total.sum(-1, keepdim=True)"),
    COUNT: ("{0} + 1", "{0} * 2 + (x > 0)"),
    ROWS: ("torch.cat([{0}, x[:, None] * {1}], 1)",),
}
"""Form of a tensor -> the expressions of a next value that is another tensor."""
_IN_PLACE = {ROW: "{0}.mul_(0.5).add_(x)", WIDE: "{0}.add_({1})", COUNT: "{0}.add_(1)"}
_ENDS: dict[str, tuple[str, Any, str]] = {
    "second": ("return y, new", {"state": 1}, "[result[0]], result[1]"),
    "first": ("return new, y", {"state": 0}, "[result[1]], result[0]"),
    "last": ("return y, total * 2, new", {"state": -1}, "[result[0], result[1]], result[2]"),
    "field": ('return {"y": y, "next": new}', {"state": "next"}, '[result["y"]], result["next"]'),
    "named": ('return {"state": new, "y": y}', "state", '[result["y"]], result["state"]'),
    "changed": ("return y", "state", "[result], state"),
}
"""How a model returns its next state -> its last statement, the option `state` of the export, and what a program reads
out of a result: its outputs and the next state."""
_CHANGEABLE = ("list", "dict", "Fields", "Attributes")


class Given(NamedTuple):
    """What a program gets of a source."""

    model: nn.Module
    tree: Any
    """Function from a list of tensors to a state."""
    after: Any
    """Function from a result and the state of the call to the outputs and the next state."""


@dataclass(frozen=True)
class StateProgram:
    """A model with one argument of state."""

    seed: int
    tree: Tree
    state: Any
    """The option `state` of the export."""
    source: str

    @property
    def names(self) -> list[str]:
        """The documented name of each tensor's input: words, then indices."""
        return ["_".join(["in_state", *map(str, sorted(path, key=_is_index))]) for path, _ in leaves(self.tree)]

    @property
    def operators(self) -> int:
        """How many tensors the state has."""
        return len(self.names)

    def load(self) -> Given:
        """Run the source."""
        filename = f"states_{self.seed}.py"
        linecache.cache[filename] = (len(self.source), None, self.source.splitlines(keepends=True), filename)
        namespace: dict[str, Any] = {}
        exec(compile(self.source, filename, "exec"), namespace)
        return Given(namespace["Model"]().eval(), namespace["tree"], namespace["after"])

    def example(self) -> list[Tensor]:
        """Draw the tensors that the model is exported with."""
        torch.manual_seed(self.seed)
        return [eval(EXAMPLES[leaf.form], {"torch": torch}) for _, leaf in leaves(self.tree)]

    def start(self) -> list[Tensor]:
        """Draw the tensors that a loop begins with: other ones than the example's, and no rows where they grow."""
        torch.manual_seed(self.seed + 1)
        drawn = [eval(EXAMPLES[leaf.form], {"torch": torch}) for _, leaf in leaves(self.tree)]
        grows = [leaf.form == ROWS and f"torch.cat([s{leaf.number}," in self.source for _, leaf in leaves(self.tree)]
        return [tensor[:, :0] if grow else tensor for tensor, grow in zip(drawn, grows, strict=True)]


def _is_index(key: str | int) -> bool:
    return isinstance(key, int)


def generate_state(seed: int) -> StateProgram:
    """Return the model of a seed: the same one on every machine and in every run."""
    rng = random.Random(f"state {seed}")
    tree = draw_tree(rng, rng.choice(range(_DEEPEST + 1)))
    can_change = isinstance(tree, Node) and tree.kind in _CHANGEABLE
    end = rng.choice([name for name in _ENDS if can_change or name != "changed"])
    last, option, after = _ENDS[end]
    body = [f"s{leaf.number} = {read(tree, path, 'state')}" for path, leaf in leaves(tree)]
    terms = [f"{0.25 * (leaf.number + 2)} * {_READ[leaf.form].format(f's{leaf.number}')}" for _, leaf in leaves(tree)]
    body.append(f"total = {' + '.join(['x', *terms])}")
    in_place = rng.random() < _SHARE_IN_PLACE
    body += _next_values(tree, rng, in_place=in_place)
    body.append(_following(tree, rng, changes=end == "changed", moves=not in_place))
    news = [f"n{leaf.number}" for _, leaf in leaves(tree)]
    body.append(f"y = {rng.choice(['total', 'total', rng.choice(news), 'total - ' + rng.choice(['x', '1'])])}")
    lines = [
        _HEAD,
        "def tree(t):",
        f"    return {build(tree, lambda _, part: f't[{part.number}]' if isinstance(part, Leaf) else None)}",
        "\n",
        "class Model(nn.Module):",
        "    def forward(self, x, state):",
        *(f"        {line}" for statement in body for line in statement.splitlines()),
        f"        {last}",
        "\n",
        "def after(result, state):",
        f"    return {after}",
        "",
    ]
    return StateProgram(seed, tree, option, "\n".join(lines))


def _next_values(tree: Tree, rng: random.Random, *, in_place: bool) -> list[str]:
    """Return the statements that compute the next value of each tensor: `n0 = …`.

    Where tensors are changed in place, none is at two places of the next state: the next call would change both.
    """
    lines = []
    every = [leaf for _, leaf in leaves(tree)]
    for leaf in every:
        old, same = f"s{leaf.number}", [candidate for candidate in every if candidate.form == leaf.form]
        made = rng.choice(_CHANGES[leaf.form]).format(old, leaf.number + 1)
        if leaf.form != ROWS and rng.random() < 0.6:
            kinds: dict[str, Sequence[str]] = {
                "kept": [old],
                "moved": [f"s{candidate.number}" for candidate in same],
                "copied": [f"s{candidate.number}.clone()" for candidate in same],
                "shared": [f"n{candidate.number}" for candidate in same if candidate.number < leaf.number],
            }
            if in_place:
                kinds = {"in place": [_IN_PLACE[leaf.form].format(old, leaf.number + 1)], "copied": kinds["copied"]}
            made = rng.choice(rng.choice([expressions for expressions in kinds.values() if expressions]))
        elif rng.random() < 0.1 and not in_place:
            made = old
        lines.append(f"n{leaf.number} = {made}")
    return lines


def _following(tree: Tree, rng: random.Random, *, changes: bool, moves: bool) -> str:
    """Return the statements that make the next state: as `new`, or by changing the state object.

    With `moves`, whole parts of the old state may be parts of the new one, in the same place or another.
    """
    inner = [(path, node) for path, node in nodes(tree) if path and moves]
    moved = {path: source for path, node in inner if (source := _moved_node(tree, node, rng))}

    def part(path: Path, tree: Tree) -> str | None:
        return f"n{tree.number}" if isinstance(tree, Leaf) else moved.get(path)

    is_reversed = rng.random() < 0.5
    if not changes:
        return f"new = {build(tree, part, is_reversed=is_reversed)}"
    assert isinstance(tree, Node)
    pairs = list(zip(tree.keys, tree.children, strict=True))
    texts = [build(child, part, is_reversed=is_reversed, path=(key,)) for key, child in pairs]
    places = [read(tree, (key,), "state") for key, _ in pairs]
    return f"{', '.join(places)} = {', '.join(texts)}"


def _moved_node(tree: Tree, node: Node, rng: random.Random) -> str:
    """Return the expression of a part of the old state for the place of a node; mostly, and for rows, an empty text."""
    if any(leaf.form == ROWS for _, leaf in leaves(node)) or rng.random() > _SHARE_OF_MOVED_NODES:
        return ""
    alike = [other for other, candidate in nodes(tree) if forms(candidate) == forms(node)]
    return read(tree, rng.choice(alike), "state")
