"""Options that an export gives to its target."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from t2n_core import InferenceTarget, KhronosNNEF, TractNNEF
from t2n_core.errors import InputError
from t2n_core.nnef.options.precision import PrecisionPlan
from tests.releases import NEWEST

OF_THE_ENGINE = {"version", "specific_tract_binary_path", "engine", "offline"}
VALUES: dict[str, Any] = {
    "check_io": False,
    "check_io_tolerance": "exact",
    "feature_flags": {"pulse"},
    "specific_properties": {"team": "speech"},
    "dump_identity_properties": True,
    "force_attention_inner_in_f32": True,
    "force_linear_accumulation_in_f32": True,
    "force_norm_in_f32": True,
    "reify_sdpa_operator": True,
    "upsample_with_debox": True,
    "keep_nan": True,
    "registries": ["extra"],
    "weights": "q4_0",
    "precision": PrecisionPlan(),
    "pulse": 3,
    "pulsed_archive": True,
    "custom_extensions": ["tract_assert T <= 16"],
    "custom_fragments": ["fragment twice(x: tensor<scalar>) -> (y: tensor<scalar>) { y = x * 2.0; }"],
}


def state(target: InferenceTarget) -> dict[str, Any]:
    return {name: value for name, value in vars(target).items() if name != "_offline"}


def test_all_options_of_tract_are_known() -> None:
    parameters = set(inspect.signature(TractNNEF).parameters)
    assert set(VALUES) == set(TractNNEF.OPTIONS) == parameters - OF_THE_ENGINE - {"dynamic_axes"}


@pytest.mark.parametrize("option", VALUES)
def test_an_option_is_that_of_the_constructor(option: str) -> None:
    plain, options = TractNNEF(NEWEST), {option: VALUES[option]}
    other = plain.with_options(**options)
    assert state(other) == state(TractNNEF(NEWEST, **options)) != state(plain)
    assert state(plain) == state(TractNNEF(NEWEST))
    assert not plain.has_other(option, VALUES[option])
    assert not other.has_other(option, VALUES[option])


@pytest.mark.parametrize(
    ("option", "value", "other"),
    [
        ("reify_sdpa_operator", True, False),
        ("check_io", False, True),
        ("precision", "auto", None),
        ("weights", "int8", "q4_0"),
    ],
)
def test_another_value_than_the_targets(option: str, value: Any, other: Any) -> None:
    assert TractNNEF(NEWEST, **{option: value}).has_other(option, other)


def test_options_of_a_subclass_are_kept() -> None:
    class Mine(TractNNEF):
        def __init__(self, team: str) -> None:
            super().__init__(NEWEST, reify_sdpa_operator=True)
            self.team = team

    other = Mine("speech").with_options(force_norm_in_f32=True)
    assert (type(other), other.team) == (Mine, "speech")
    assert (other.writing.norm_in_f32, other.writing.reify_sdpa) == (True, True)


def test_khronos_has_the_options_of_all_targets() -> None:
    assert KhronosNNEF().with_options(check_io=False, check_io_tolerance="exact").check_io is False


def test_an_invalid_value_is_refused() -> None:
    with pytest.raises(InputError, match="pulse=0"):
        TractNNEF(NEWEST).with_options(pulse=0)
