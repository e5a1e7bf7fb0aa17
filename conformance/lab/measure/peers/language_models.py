"""Jobs that export a language model, one in a process: {"folder": …, "to": …, "steps": false}.

`steps` is for an archive of single tokens next to ours. An answer has seconds, peak memory and the archive. Imports at
the beginning are in `process_seconds` alone, the loading of the folder in all figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conformance.lab.machine import VERSIONS, memory_of_process
from conformance.lab.timing import Stopwatch


def ours(steps: bool) -> Callable[[Path, Path], Path]:
    """Return what `t2n export-llm` does, with an archive for single tokens or without."""
    from t2n_core import TractNNEF
    from t2n_core.generative import export_generative
    from t2n_core.generative.load import load_model, load_tokenizer

    def export(folder: Path, out: Path) -> Path:
        target = TractNNEF(VERSIONS[-1], check_io=False)
        model, tokenizer = load_model(folder), load_tokenizer(folder)
        options: dict[str, Any] = {"last_logits": True, "tokenizer": tokenizer, "step_archive": steps}
        return export_generative(model, None, target, out, **options).decoder.archive

    return export


def peer() -> Callable[[Path, Path], Path]:
    """Return the export of torch-to-nnef-llm, with its defaults but for the checks."""
    from torch_to_nnef_llm.exporter import dump_llm

    from t2n_core.exporters.builtin import command_line

    def export(folder: Path, out: Path) -> Path:
        dump_llm(
            local_dir=folder,
            export_dirpath=out,
            tract_specific_path=command_line(VERSIONS[-1], out.parent),
            no_verify=True,
            check_inference_modes=False,
            dump_with_tokenizer_and_conf=True,
        )
        return next(out.rglob("*.nnef*"))

    return export


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of an export, or its error along with them."""
    is_ours = job["exporter"] == "ours"
    if is_ours:
        import conformance.cases.models.libraries  # noqa: F401
    import torch
    import transformers  # noqa: F401

    torch.set_num_threads(1)
    export = ours(job.get("steps", False)) if is_ours else peer()
    baseline, watch = memory_of_process("VmRSS"), Stopwatch()
    figures: dict[str, Any]
    try:
        archive = export(Path(job["folder"]), Path(job["to"]))
        figures = {"archive": str(archive), "bytes": archive.stat().st_size}
    except BaseException as cause:
        figures = {"error": f"{type(cause).__name__}: {cause}"[:400]}
    figures |= {"seconds": watch.wall, "cpu_seconds": watch.cpu, "process_seconds": time.process_time()}
    return {**figures, "peak_bytes": memory_of_process("VmHWM") - baseline}
