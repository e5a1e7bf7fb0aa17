"""Several cases of an operator as one graph, so that the engine loads one archive for all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from t2n_core.dialect.cases import Case
from t2n_core.nnef.signatures import Signature

_GRAPH: Final = re.compile(r"(.*)graph case\(([^)]*)\) -> \(([^)]*)\)\n\{\n(.*)\}\n", re.DOTALL)


def write_cases(cases: Sequence[Case], signature: Signature, folder: Path) -> Path:
    """Write cases as an archive that is a folder, with the inputs and the results of each in turn; return it."""
    folder.mkdir(parents=True)
    inputs: list[str] = []
    outputs: list[str] = []
    lines: list[str] = []
    head = ""
    for number, case in enumerate(cases):
        alone = case.write(folder / "alone", signature)
        match = _GRAPH.fullmatch((alone / "graph.nnef").read_text("utf-8"))
        assert match is not None
        head, parameters, results, body = match.groups()
        names = re.compile(rf"\b({'|'.join(_names(case, signature))})\b")
        inputs += _renamed(names, number, parameters)
        outputs += _renamed(names, number, results)
        lines.append(names.sub(rf"c{number}_\1", body))
        for file in alone.iterdir():
            if file.suffix == ".dat":
                file.rename(folder / f"c{number}_{file.name}")
            else:
                file.unlink()
        alone.rmdir()
    text = f"{head}graph cases({', '.join(inputs)}) -> ({', '.join(outputs)})\n{{\n{''.join(lines)}}}\n"
    (folder / "graph.nnef").write_text(text, encoding="utf-8")
    return folder


def is_plain(graph: str) -> bool:
    """Return whether the text of a case's graph can stand in one with others: it has no symbols and no fragments."""
    return "extension tract_symbol" not in graph and "fragment " not in graph


def _names(case: Case, signature: Signature) -> list[str]:
    results = case.results(signature)
    return [*(label for _, label, _ in case.tensors()), *results, *(f"{name}_shown" for name in results)]


def _renamed(names: re.Pattern[str], number: int, text: str) -> list[str]:
    return [names.sub(rf"c{number}_\1", name) for name in text.split(", ") if name]
