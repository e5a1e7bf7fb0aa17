"""Faults that are planted in written archives and in engines: exchanged names, and a path that computes wrongly."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from t2n_core.engine.paths import EnginePath
from t2n_core.engine.protocol import EngineReply
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.nnef.reading.graph_file import GRAPH_FILE


def _exchange_words(text: str, first: str, second: str) -> str:
    """Exchange two names wherever they stand, so that the graph computes the same by place."""
    return re.sub(rf"\b({first}|{second})\b", lambda match: second if match[1] == first else first, text)


EXCHANGES: dict[str, Callable[[str], str]] = {
    "input names": lambda text: _exchange_words(text, "left", "right"),
    "output names": lambda text: _exchange_words(text, "low", "high"),
    "order of inputs": lambda text: text.replace("(left, right) ->", "(right, left) ->"),
    "order of external statements": lambda text: re.sub(r"(  left = .*\n)(  right = .*\n)", r"\2\1", text),
    "order of outputs": lambda text: text.replace("(low, high)", "(high, low)"),
}
"""Changes of the text of a graph with the inputs `left` and `right` and the outputs `low` and `high`."""


def exchange(archive: Path, fault: str) -> None:
    """Plant an exchange in a tar. The archive must have the names."""
    with tarfile.open(archive) as tar:
        files = [(entry, tar.extractfile(entry).read()) for entry in tar]  # type: ignore[union-attr]
    with tarfile.open(archive, "w") as tar:
        for entry, content in files:
            if entry.name == GRAPH_FILE:
                changed = EXCHANGES[fault](content.decode()).encode()
                assert changed != content, "nothing to exchange"
                entry.size, content = len(changed), changed
            tar.addfile(entry, io.BytesIO(content))


def exchange_when_written(fault: str, patch: Callable[..., Any] = setattr) -> None:
    """Let each export write an archive with an exchange, whatever its name: as a plain tar, which engines read too."""
    from t2n_core.export import model

    write = model.write_archive

    def write_exchanged(graph: Any, path: Any, **options: Any) -> Path:
        archive = write(graph, Path(path).with_suffix(".tar"), **{**options, "compression": None})
        exchange(archive, fault)
        return archive

    patch(model, "write_archive", write_exchanged)


def spoil_path(wrong: str, patch: Callable[..., Any] = setattr) -> None:
    """Let each engine compute other outputs on one of its paths: 1 more in every element."""
    run = TractEngine.run

    def run_spoiled(self: TractEngine, archive: Path, batches: Any, **options: Any) -> EngineReply:
        reply = run(self, archive, batches, **options)
        if options.get("path", EnginePath.DECLUTTER) == wrong:
            return _spoiled(reply)
        paths = [path_run.path for path_run in options.get("further", ())]
        further = [
            _spoiled(further_reply) if path == wrong else further_reply
            for path, further_reply in zip(paths, reply.further, strict=False)
        ]
        return replace(reply, further=tuple(further))

    patch(TractEngine, "run", run_spoiled)


def _spoiled(reply: EngineReply) -> EngineReply:
    outputs = tuple(tuple(array + 1 for array in batch) for batch in reply.outputs)
    return replace(reply, outputs=outputs)
