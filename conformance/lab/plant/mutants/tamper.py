"""Ways to tamper with an archive: each changes one weight file or one statement."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_HEADER = 128
"""Bytes before the elements of a `.dat` file."""
_STATEMENT = re.compile(r"^  (?P<left>[\w, ()\[\]]+?) = (?P<operator>\w+)(?:<\w+>)?\((?P<arguments>.*)\);$")
_GRAPH = re.compile(r"^graph network\((?P<inputs>.*)\) -> \((?P<outputs>.*)\)$", re.MULTILINE)
_RESET = ", reset_every_turn = 1"
_OTHER_OPERATOR = {
    "add": "sub", "sub": "add", "max": "min", "min": "max", "tanh": "sigmoid", "sigmoid": "tanh", "exp": "abs",
    "max_reduce": "min_reduce", "min_reduce": "max_reduce", "sum_reduce": "mean_reduce", "sin": "cos", "cos": "sin",
    "lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "and": "or", "or": "and", "floor": "ceil", "ceil": "floor",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of an archive: the new text of its graph, and the new bytes of its weights."""

    kind: str
    where: str
    text: str | None = None
    weights: Mapping[str, bytes] | None = None

    def write(self, folder: Path) -> None:
        """Change the unpacked archive in `folder`."""
        for name, data in self._files().items():
            (folder / name).write_bytes(data)

    @contextmanager
    def planted(self, folder: Path) -> Iterator[None]:
        """Give a context in which the unpacked archive in `folder` is changed."""
        before = {name: (folder / name).read_bytes() for name in self._files()}
        self.write(folder)
        try:
            yield
        finally:
            for name, data in before.items():
                (folder / name).write_bytes(data)

    def _files(self) -> dict[str, bytes]:
        text = {} if self.text is None else {"graph.nnef": self.text.encode()}
        return {**text, **(self.weights or {})}


def mutants_of(folder: Path, rng: random.Random) -> Iterator[Mutant]:
    """Yield a mutant of each kind that fits the unpacked archive in `folder`, chosen by `rng`."""
    text = (folder / "graph.nnef").read_text(encoding="utf-8")
    weights = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.dat"))
    for kind, change in _WEIGHTS.items():
        tried = (_changed_weight(kind, folder, name, change, rng) for name in rng.sample(weights, len(weights)))
        yield from islice((mutant for mutant in tried if mutant is not None), 1)
    for kind, statements in _STATEMENTS.items():
        mutants = [Mutant(kind, where, text=new) for where, new in statements(text)]
        if mutants:
            yield rng.choice(mutants)


def _changed_weight(
    kind: str,
    folder: Path,
    name: str,
    change: Callable[[NDArray[np.float32], np.random.Generator], NDArray[np.float32] | None],
    rng: random.Random,
) -> Mutant | None:
    """Return the mutant with another weight; None for a weight that is not float32 or would not change."""
    data = (folder / name).read_bytes()
    rank, bits, item = (int.from_bytes(data[at : at + 4], "little") for at in (8, 44, 48))
    if (bits, item) != (32, 0) or len(data) <= _HEADER:
        return None
    shape = [int.from_bytes(data[12 + 4 * axis : 16 + 4 * axis], "little") for axis in range(rank)]
    array = np.frombuffer(data[_HEADER:], np.float32).reshape(shape)
    if kind == EXTRA_BYTE:
        return Mutant(kind, name, weights={name: data + b"\0"})
    changed = change(array, np.random.default_rng(rng.randrange(1 << 30)))
    if changed is None or np.array_equal(changed, array, equal_nan=True):
        return None
    return Mutant(kind, name, weights={name: data[:_HEADER] + np.ascontiguousarray(changed, np.float32).tobytes()})


