"""The search for repairs tries none twice on the same model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from t2n_core.errors import EngineCrash, EngineLoadError, EngineRunError, T2NError
from t2n_core.onnx_file import repaired
from t2n_core.onnx_file.repairs import REPAIRS
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest

USEFUL = "fold constants"


@pytest.mark.parametrize("useful", [False, True])
def test_a_repair_is_tried_again_only_after_another_one(
    useful: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: Counter[str] = Counter()

    def apply(name: str, *_: object) -> str:
        tries[name] += 1
        return "" if useful and name == USEFUL and tries[name] == 1 else "it changes nothing"

    monkeypatch.setattr(repaired, "_apply", apply)
    monkeypatch.setattr(repaired, "_difference", lambda *_: "")
    before, after = (Outcome.from_error(EngineLoadError(reason)) for reason in ("one reason", "another"))
    request = CheckRequest(tmp_path / "net.onnx", [])
    search = repaired.search_repairs(request, lambda _: [after], [before], tmp_path)
    assert search.repairs == ((USEFUL,) if useful else ())
    index = list(REPAIRS).index(USEFUL)
    again = dict.fromkeys(list(REPAIRS)[: index + 1], 2) if useful else {}
    assert tries == {**dict.fromkeys(REPAIRS, 1), **again}


RAN, LOADED = EngineRunError("at run"), EngineLoadError("at load")


@pytest.mark.parametrize(
    ("before", "after", "is_kept"),
    [
        (LOADED, RAN, True),
        (RAN, LOADED, False),
        (EngineCrash("double free"), EngineCrash("malloc(): invalid size"), False),
        (EngineRunError("one reason"), EngineRunError("another"), True),
    ],
    ids=["further", "back to load", "another text of a crash", "another reason"],
)
def test_a_repair_stays_only_if_an_engine_comes_further(
    before: T2NError, after: T2NError, is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repaired, "_apply", lambda name, *_: "" if name == USEFUL else "it changes nothing")
    monkeypatch.setattr(repaired, "_difference", lambda *_: "")
    first, then = map(Outcome.from_error, (before, after))
    search = repaired.search_repairs(CheckRequest(tmp_path / "net.onnx", []), lambda _: [then], [first], tmp_path)
    assert search.repairs == ((USEFUL,) if is_kept else ())
