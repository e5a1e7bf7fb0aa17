"""What moves between two releases, by engines that compute what a test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from packaging.version import Version

from t2n_core.engine.paths import EnginePath
from t2n_core.engine.protocol import EngineReply
from t2n_core.parity.check import check_parity
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.releases.upgrade.page import page
from t2n_core.releases.upgrade.report import UpgradeReport, Verdict
from t2n_core.releases.upgrade.since import find_since
from t2n_core.releases.upgrade.values import PathChange, compare_values

DOUBLE: Callable[[Any, str], Any] = lambda x, path: x * 2  # noqa: E731


@dataclass
class Release:
    """Computes `meant` of an input and a path; a string is the reason of a refusal, and `dies` ends the process."""

    version: str
    meant: Callable[[Any, str], Any] = DOUBLE
    loads: Callable[[str], bool | str] = lambda path: True
    fixed: list[Mapping[str, int]] = field(default_factory=list)
    name: str = "tract"
    kept_states = None

    def run(self, archive: Path, batches: Any, *, path: str, symbols: Mapping[str, int], **more: Any) -> EngineReply:
        self.fixed.append(symbols)
        if self.loads(path) == "timeout":
            return EngineReply("timeout", "optimise", "killed")
        if not self.loads(path):
            return EngineReply("error", "load", "no such operator")
        outputs, refused = [], {}
        for number, (x,) in enumerate(batches):
            result = self.meant(x, path)
            if isinstance(result, str):
                if result == "dies":
                    return EngineReply("crash", "run", "panicked", outputs=tuple(outputs), refused=refused)
                refused[number] = result
            outputs.append(() if isinstance(result, str) else (result,))
        return EngineReply("ok", "run", outputs=tuple(outputs), refused=refused)


FILE: Any = SimpleNamespace(
    check=lambda engine, request, target: check_parity(engine, request),
    with_hint=lambda outcome, engine, target: outcome,
)


def request_in(folder: Path, *, expects: bool = True) -> CheckRequest:
    archive = folder / "model.tar"
    archive.write_bytes(b"graph")
    inputs = [np.linspace(1, 2, size, dtype=np.float32) for size in (3, 3, 5, 1)]
    samples = [Sample((x,), (x * 2,) if expects else (), {"T": len(x)}) for x in inputs]
    return CheckRequest(archive, samples, ["y"])


def changes(old: Release, new: Release, request: CheckRequest) -> dict[str, PathChange]:
    return {change.name: change for change in compare_values(FILE, request, old, new, tuple(EnginePath))}


def report(old: Release, new: Release, request: CheckRequest) -> UpgradeReport:
    path_changes = tuple(changes(old, new, request).values())
    return UpgradeReport("net", Version(old.version), Version(new.version), "the definitions", path_changes)


def test_the_same_values_are_safe_on_all_paths(tmp_path: Path) -> None:
    old, new = Release("0.21.13"), Release("0.23.8", lambda x, path: x * np.float32(2.0000002))
    upgrade = report(old, new, request_in(tmp_path))
    assert upgrade.verdict is Verdict.SAFE
    assert [change.name for change in upgrade.paths] == ["declutter", "optimise-only, now declutter", "fixed-symbols"]
    assert old.fixed == [{}, {}, {"T": 3}, {"T": 5}, {"T": 1}]
    assert page(upgrade).startswith("# net, tract 0.21.13 to 0.23.8: safe\n")


@pytest.mark.parametrize(("wrong", "judged"), [("0.21.13", (False, True)), ("0.23.8", (True, False))])
def test_the_side_that_is_wrong_is_named(wrong: str, judged: tuple[bool, bool], tmp_path: Path) -> None:
    def meant(version: str) -> Callable[[Any, str], Any]:
        return lambda x, path: x * 2 + (version == wrong and len(x) == 5)

    upgrade = report(*(Release(version, meant(version)) for version in ("0.21.13", "0.23.8")), request_in(tmp_path))
    assert upgrade.headline == "net, tract 0.21.13 to 0.23.8: values moved, by up to 1"
    change = upgrade.paths[0]
    assert [sample.sizes for sample in change.differing] == [{"T": 5}]
    assert tuple(ending == "right" for ending in change.judged) == judged
    assert "`y`: differs at T=5: by up to 1, no level holds" in page(upgrade)
    assert f"by the definitions tract {wrong} is wrong (mismatch at compare)" in page(upgrade)


def test_another_shape_is_named(tmp_path: Path) -> None:
    upgrade = report(Release("0.21.13"), Release("0.23.8", lambda x, path: x[:1] * 2), request_in(tmp_path))
    assert upgrade.headline == "net, tract 0.21.13 to 0.23.8: values moved: y: shape [1], expected [3]"


def test_without_expected_outputs_no_side_is_named(tmp_path: Path) -> None:
    upgrade = report(Release("0.21.13"), Release("0.23.8", lambda x, path: x * 3), request_in(tmp_path, expects=False))
    assert upgrade.verdict is Verdict.MOVED
    assert upgrade.paths[0].judged == ("", "")
    assert "which of them is right is not known" in page(upgrade)


def test_values_that_are_right_on_both_sides_have_not_moved(tmp_path: Path) -> None:
    lower, upper = (lambda x, path, by=by: x * np.float32(2 + by) for by in (-9e-4, 9e-4))
    upgrade = report(Release("0.21.13", lower), Release("0.23.8", upper), request_in(tmp_path))
    assert upgrade.paths[0].compared is not None
    assert not upgrade.paths[0].compared.passed
    assert upgrade.verdict is Verdict.SAFE
    assert "both are right within rounding" in page(upgrade)


def test_what_no_longer_loads_or_runs(tmp_path: Path) -> None:
    request, old = request_in(tmp_path), Release("0.21.19")
    lost = report(old, Release("0.22.4", loads=lambda path: path != "declutter"), request)
    assert lost.headline == "net, tract 0.21.19 to 0.22.4: does not load"
    assert "tract 0.22.4 does not load it: no such operator" in page(lost)
    for why in ("no element", "dies"):
        refused = report(old, Release("0.22.4", lambda x, path, why=why: why if len(x) == 1 else x * 2), request)
        assert refused.headline == "net, tract 0.21.19 to 0.22.4: does not run at T=1"
        assert [sample.sizes for sample in refused.paths[0].refused] == [{"T": 1}]
    neither = report(Release("0.21.19", loads=lambda path: False), Release("0.22.4", loads=lambda path: False), request)
    assert neither.headline.endswith("does not load, in neither release")


def test_what_only_the_newer_release_loads(tmp_path: Path) -> None:
    old, request = Release("0.21.11", loads=lambda path: False), request_in(tmp_path)
    assert report(old, Release("0.22.4"), request).verdict is Verdict.SAFE
    wrong = report(old, Release("0.22.4", lambda x, path: x), request)
    assert wrong.headline.endswith("loads now, and is wrong by the definitions")


def test_no_further_size_is_fixed_after_a_time_out(tmp_path: Path) -> None:
    new = Release("0.23.8", loads=lambda path: "timeout" if path == "fixed-symbols" else "ok")
    path_changes = changes(Release("0.22.4"), new, request_in(tmp_path))
    assert path_changes["fixed-symbols"].lost
    assert new.fixed == [{}, {}, {"T": 3}]


def test_fixed_symbols_do_not_count_before_releases_support_them(tmp_path: Path) -> None:
    def fails(path: str) -> bool:
        return path != "fixed-symbols"

    request = request_in(tmp_path)
    assert report(Release("0.21.7"), Release("0.21.7.1", loads=fails), request).verdict is Verdict.SAFE
    assert report(Release("0.21.8"), Release("0.21.9", loads=fails), request).verdict is Verdict.LOST


@dataclass
class Known:
    """The releases on a machine, of which those in `wrong` compute something else."""

    wrong: tuple[str, ...]
    cached: list[Version]
    tried: list[str] = field(default_factory=list)

    @property
    def all(self) -> list[Version]:
        return self.cached

    def engine(self, release: Version) -> Release:
        self.tried.append(str(release))
        return Release(str(release), lambda x, path: x * (3 if str(release) in self.wrong else 2))


LINE = [f"0.21.{number}" for number in range(20)] + ["0.22.1", "0.22.3", "0.22.4"]


@pytest.mark.parametrize(
    ("before", "after", "wrong", "boundaries"),
    [
        ("0.21.7", "0.21.10", ("0.21.8", "0.21.9", "0.21.10"), [("0.21.7", "0.21.8")]),
        ("0.21.10", "0.21.19", tuple(LINE[8:11]), [("0.21.10", "0.21.11")]),
        ("0.21.19", "0.22.4", ("0.22.1", "0.22.3", "0.22.4"), [("0.21.13", "0.22.1")]),
        ("0.21.19", "0.22.4", ("0.22.4",), [("0.22.3", "0.22.4")]),
    ],
)
def test_the_release_that_changed_it(
    before: str, after: str, wrong: tuple[str, ...], boundaries: list[tuple[str, str]], tmp_path: Path
) -> None:
    releases: Any = Known(wrong, [Version(version) for version in LINE])
    request = request_in(tmp_path)
    old, new = releases.engine(Version(before)), releases.engine(Version(after))
    change = changes(old, new, request)["declutter"]
    assert change.moved
    actual = find_since(releases, request, change)
    assert [(str(boundary.before), str(boundary.after)) for boundary in actual] == boundaries
    assert len(set(releases.tried)) < 10
