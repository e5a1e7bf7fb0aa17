"""One share of a peer's measurement; runs in the peer's environment, started by `conformance.lab.measure.peers`."""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from conformance.cases.aten import AtenCase, AtenSample, SampleSource, all_aten_cases
from conformance.checks import aten_outcomes as found
from conformance.lab.measure.peers.exporters import Export, exporter
from t2n_core.engine import engine_for, resolve_engines
from t2n_core.parity.check import check_parity
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample

SECONDS = 60
"""For one sample: export and run."""


class Peer:
    """An exporter, a folder for what it writes, and the engine that reads it."""

    def __init__(self, name: str, release: str, folder: Path) -> None:
        self.name, self.release, self._write = name, release, exporter(name)
        self.path = folder / ("model.onnx" if name == "torch-onnx" else "model.nnef.tgz")
        self.engine = engine_for(resolve_engines(release)[0])

    def export(self, sample: AtenSample, outputs: int) -> Path:
        """Return the file of a sample. Raises what the exporter does."""
        self.path.unlink(missing_ok=True)
        names = [f"output_{i}" for i in range(outputs)]
        inputs = dict(zip(sample.input_names, sample.inputs, strict=True))
        self._write(Export(sample.model, inputs, names, self.release, self.path))
        return self.path


def check_sample(peer: Peer, sample: AtenSample, answer: Connection) -> Outcome:
    """Export, run, compare. Says on `answer` when the engine's part begins, in case it takes this process along."""
    from t2n_core.torch_graph.frontend.results import tensors_of

    with torch.no_grad():
        results = tensors_of(sample.model(*[x.clone() for x in sample.inputs]))
    expected = tuple(t.detach().numpy().copy() for t in results)
    inputs = tuple(x.detach().numpy().copy() for x in sample.inputs)
    try:
        path = peer.export(sample, len(results))
    except Exception as cause:
        return Outcome.from_error(cause, "lower")
    answer.send((sample.id, "engine"))
    return check_parity(peer.engine, CheckRequest(path, [Sample(inputs, expected)], timeout=30))


def run_case(peer: Peer, case: AtenCase, most: int | None, done: int, answer: Connection) -> None:
    """Run the samples after the first `done`, in a process that may die."""
    source = SampleSource(case)
    for index, sample in enumerate(source.usable(most)):
        if index < done:
            continue
        answer.send((sample.id, "export"))
        line = found.sample_line(sample.id, check_sample(peer, sample, answer))
        if line.result == found.BUG:  # nobody's exceptions but a peer's own are told apart there
            line = replace(line, result=found.REFUSED)
        answer.send((sample.id, line))
    answer.send(("", source.left_out))


def measure_case(peer: Peer, case: AtenCase, most: int | None, engine: str) -> found.CaseLine:
    """Measure one operator; a process that dies or hangs costs one sample, and another takes the rest."""
    start, lines = time.perf_counter(), []
    left_out: dict[str, int] | None = None
    while left_out is None:
        ours, theirs = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(
            target=run_case, args=(peer, case, most, len(lines), theirs), daemon=False
        )
        process.start()
        theirs.close()
        at, step = "", ""
        try:
            while left_out is None:
                if not ours.poll(SECONDS):
                    raise TimeoutError
                name, said = ours.recv()
                if isinstance(said, str):
                    at, step = name, said
                elif isinstance(said, dict):
                    left_out = said
                else:
                    lines.append(said)
        except (EOFError, TimeoutError) as cause:
            hung = isinstance(cause, TimeoutError)
            result = found.TIMEOUT if hung else found.CRASH if step == "engine" else found.REFUSED
            if not at:  # died before any sample: nothing more is to be had of this operator
                left_out = {"the process ended while samples were made": 1}
            else:
                lines.append(found.SampleLine(at, result, step, message=f"the process {'hung' if hung else 'died'}"))
        finally:
            process.kill()
            process.join()
    seconds = round(time.perf_counter() - start, 3)
    return found.CaseLine(case.id, case.kind, case.name, case.dtype, engine, tuple(lines), left_out, seconds)


def main(peer_name: str, version: str, share: str, most: str, path: str) -> None:
    torch.set_num_threads(1)
    part, parts = map(int, share.split("/"))
    cases = [c for c in all_aten_cases() if c.dtype == "float32" and c.kind == "operator"][part::parts]
    with tempfile.TemporaryDirectory() as folder, Path(path).open("w", encoding="utf-8") as out:
        peer = Peer(peer_name, version, Path(folder))
        for case in cases:
            line = measure_case(peer, case, int(most) or None, f"{peer_name}, tract {version}")
            out.write(f"{line.to_json()}\n")
            out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