def _other_weight(array: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    return (array.mean() + (array.std() or 1.0) * rng.standard_normal(array.shape)).astype(np.float32)


def _permuted(array: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32] | None:
    if not array.ndim:
        return None
    axis = int(np.argmax(array.shape))
    return np.take(array, rng.permutation(array.shape[axis]), axis)


def _transposed(array: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32] | None:
    equal = [(i, j) for i in range(array.ndim) for j in range(i) if array.shape[i] == array.shape[j] > 1]
    return np.swapaxes(array, *equal[0]) if equal else None


def _one_number(array: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    changed = array.copy().reshape(-1)
    index = int(rng.integers(changed.size))
    changed[index] += np.float32(array.std() or 1.0)
    return changed.reshape(array.shape)


def _swapped_axes(text: str) -> Iterator[tuple[str, str]]:
    for line, match in _statements(text):
        axes = re.search(r"axes = \[([\d, ]+)\]", line)
        if match["operator"] != "transpose" or axes is None:
            continue
        order = axes[1].split(", ")
        for index in range(len(order) - 1):
            other = order.copy()
            other[index], other[index + 1] = order[index + 1], order[index]
            yield match["left"], text.replace(line, line.replace(axes[0], f"axes = [{', '.join(other)}]"))


def _dropped_output(text: str) -> Iterator[tuple[str, str]]:
    for outputs, graph in _outputs(text):
        for name in outputs if len(outputs) > 1 else ():
            rest = ", ".join(output for output in outputs if output != name)
            yield name, text.replace(graph, graph[: graph.rindex("(")] + f"({rest})")


def _swapped_outputs(text: str) -> Iterator[tuple[str, str]]:
    for outputs, graph in _outputs(text):
        for first, second in pairwise(outputs):
            names = {first: second, second: first}
            swapped = ", ".join(names.get(output, output) for output in outputs)
            yield first, text.replace(graph, graph[: graph.rindex("(")] + f"({swapped})")


def _with_last(text: str, graph: str, name: str, lines: Iterable[str]) -> str:
    """Return the text with lines at its end that compute the output `name` from what it was, `NAME_own`."""
    start = text.index(graph) + len(graph)
    body = re.sub(rf'(?<![\w."]){re.escape(name)}(?![\w."])', f"{name}_own", text[start:])
    end = body.rindex("}")
    return text[:start] + body[:end] + "".join(f"  {line}\n" for line in lines) + body[end:]


def _constant_output(text: str) -> Iterator[tuple[str, str]]:
    for outputs, graph in _outputs(text):
        for name in outputs:
            yield name, _with_last(text, graph, name, [f"{name} = mul({name}_own, 0.0);"])


def _held_condition(word: str) -> Callable[[str], Iterator[tuple[str, str]]]:
    def change(text: str) -> Iterator[tuple[str, str]]:
        for line, match in _statements(text):
            condition, _, rest = match["arguments"].partition(", ")
            if match["operator"] != "select" or not re.fullmatch(r"\w+", condition):
                continue
            name = f"{match['left']}_held"
            lines = [
                f"  {name}_not = not({condition});",
                f"  {name} = {word}({condition}, {name}_not);",
                line.replace(f"select({condition}, {rest}", f"select({name}, {rest}"),
            ]
            yield match["left"], text.replace(line, "\n".join(lines))

    return change


def _other_operator(text: str) -> Iterator[tuple[str, str]]:
    for line, match in _statements(text):
        other = _OTHER_OPERATOR.get(match["operator"])
        if other is not None:
            yield match["left"], text.replace(line, line.replace(f"= {match['operator']}(", f"= {other}(", 1))


def _kept_state(text: str) -> Iterator[tuple[str, str]]:
    for line, match in _statements(text):
        if _RESET in line:
            yield match["left"], text.replace(line, line.replace(_RESET, ""))


def _other_number(text: str) -> Iterator[tuple[str, str]]:
    for line, match in _statements(text):
        for number in re.finditer(r"(?<![\w.])\d+\.\d+(?:e[-+]?\d+)?(?![\w.])", line):
            changed = f"{line[: number.start()]}{float(number[0]) * 1.5 + 0.25}{line[number.end() :]}"
            yield match["left"], text.replace(line, changed)


def leaks(text: str, share: float) -> dict[str, list[tuple[str, str]]]:
    """Return ways to let rows see each other: outputs to which a share of other rows is added, by what is added."""
    ways: dict[str, list[tuple[str, str]]] = {}
    for outputs, graph in _outputs(text):
        for name, (kind, (operator, arguments)) in product(outputs, _LEAKS.items()):
            lines = [
                f"{name}_rows = {operator}({name}_own, {arguments});",
                f"{name}_share = mul({name}_rows, {share:.9f});",
                f"{name} = add({name}_own, {name}_share);",
            ]
            ways.setdefault(kind, []).append((name, _with_last(text, graph, name, lines)))
    return ways


def _leak_of(kind: str, share: float) -> Callable[[str], Iterator[tuple[str, str]]]:
    return lambda text: iter(leaks(text, share).get(kind, ()))


def _statements(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    for line in text[text.index("\ngraph ") :].splitlines():
        match = _STATEMENT.match(line)
        if match is not None:
            yield line, match


def _outputs(text: str) -> Iterator[tuple[list[str], str]]:
    match = _GRAPH.search(text)
    if match is not None:
        yield match["outputs"].split(", "), match[0]


_LEAKS = {
    "mean": ("mean_reduce", "axes = [0]"),
    "first": ("slice", "axes = [0], begin = [0], end = [1]"),
    "largest": ("max_reduce", "axes = [0]"),
}
EXTRA_BYTE = "an extra byte"
_WEIGHTS: Mapping[str, Callable[[NDArray[np.float32], np.random.Generator], NDArray[np.float32] | None]] = {
    "a weight of another model": _other_weight,
    "permuted features": _permuted,
    "a transposed weight": _transposed,
    "one number of a weight": _one_number,
    EXTRA_BYTE: lambda array, rng: None,
}
_STATEMENTS: Mapping[str, Callable[[str], Iterator[tuple[str, str]]]] = {
    "swapped axes": _swapped_axes,
    "a dropped output": _dropped_output,
    "swapped outputs": _swapped_outputs,
    "a constant output": _constant_output,
    "an ignored mask": _held_condition("or"),
    "a frozen branch": _held_condition("and"),
    "another operator": _other_operator,
    "another number": _other_number,
    "a state that is kept": _kept_state,
    "the mean of all rows": _leak_of("mean", -1.0),
    "the first row in all": _leak_of("first", 1.0),
}
KINDS = (*_WEIGHTS, *_STATEMENTS)
