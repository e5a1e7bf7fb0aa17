"""Comparisons as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from io import StringIO

from t2n_core.parity.comparison import OutputComparison

_HEAD = (
    *("output", "shape", "level", "required", "outside"),
    *("max abs", "mean abs", "max rel", "max ulp", "sqnr", "worst at", "expected", "actual"),
)
_WIDEST = 10_000
"""More columns than any line needs: the lines of a report are not wrapped."""
_SHOWN = 12
"""Most rows of a table, so that a model with a hundred outputs has a readable report, too."""


def comparison_table(outputs: Sequence[OutputComparison]) -> str:
    """Return a table with a line per output, mismatches first; a problem that no tolerance covers follows its line."""
    ordered = sorted(outputs, key=lambda output: output.passed)
    head, *rows = _align([_HEAD, *(_row(output) for output in ordered[:_SHOWN])])
    lines = [head]
    for output, row in zip(ordered, rows, strict=False):
        lines.append(row)
        if output.problem:
            lines.append(f"  ! {output.name}: {output.problem}")
    if len(ordered) > _SHOWN:
        lines.append(f"… and {len(ordered) - _SHOWN} more outputs")
    return "\n".join(lines)


def comparison_html(outputs: Sequence[OutputComparison]) -> str:
    """Return the same table as HTML, all outputs in order; '' if there are none."""
    if not outputs:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in _HEAD)
    rows = ("".join(f"<td>{escape(cell)}</td>" for cell in _row(output)) for output in outputs)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def sizes_text(sizes: Sequence[Mapping[str, int]], shown: int = 8) -> str:
    """Return `T=50; T=1; …` for a list of size assignments."""
    parts = [
        ", ".join(f"{name}={size}" for name, size in assignment.items()) or "as given" for assignment in sizes[:shown]
    ]
    if len(sizes) > shown:
        parts.append(f"… {len(sizes)} in all")
    return "; ".join(parts)


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line for each row, its columns two spaces apart."""
    from rich.console import Console  # only a failure needs it
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for _ in rows[0]:
        grid.add_column(no_wrap=True)
    for row in rows:
        grid.add_row(*map(Text, row))
    console = Console(file=StringIO(), width=_WIDEST, color_system=None)
    with console.capture() as captured:
        console.print(grid)
    return [line.rstrip() for line in captured.get().splitlines()]


def _row(output: OutputComparison) -> tuple[str, ...]:
    compared = bool(output.outliers)
    return (
        output.name,
        f"{output.dtype}[{','.join(map(str, output.shape))}]",
        output.level.value if output.level else "none",
        output.limit or output.required.value,
        f"{output.outside:.3%}" if compared else "-",
        _format_number(output.max_abs) if compared else "-",
        "-" if output.mean_abs is None else _format_number(output.mean_abs),
        _format_number(output.max_rel) if compared else "-",
        "-" if output.max_ulp is None or not compared else str(output.max_ulp),
        "-" if output.sqnr is None else f"{output.sqnr:.1f} dB",
        "-" if output.worst_index is None else str(list(output.worst_index)),
        "-" if output.worst_expected is None else _format_number(output.worst_expected, 8),
        "-" if output.worst_actual is None else _format_number(output.worst_actual, 8),
    )


def _format_number(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)
