"""Run all benchmarks, as `tox -e benchmark` does.

Prints the tables and writes results.json and results.md. Figures are ratios within one run on one machine; nothing
here passes or fails by time.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from conformance.lab.command import command_parser, say
from conformance.lab.machine import ROOT, VERSIONS, describe_machine
from conformance.lab.measure import checks, decoding, growth, memory, startup
from conformance.lab.measure.engine import speed
from conformance.lab.measure.nets.exported import CHAIN_LENGTHS, EXPORTED
from conformance.lab.measure.peers.process import NAME, Worker
from conformance.lab.measure.sessions import plugin, quick, stages
from conformance.lab.measure.tables import markdown
from conformance.lab.rows import write_results

PARTS = ("export", "growth", "memory", "engine", "layers", "decoding", "checks", "session", "quick", "startup")
BUDGET = 120.0
"""Seconds for the peer at one length; at 400 it takes about four minutes, with --peer-400 it gets ten."""


def export_times(peer: Worker | None, longest: int) -> dict[str, Any]:
    """Return {exporter: {n: median seconds}}, with the reason where seconds are missing.

    The peer runs once per net, and on chains of up to `longest` layers.
    """
    workers = {who: Worker(who) for who in ("ours", "torch.export")}
    times: dict[str, Any] = {who: {} for who in workers}
    nets: dict[str, dict[str, Any]] = {net: {} for net in EXPORTED}
    try:
        for who, worker in workers.items():
            say(f"exports by {who}")
            times[who] = {n: _seconds(worker, {"chain": n, "warm": 1, "repeats": 5}) for n in CHAIN_LENGTHS}
            for net in EXPORTED:
                nets[net][who] = _seconds(worker, {"export": net, "warm": 1, "repeats": 3})
    finally:
        for worker in workers.values():
            worker.close()
    if peer is not None:
        times["peer"] = {}
        for n in (n for n in CHAIN_LENGTHS if n <= longest):
            say(f"the peer's export of {n} layers")
            repeats = 3 if n <= 50 else 1
            times["peer"][n] = _seconds(peer, {"chain": n, "repeats": repeats}, 600.0 if n > 200 else BUDGET)
        for net in EXPORTED:
            say(f"the peer's export of {net}")
            is_chain = net.startswith("400 x")
            seconds = times["peer"].get(400) if is_chain else _seconds(peer, {"export": net, "repeats": 1})
            nets[net]["peer"] = seconds or "not run"
    return {**times, "nets": nets}


def _seconds(peer: Worker, job: dict[str, Any], budget: float = BUDGET) -> float | str:
    """Return the median, or why there is none."""
    answer = peer.ask("nets", budget, **job, release=VERSIONS[-1])
    return (
        str(answer["error"]) if answer.get("error") else float(sorted(answer["seconds"])[len(answer["seconds"]) // 2])
    )


def save(results: dict[str, Any], output: Path) -> str:
    """Write the results so far, so that a later failure does not lose them, and return the tables."""
    write_results(output / "results.json", results)
    text = markdown(results)
    (output / "results.md").write_text(text, encoding="utf-8")
    return text


def main() -> None:
    parser = command_parser("conformance.lab.measure", __doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmark-results", help="folder of the results")
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--tract", default="all-minors", metavar="SPEC", help="engines of the parts engine and layers")
    parser.add_argument("--rounds", type=int, default=30, help="turns of each archive")
    parser.add_argument("--gigabytes", type=float, default=2.0, help="weights of the part memory, on disk twice")
    parser.add_argument("--no-peer", action="store_true", help="without the other exporters and their environments")
    parser.add_argument("--peer-400", action="store_true", help="the peer at n = 400 too: four minutes and more")
    parser.add_argument(
        "--peer-folder", type=Path, default=ROOT / ".tox" / "peers", help="where their environments are"
    )
    arguments = parser.parse_args()
    parts = arguments.only.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    output = arguments.output.absolute()
    output.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"machine": describe_machine()}
    peer = onnx = None
    if not arguments.no_peer and {"export", "engine", "layers"} & set(parts):
        say(f"the environment of {NAME}")
        peer = Worker.in_environment("torch-to-nnef", arguments.peer_folder.absolute())
        results["peer"] = NAME
        if "layers" in parts:
            say("the environment of torch.onnx")
            onnx = Worker.in_environment("torch-onnx", arguments.peer_folder.absolute())
        if not arguments.peer_400:
            results["peer_note"] = (
                "The peer runs once per length (three times at 50), within two minutes each; "
                "n = 400 takes it about four, so that is measured with `--peer-400` only."
            )
    try:
        with tempfile.TemporaryDirectory() as folder:
            if "export" in parts:
                results["export"] = export_times(peer, 400 if arguments.peer_400 else 200)
                save(results, output)
            for part, group, peers in (
                ("engine", "recurrent", {"peer": peer}),
                ("layers", "layers", {"peer": peer, "onnx": onnx}),
            ):
                if part in parts:
                    present = {who: p for who, p in peers.items() if p is not None}
                    results[part] = []
                    for entries in speed.measure(group, arguments.tract, Path(folder), present, arguments.rounds, say):
                        results[part] += entries
                        save(results, output)
            for part, measure in {
                "growth": lambda: growth.measure(Path(folder), say),
                "memory": lambda: memory.measure(arguments.gigabytes, output, say),
                "decoding": lambda: decoding.measure(Path(folder), say),
                "checks": lambda: checks.measure(Path(folder), say),
                "session": lambda: plugin.measure(say),
                "quick": lambda: quick.measure(say),
                "startup": startup.measure,
            }.items():
                if part in parts:
                    say(f"part {part}")
                    results[part] = measure()
                    save(results, output)
            if "quick" in parts:
                say("stages of a session")
                results["stages"] = stages.measure()
    finally:
        for process in (peer, onnx):
            if process is not None:
                process.close()
    print(save(results, output))


if __name__ == "__main__":
    main()
