"""Planted faults of other exporters, in real engines: what each profile finds."""

from __future__ import annotations

import pytest

from tests.plugin.exporters.toys import CACHE, FAULTS, TEST
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

ALL = "t2n,toy,toy-sizes,toy-state,toy-names"
BY_PROFILE = {
    "values": {"toy": "pass", "toy-sizes": "mismatch", "toy-state": "pass", "toy-names": "pass"},
    "strict": {"toy": "pass", "toy-sizes": "mismatch", "toy-state": "mismatch", "toy-names": "error"},
}


@pytest.mark.parametrize(
    ("profile", "mode"),
    [("values", "plain"), ("strict", "plain"), ("strict", "n2")],
)
def test_what_a_profile_finds(suite, profile, mode):
    suite.pytester.makeconftest(FAULTS)
    suite.pytester.makepyfile(TEST)
    options = (f"--t2n-exporter={ALL}", "--t2n-report=site", CACHE, f"--t2n-judge={profile}")
    result = suite.run(*options, engines=RECENT, mode=mode, alone=True, modules=FOR_EXPORTS)
    cells = {cell.get("exporter", ""): cell for cell in suite.cells.values()}
    assert [cell["nodeid"] for cell in suite.cells.values()] == [
        f"test_what_a_profile_finds.py::test_last[{name}tract-{RECENT}]"
        for name in ("", *(f"{exporter}-" for exporter in BY_PROFILE[profile]))
    ]
    assert {name: cell["status"] for name, cell in cells.items()} == {"": "pass", **BY_PROFILE[profile]}
    facts = {name: cell["facts"]["profiles"] for name, cell in cells.items() if name}
    assert facts == {name: {each: BY_PROFILE[each][name] for each in BY_PROFILE} for name in facts}
    assert "profiles" not in cells[""].get("facts", {})
    assert cells["toy-sizes"]["facts"]["author"] == "exporter"
    assert {size["T"] for size in cells["toy-sizes"]["failed_sizes"]} <= set(range(7, 100))
    result.stdout.fnmatch_lines([f"toy-sizes tract {RECENT} *"])
    if profile == "strict":
        errors = {name: cell.get("error", {}) for name, cell in cells.items()}
        assert errors["toy-state"]["message"].startswith("the second call in one State")
        assert (errors["toy-names"]["error_class"], cells["toy-names"]["stage"]) == ("InterfaceError", "load")
        assert "in0" in errors["toy-names"]["message"]
