"""Paths of releases, and an engine on one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from t2n_core.engine.paths import EnginePath, OnPath, is_required, on_path, parse_paths, paths_of, paths_of_release
from t2n_core.engine.protocol import EngineReply
from t2n_core.engine.provision.resolved import ResolvedEngine
from t2n_core.errors import InputError
from tests.releases import NEWEST

DECLUTTER, OPTIMISE_ONLY, FIXED = EnginePath.DECLUTTER, EnginePath.OPTIMISE_ONLY, EnginePath.FIXED_SYMBOLS


def test_a_release_that_declutters_on_load_has_one_path_less() -> None:
    assert paths_of_release("0.22.4") == (DECLUTTER, OPTIMISE_ONLY, FIXED)
    assert paths_of_release("0.23.0") == (DECLUTTER, FIXED)


def test_selected_paths_keep_their_order() -> None:
    assert paths_of_release("0.21.19", "fixed-symbols, declutter") == (DECLUTTER, FIXED)
    assert paths_of_release(NEWEST, "optimise-only") == ()


def test_a_command_line_always_declutters() -> None:
    assert paths_of(ResolvedEngine("cli", "0.21.19", Path("tract"), "ab", "path:tract")) == (DECLUTTER, FIXED)


def test_another_name_has_a_suggestion() -> None:
    with pytest.raises(InputError, match="'declutters' is not a path") as wrong:
        parse_paths("declutters")
    assert wrong.value.hint == "did you mean `declutter`?"


@pytest.mark.parametrize(("path", "version", "required"), [
    (FIXED, "0.21.7", False), (FIXED, "0.21.8", True), (DECLUTTER, "0.19.2", True)
])  # fmt: skip
def test_fixed_symbols_are_required_from_a_release_on(path: EnginePath, version: str, required: bool) -> None:
    assert is_required(path, version) == required


class Recorded:
    """An engine that records the options of its runs."""

    name, version, kept_states = "tract", "0.22.4", None

    def run(self, archive: Path, batches: Any, *, timeout: float = 60.0, **options: Any) -> EngineReply:
        self.options = options
        return EngineReply("ok", "run")


def test_an_engine_on_the_path_of_an_outcome() -> None:
    engine = Recorded()
    assert on_path(engine, "") is engine
    on_path(engine, "fixed-symbols", [{"T": 7}]).run(Path(), [])
    assert engine.options == {"path": FIXED, "symbols": {"T": 7}}
    on_path(engine, "optimise-only", [{"T": 7}]).run(Path(), [])
    assert engine.options == {"path": OPTIMISE_ONLY, "symbols": {}}
    assert not hasattr(OnPath(engine, DECLUTTER), "paths"), "it is checked on this one alone"
