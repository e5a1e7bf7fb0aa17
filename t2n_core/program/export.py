"""Export a program of several archives: one folder with the archives, the statements, and the driver that runs them."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from t2n_core.errors import InputError
from t2n_core.export.model import ModelExport
from t2n_core.export.result import ExportResult
from t2n_core.inference_target import TractNNEF
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.tolerance import TractCheckTolerance
from t2n_core.program import driver
from t2n_core.program.check import ProgramOutcome, check_program, check_with_modules
from t2n_core.program.program import Program
from t2n_core.program.statements import Signature, check_statements

MANIFEST: Final = "program.json"
DRIVER: Final = "driver.py"


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The archives of a program in one folder."""

    directory: Path
    program: Program
    manifest: Mapping[str, Any]
    parts: Mapping[str, ExportResult]
    calls: Mapping[str, int]
    """Calls of each archive, over all examples."""
    proof: ProgramOutcome | None = None
    """The outcome of the check during the export."""

    def check_program(
        self, tolerance: str | TractCheckTolerance | Judgement | None = None, *, timeout: float = 60.0
    ) -> ProgramOutcome:
        """Check each archive against its module, and the program against its reference, in the target's engine.

        `timeout` is in seconds for each check of an archive, and for each call. Failures are outcomes.
        """
        for name, part in self.parts.items():
            outcome = part.check_parity(tolerance, timeout=timeout)
            if not outcome.passed:
                return ProgramOutcome(outcome, self.calls, name)
        return self.check_whole(tolerance, timeout=timeout)

    def check_whole(
        self, tolerance: str | TractCheckTolerance | Judgement | None = None, *, timeout: float = 60.0
    ) -> ProgramOutcome:
        """Check the program against its reference, without separate checks of its archives."""
        level = next(iter(self.parts.values())).target.check_io_tolerance if tolerance is None else tolerance
        criteria = Judgement.parse(level)
        return check_program(self.program, self.manifest, self.parts, self.calls, criteria, timeout)

    def assert_program(
        self, tolerance: str | TractCheckTolerance | Judgement | None = None, *, timeout: float = 60.0
    ) -> ProgramOutcome:
        """Run check_program, and raise the T2NError of a failure (ParityError, EngineCrash, …)."""
        __tracebackhide__ = True
        return self.check_program(tolerance, timeout=timeout).raise_for_failure()


class ProgramExport:
    """A program whose modules are captured once and exported to any number of releases."""

    def __init__(self, program: Program) -> None:
        """Take a program. Raises InputError for arguments that a module does not accept."""
        self.program = program
        self.exports = {
            name: ModelExport(part.module, part.arguments, **part.options) for name, part in program.parts.items()
        }

    def to(self, target: TractNNEF, directory: str | Path, *, timeout: float = 60.0) -> ProgramResult:
        """Write the folder for one target; see `export_program`."""
        if not isinstance(target, TractNNEF):
            raise InputError(f"{target} does not support programs: only tract has dynamic sizes")
        folder = Path(directory)
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
        try:
            parts = {name: export.to(target, scratch / f"{name}.nnef.tgz") for name, export in self.exports.items()}
            result = self._check(target, scratch, parts, timeout)
            (scratch / MANIFEST).write_text(f"{json.dumps(result.manifest, indent=2)}\n", encoding="utf-8")
            shutil.copyfile(driver.__file__, scratch / DRIVER)
            folder.mkdir(exist_ok=True)
            for file in scratch.iterdir():
                file.replace(folder / file.name)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        for part in parts.values():
            part.archive = folder / part.archive.name
        return replace(result, directory=folder)

    def _check(
        self, target: TractNNEF, scratch: Path, parts: Mapping[str, ExportResult], timeout: float
    ) -> ProgramResult:
        """Return the result whose archives are in a scratch folder, after its checks. Raises T2NError."""
        program = self.program
        signatures = {
            name: Signature(tuple(part.input_names), tuple(part.output_names)) for name, part in parts.items()
        }
        check_statements(program.statements, program.inputs, program.outputs, signatures)
        manifest = manifest_of(program, parts, target)
        calls = check_with_modules(program, manifest, parts)
        result = ProgramResult(scratch, program, manifest, parts, calls)
        return replace(result, proof=result.assert_program(timeout=timeout)) if target.check_io else result


def manifest_of(program: Program, parts: Mapping[str, ExportResult], target: TractNNEF) -> dict[str, Any]:
    """Return the content of `program.json`."""
    return {
        "format": 1,
        "tract": target.version,
        "inputs": list(program.inputs),
        "outputs": list(program.outputs),
        "parts": {
            name: {
                "archive": part.archive.name,
                "sizes": str(part.range),
                "inputs": {value.name: [str(extent) for extent in value.shape] for value in part.graph.inputs},
                "outputs": {value.name: [str(extent) for extent in value.shape] for value in part.graph.outputs},
            }
            for name, part in parts.items()
        },
        "statements": list(program.statements),
    }


def export_program(
    program: Program, target: TractNNEF | None = None, directory: str | Path = "program", *, timeout: float = 60.0
) -> ProgramResult:
    """Write the archives of a program, its statements and the driver that runs them, into one folder.

    Before anything is written there, the program is run with PyTorch's modules instead of its archives, and must give
    the same as its reference; then each archive is compared with its module, and the whole with the reference, in the
    target's engine, unless the target has `check_io=False`.

    Args:
        program: see `Program`.
        target: a TractNNEF; the newest release by default.
        directory: the folder, which is created.
        timeout: seconds for the engine to load an archive, and for each call.

    Raises:
        InputError: the statements do not fit together, or differ from the reference.
        CaptureError, UnsupportedOpsError, SpecError, WriteError: an archive cannot be written.
        EngineError, ParityError: a check failed.
    """
    return ProgramExport(program).to(TractNNEF() if target is None else target, directory, timeout=timeout)
