"""Trees of tensors that a state may be, and the Python expressions that make and read them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]

ROW, WIDE, COUNT, ROWS = "row", "wide", "count", "rows"
EXAMPLES = {
    ROW: "torch.randn(1, 2)",
    WIDE: "torch.randn(1, 3)",
    COUNT: "torch.randint(9, (1, 2))",
    ROWS: "torch.randn(1, 3, 2)",
}
"""Form of a tensor -> the expression that draws the example's. Rows are what grows; a state begins without any."""
_FORMS = (ROW, ROW, ROW, ROW, WIDE, COUNT, ROWS)
_KEYS = "abc"
_SIZES = {"tuple": (1, 2, 3), "list": (1, 2, 3), "dict": (1, 2, 3), "Named": (2,), "Fields": (2,), "Attributes": (2,)}
"""Kind of a node -> how many children it may have."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A tensor of one form, and its number among all of the tree."""

    form: str
    number: int


@dataclass(frozen=True, slots=True)
class Node:
    """A container or object."""

    kind: str
    children: tuple[Tree, ...]

    @property
    def keys(self) -> Sequence[str | int]:
        """The key of each child in a path."""
        return range(len(self.children)) if self.kind in ("tuple", "list", "Named") else _KEYS[: len(self.children)]


Tree: TypeAlias = Leaf | Node


def draw_tree(rng: random.Random, depth: int) -> Tree:
    """Return a tree of at most `depth` levels of containers."""
    numbers = count()

    def draw(depth: int) -> Tree:
        if depth == 0 or rng.random() < 0.3:
            return Leaf(rng.choice(_FORMS), next(numbers))
        kind = rng.choice(list(_SIZES))
        return Node(kind, tuple(draw(depth - 1) for _ in range(rng.choice(_SIZES[kind]))))

    return draw(depth)


def leaves(tree: Tree, path: Path = ()) -> Iterator[tuple[Path, Leaf]]:
    """Yield the tensors with their paths, in order of their numbers."""
    if isinstance(tree, Leaf):
        yield path, tree
        return
    for key, child in zip(tree.keys, tree.children, strict=True):
        yield from leaves(child, (*path, key))


def nodes(tree: Tree, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    """Yield the containers with their paths, the outer ones first."""
    if isinstance(tree, Node):
        yield path, tree
        for key, child in zip(tree.keys, tree.children, strict=True):
            yield from nodes(child, (*path, key))


def forms(tree: Tree) -> object:
    """Return what two trees share if one may replace the other."""
    return tree.form if isinstance(tree, Leaf) else (tree.kind, *map(forms, tree.children))


def read(tree: Tree, path: Path, root: str) -> str:
    """Return the expression of the part at a path."""
    for key in path:
        assert isinstance(tree, Node)
        root = f"{root}.{key}" if tree.kind in ("Fields", "Attributes") else f"{root}[{key!r}]"
        tree = tree.children[list(tree.keys).index(key)]
    return root


def build(tree: Tree, part: Callable[[Path, Tree], str | None], *, is_reversed: bool = False, path: Path = ()) -> str:
    """Return the expression that makes a tree.

    `part` returns the expression of a part, or None for a container that is to be made of its children.
    """
    made = part(path, tree)
    if made is not None:
        return made
    assert isinstance(tree, Node)
    pairs = zip(tree.keys, tree.children, strict=True)
    children = [(key, build(child, part, is_reversed=is_reversed, path=(*path, key))) for key, child in pairs]
    texts = [text for _, text in children]
    if tree.kind in ("tuple", "Named"):
        return f"{tree.kind if tree.kind == 'Named' else ''}({', '.join(texts)}{',' if len(texts) == 1 else ''})"
    if tree.kind == "list":
        return f"[{', '.join(texts)}]"
    ordered = children[::-1] if is_reversed else children
    if tree.kind == "dict":
        return "{" + ", ".join(f"{key!r}: {text}" for key, text in ordered) + "}"
    return f"{tree.kind}({', '.join(f'{key}={text}' for key, text in ordered)})"
