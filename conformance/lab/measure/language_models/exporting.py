"""One export in a process of its own: `python -m conformance.lab.measure.language_models.exporting WHO FOLDER OUT`.

WHO is `ours`, `steps` (ours with an archive for single tokens beside it) or `peer`.

Prints seconds, peak memory and the archive as JSON. Imports at the beginning are in `process_seconds` alone, the
loading of the folder in all figures. Neither exporter checks what it writes: that is done for both in the engine.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conformance.lab.machine import memory_of_process
from conformance.lab.processes import open_answers
from conformance.lab.timing import Stopwatch

VERSION = "0.23.9"


def ours(steps: bool = False) -> Callable[[Path, Path], Path]:
    """Return what `t2n export-llm` does, with an archive for single tokens or without."""
    from t2n_core import TractNNEF
    from t2n_core.generative import export_generative
    from t2n_core.generative.load import load_model, load_tokenizer

    def export(folder: Path, out: Path) -> Path:
        target = TractNNEF(VERSION, check_io=False)
        model, tokenizer = load_model(folder), load_tokenizer(folder)
        options: dict[str, Any] = {"last_logits": True, "tokenizer": tokenizer, "step_archive": steps}
        return export_generative(model, None, target, out, **options).decoder.archive

    return export


def peer() -> Callable[[Path, Path], Path]:
    """Return the export of torch-to-nnef-llm, with its defaults but for the checks."""
    from torch_to_nnef_llm.exporter import dump_llm

    def export(folder: Path, out: Path) -> Path:
        shim = out.with_name("tract")  # it insists on a binary that says its version
        shim.write_text(f"#!/bin/sh\necho tract {VERSION}\n", encoding="utf-8")
        shim.chmod(0o755)
        dump_llm(
            local_dir=folder,
            export_dirpath=out,
            tract_specific_path=shim,
            no_verify=True,
            check_inference_modes=False,
            dump_with_tokenizer_and_conf=True,
        )
        return next(out.rglob("*.nnef*"))

    return export


def main(who: str, folder: str, out: str) -> None:
    warnings.simplefilter("ignore")
    answer = open_answers()
    if who != "peer":
        import conformance.cases.models.libraries  # noqa: F401
    import torch
    import transformers  # noqa: F401

    torch.set_num_threads(1)
    export = peer() if who == "peer" else ours(who == "steps")
    held, watch = memory_of_process("VmRSS"), Stopwatch()
    figures: dict[str, Any]
    try:
        archive = export(Path(folder), Path(out))
        figures = {"archive": str(archive), "bytes": archive.stat().st_size}
    except BaseException as cause:
        figures = {"error": f"{type(cause).__name__}: {cause}"[:400]}
    figures |= {"seconds": watch.wall, "cpu_seconds": watch.cpu}
    figures["process_seconds"] = time.process_time()
    print(json.dumps({**figures, "peak_bytes": memory_of_process("VmHWM") - held}), file=answer, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
