"""Programs of several archives: how they are joined, exported, and proven as one."""

from t2n_core.program.check import ProgramOutcome
from t2n_core.program.export import ProgramExport, ProgramResult, export_program
from t2n_core.program.program import Part, Program
from t2n_core.program.statements import Statement, if_, items, let, run, text, while_

__all__ = [
    "Part",
    "Program",
    "ProgramExport",
    "ProgramOutcome",
    "ProgramResult",
    "Statement",
    "export_program",
    "if_",
    "items",
    "let",
    "run",
    "text",
    "while_",
]
