"""Compare this exporter's language models with torch-to-nnef-llm's: right tokens, speed, size.

Both get the same folders of random weights, each in separate processes; their archives run in one engine, next to
PyTorch. Prints the tables and writes results.json and results.md. The other exporter is in a separate environment.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import conformance.cases.models.libraries  # noqa: F401
from conformance.lab.command import command_parser, say
from conformance.lab.machine import ROOT, describe_machine
from conformance.lab.measure.language_models.cases import CASES, Case
from conformance.lab.measure.language_models.tables import markdown
from conformance.lab.measure.peers.environments import make_environment
from conformance.lab.measure.peers.language_models import VERSION
from conformance.lab.measure.peers.process import WORKER
from conformance.lab.processes import run_module
from conformance.lab.rows import write_results
from t2n_core.engine import ResolvedEngine, resolve_engines

PEER = "torch-to-nnef-llm"
_DECODING = "conformance.lab.measure.language_models.decoding"
_ORDER = (("ours", "peer"), ("peer", "ours"))
"""Exports go in turns, so that what else the machine does hits both alike."""


def run(module: str, python: Path | str = sys.executable, **job: object) -> dict[str, Any]:
    """Return the answer of a process to a job, or {"error": …} where it dies."""
    child = run_module(module, job=job, python=python)
    if child.returncode:
        return {"error": (child.stderr.strip().splitlines() or [f"exit code {child.returncode}"])[-1][-300:]}
    answer: dict[str, Any] = json.loads(child.stdout)
    return answer


def exports(folder: Path, python: dict[str, Path | str], scratch: Path) -> dict[str, dict[str, Any]]:
    """Return the figures of each exporter: the least time and peak of two turns, and the archive."""
    figures_of: dict[str, dict[str, Any]] = {}
    for turn, order in enumerate(_ORDER):
        for who in order:
            out = scratch / f"{who}-{turn}"
            job = {"kind": "language_models", "exporter": who, "folder": str(folder), "to": str(out)}
            figures = run(WORKER, python[who], **job)
            best = figures_of.setdefault(who, figures)
            for name in ("seconds", "cpu_seconds", "process_seconds", "peak_bytes"):
                if name in best and name in figures:
                    best[name] = min(best[name], figures[name])
    return figures_of


def decode(engine: ResolvedEngine, folder: Path, case: Case, archives: dict[str, str], rounds: int) -> dict[str, Any]:
    """Return what each archive generates, and how fast; an archive that kills its process is left out and says so."""
    job = {"library": str(engine.library), "folder": str(folder), "prompt": case.prompt, "steps": case.steps}

    def ask(some: dict[str, str], turns: int) -> dict[str, Any]:
        return run(_DECODING, **job, archives=some, rounds=turns)

    alone = {who: ask({who: archive}, 1) for who, archive in archives.items()}
    failed = {who: answer for who, answer in alone.items() if "error" in answer}
    return {**failed, **ask({who: archive for who, archive in archives.items() if who not in failed}, rounds)}


def main() -> None:
    parser = command_parser("conformance.lab.measure.language_models", __doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmark-results" / "language-models")
    parser.add_argument("--only", help=f"names of models, with `;` between them, of: {'; '.join(CASES)}")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each archive")
    parser.add_argument("--peer-folder", type=Path, default=ROOT / ".tox" / "peers", help="where its environment is")
    arguments = parser.parse_args()
    names = [name.strip() for name in arguments.only.split(";")] if arguments.only else list(CASES)
    if unknown := [name for name in names if name not in CASES]:
        parser.error(f"no such model: {', '.join(unknown)}")
    output = arguments.output.absolute()
    output.mkdir(parents=True, exist_ok=True)
    (engine,) = resolve_engines(VERSION)
    results: dict[str, Any] = {"machine": describe_machine(), "models": {}}
    say(f"the environment of {PEER}")
    python = {"ours": sys.executable, "peer": make_environment(PEER, arguments.peer_folder.absolute())}
    for name in names:
        say(name)
        case = CASES[name]
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "model"
            case.save(folder)
            weights = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
            written = exports(folder, python, Path(scratch))
            job = {"kind": "language_models", "exporter": "ours", "folder": str(folder), "steps": True}
            written["steps"] = run(WORKER, **job, to=str(Path(scratch) / "steps"))
            archives = {who: export["archive"] for who, export in written.items() if "archive" in export}
            of_case = {"prompt": case.prompt, "weights_bytes": weights, "exports": written}
            results["models"][name] = {**of_case, "tokens": decode(engine, folder, case, archives, arguments.rounds)}
        write_results(output / "results.json", results)
        (output / "results.md").write_text(markdown(results), encoding="utf-8")
    print(markdown(results))


if __name__ == "__main__":
    main()
