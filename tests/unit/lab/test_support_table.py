"""The support table: the worst kernel tier of a release stands for it."""

from __future__ import annotations

from conformance.checks.aten_outcomes import PASS, WRONG, CaseLine, SampleLine
from conformance.lab.pages.support import support_page


def line(engine: str, *samples: tuple[str, str], operator: str = "add") -> CaseLine:
    found = tuple(SampleLine(str(n), result, level=level) for n, (result, level) in enumerate(samples))
    return CaseLine(f"{operator}-float32", "operator", operator, "float32", engine, found)


def test_a_release_is_as_good_as_its_worst_tier() -> None:
    page = support_page(
        [
            line("tract 0.23.9", (PASS, "exact")),
            line("tract 0.23.9 no-fma", (PASS, "approximate")),
            line("tract 0.22.4", (PASS, "close")),
            line("khronos 1.0.5", (PASS, "exact")),
            line("tract 0.23.9", (PASS, "exact"), (PASS, "exact"), operator="mul"),
            line("tract 0.23.9 no-fma", (PASS, "exact"), (WRONG, ""), operator="mul"),
            line("tract 0.23.9", (PASS, "close"), operator="sub"),
            line("tract 0.23.9 no-fma", (PASS, "close"), operator="sub"),
        ]
    )
    table = page.partition("## Operators")[2]
    assert table.split("\n")[2] == "| operator | dtype | tract 0.22.4 | tract 0.23.9 | khronos 1.0.5 |"
    assert "| `add` | float32 | close | approximate (no-fma) | exact |" in table
    assert "| `mul` | float32 |  | **wrong** (no-fma) |  |" in table
    assert "| `sub` | float32 |  | close |  |" in table
    assert page.index("| tract 0.23.9 | operator |") < page.index("| tract 0.23.9 no-fma | operator |")
