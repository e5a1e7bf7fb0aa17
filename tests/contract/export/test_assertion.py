"""`assert_nnef_parity`: parity outside of pytest's plugin, in real engines."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import assert_nnef_parity
from t2n_core.errors import InputError, ParityError, T2NError, UnsupportedOpsError
from tests.nets import net_of
from tests.releases import NEWEST

ENGINES = f"0.21.19,{NEWEST}"


def test_all_engines_are_asked() -> None:
    outcomes = assert_nnef_parity(
        nn.Linear(6, 4).eval(), torch.randn(5, 6), tract=ENGINES, khronos=True, dynamic_axes={"input": {0: "B"}}
    )
    assert list(outcomes) == ["tract 0.21.19", f"tract {NEWEST}", "khronos 1.0.5"]
    assert {outcome.status for outcome in outcomes.values()} == {"pass"}
    assert len(outcomes[f"tract {NEWEST}"].sizes) > 3
    assert outcomes["khronos 1.0.5"].range == ""


def test_a_failure_names_all_engines() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(80, 200), nn.GELU(), nn.Linear(200, 30)).eval()
    with pytest.raises(ParityError, match="beyond `exact`") as failed:
        assert_nnef_parity(model, torch.randn(2, 80), tract=ENGINES, tolerance="exact")
    assert failed.value.__notes__ == [f"not proven in tract 0.21.19, tract {NEWEST}; this is tract 0.21.19"]
    net = net_of(lambda _, x: torch.special.zeta(x, x + 4))
    with pytest.raises(UnsupportedOpsError, match="no rule for aten::special_zeta"):
        assert_nnef_parity(net, torch.tensor([[6, 4]]), tract=NEWEST)


def test_a_weak_pass_fails_only_where_it_shall() -> None:
    model, x = nn.Hardtanh(5.0, 6.0), torch.randn(2, 3)
    (outcome,) = assert_nnef_parity(model, x, tract=NEWEST).values()
    assert outcome.status == "weak"
    with pytest.raises(ParityError, match="prove little"):
        assert_nnef_parity(model, x, tract=NEWEST, strict=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"tract": ""}, "there is no engine to compare with"),
        ({"dynamic_axis": {}}, "there is no option `dynamic_axis` of an export"),
        ({"tolerance": "good"}, "'good' is not a tolerance level"),
        ({"atol": -1}, "atol=-1 is neither a number from 0 on"),
        ({"weights": "q3"}, "weights: 'q3' is not one of"),
    ],
)
def test_wrong_words(words: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        assert_nnef_parity(nn.Tanh(), torch.randn(2, 3), **{"tract": NEWEST, **words})


def test_the_traceback_begins_at_the_user(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        import torch
        from t2n_core import assert_nnef_parity

        def test_it():
            assert_nnef_parity(torch.nn.Tanh(), torch.randn(2, 3), tract="{NEWEST}", tolerance="exact", atol=-1)
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:randomly")
    result.stdout.no_fnmatch_line("*judgement.py*")
    assert issubclass(InputError, T2NError)
