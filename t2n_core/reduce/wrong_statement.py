"""The first statement of an archive that an engine computes otherwise than it is defined, found without a model.

All values of the graph become its outputs, and are compared with those by the definitions. If that changes what the
engine does (it cannot fuse an output), or makes it fail, the graph is cut after one statement at a time, by bisection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from t2n_core.engine.protocol import Array, Engine
from t2n_core.errors import InputError, T2NError
from t2n_core.nnef.reading.archive import read_archive
from t2n_core.nnef.reading.binding import Signatures
from t2n_core.parity.comparison import OutputComparison, compare
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.parity.table import comparison_table
from t2n_core.parity.tolerance import DEFAULT_LEVEL, TractCheckTolerance
from t2n_core.reduce.oracles import DefinitionsOracle, ReleaseOracle
from t2n_core.reduce.program import Program
from t2n_core.scratch import scratch_folder


@dataclass(frozen=True, slots=True)
class WrongStatement:
    """A statement, and its value in the engine beside the one by definition."""

    statement: str
    comparison: OutputComparison | None
    """None if the engine gives no values for the graph that ends there."""

    def describe(self) -> str:
        """Return the result as text for a terminal."""
        lines = [f"first statement that the engine computes otherwise than it is defined: `{self.statement}`"]
        shown = "  the engine gives no values for the graph that ends there"
        return "\n".join([*lines, comparison_table([self.comparison]) if self.comparison is not None else shown])


def find_wrong_statement(
    engine: Engine,
    archive: Path,
    sample: Sample,
    signatures: Signatures,
    level: TractCheckTolerance | None = None,
    *,
    timeout: float = 60.0,
) -> WrongStatement | None:
    """Return the first statement whose value in the engine is not the one by definition; None if all are right.

    `level` is at least the default one, since the definitions are computed in float64. Raises InputError for an archive
    that the definitions cannot compute.
    """
    program = Program.of(read_archive(archive), sample.inputs, signatures)
    reference_values = DefinitionsOracle(timeout).values(program, program.results())
    if reference_values is None:
        raise InputError(f"the definitions cannot compute {archive.name}")
    wider = max(level or DEFAULT_LEVEL, DEFAULT_LEVEL, key=lambda tolerance: tolerance.rank)
    with scratch_folder() as folder:
        return _Search(program, reference_values, ReleaseOracle(engine, folder, timeout), Judgement(wider)).run()


def describe_wrong_statement(engine: Engine, request: CheckRequest, version: str) -> str:
    """Return the first wrong statement at the first sample that has one, as text, or why there is none.

    `version` is the tract version whose signatures the archive has.
    """
    signatures, level = Signatures.of("tract", version), request.criteria.level
    try:
        for sample in request.samples:
            statement = find_wrong_statement(
                engine, request.archive, sample, signatures, level, timeout=request.timeout
            )
            if statement is not None:
                return statement.describe()
    except T2NError as wrong:
        return f"no first wrong statement: {wrong.message}"
    return "every statement is computed as it is defined, each by itself"


class _Search:
    def __init__(
        self, program: Program, defined_values: Mapping[str, Array], engine: ReleaseOracle, criteria: Judgement
    ) -> None:
        self.program, self.meant, self.engine, self.criteria = program, defined_values, engine, criteria
        self.names = [name for name in program.results() if name in defined_values]

    def run(self) -> WrongStatement | None:
        shown = self.engine.values(self.program, self.names) or {}
        for name in self.names:
            if name in shown and not (compared := self._compare(name, shown[name])).passed:
                return WrongStatement(self._statement(name), compared)
        return self._first_cut()

    def _first_cut(self) -> WrongStatement | None:
        """Return the first statement by bisection, as if all that follow were wrong too."""
        low, high = 0, len(self.names) - 1
        last = self._wrong_at(high) if high >= 0 else None
        if last is None:
            return None
        while low < high:
            middle = (low + high) // 2
            wrong = self._wrong_at(middle)
            if wrong is None:
                low = middle + 1
            else:
                high, last = middle, wrong
        return last

    def _wrong_at(self, index: int) -> WrongStatement | None:
        """Return the statement at a place if its value is wrong as the only output."""
        name = self.names[index]
        values = self.engine.values(self.program, [name])
        if values is None:
            return WrongStatement(self._statement(name), None)
        compared = self._compare(name, values[name])
        return None if compared.passed else WrongStatement(self._statement(name), compared)

    def _compare(self, name: str, got: Array) -> OutputComparison:
        return compare(self.meant[name].astype(got.dtype), got, name=name, criteria=self.criteria)

    def _statement(self, name: str) -> str:
        made = next(assignment for assignment in self.program.assignments if name in assignment.results)
        return self.program.signatures.positional(made).text()
