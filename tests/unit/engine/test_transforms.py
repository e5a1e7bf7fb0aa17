"""Names of transforms, their arguments, and the releases that have them."""

from __future__ import annotations

import json

import pytest

from t2n_core.engine.tract.transforms.table import KNOWN, has_transforms, transforms_of
from t2n_core.engine.tract.transforms.transform import Transform, split_names, transforms_from
from t2n_core.errors import InputError
from tests.releases import NEWEST

EXCLUDING = '{"name": "f32_to_f16", "exclude": ["norm", "a,b"]}'


def test_a_comma_list_keeps_the_commas_of_arguments() -> None:
    assert split_names(f"round_trip, {EXCLUDING} ,conv_nhwc,") == ["round_trip", EXCLUDING, "conv_nhwc"]


@pytest.mark.parametrize("given", [EXCLUDING, json.loads(EXCLUDING)])
def test_arguments_are_the_engines_json(given: str | dict[str, object]) -> None:
    transform = Transform.of(given)
    assert (transform.name, transform.arguments) == ("f32_to_f16", {"exclude": ["norm", "a,b"]})
    assert json.loads(transform.text_for(NEWEST)) == json.loads(EXCLUDING)
    assert Transform.of(str(transform)) == transform


def test_names_have_dashes_before_023() -> None:
    assert Transform.of("f32-to-f16") == Transform.of("f32_to_f16")
    assert Transform.of("f32_to_f16").text_for("0.22.4") == "f32-to-f16"
    assert json.loads(Transform.of("f32_to_f16").text_for("0.23.0")) == {"name": "f32_to_f16"}


def test_one_transform_is_a_list_of_one() -> None:
    assert transforms_from("f32_to_f16,round_trip") == (Transform("f32_to_f16"), Transform("round_trip"))
    assert transforms_from({"name": "set_symbols", "values": {"B": 3}}) == (
        Transform("set_symbols", {"values": {"B": 3}}),
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("f32_to_f17", "did you mean `f32_to_f16`"),
        ("nonsense", "there are round_trip, "),
        ('f32_to_f16(filter: "!=norm")', "takes arguments as JSON alone"),
        ('{"name": "f32_to_f16"', "is not JSON"),
        ('{"exclude": []}', "is not a transform"),
        (7, "is not a transform"),
    ],
)
def test_what_is_no_transform_is_refused(given: object, words: str) -> None:
    with pytest.raises(InputError) as refused:
        Transform.of(given)  # type: ignore[arg-type]
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("given", "version", "words"),
    [
        ("conv_nhwc", "0.23.8", "tract 0.23.8 has no transform conv_nhwc"),
        ("softmax_fast_compact", "0.23.6", "it has round_trip, f32_to_f16"),
        ("f32_to_f16", "0.20.22", "other transforms came with 0.21.2"),
        (EXCLUDING, "0.22.4", "take no arguments"),
        ("pulse", NEWEST, "check_streaming"),
        ("patch", NEWEST, "PyTorch has no counterpart"),
    ],
)
def test_a_release_refuses_what_it_does_not_have(given: str, version: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        Transform.of(given).require(version)
    assert words in str(refused.value)


def test_each_release_has_its_own_transforms() -> None:
    assert transforms_of("0.20.22") == ("round_trip",)
    assert not has_transforms("0.21.1")
    assert {"block_quant", "transformers_detect_all"} <= set(transforms_of("0.21.19"))
    assert "detect_kv_cache" not in transforms_of("0.21.19")
    ended = "detect_rms_norm detect_silu detect_gelu_approx softmax_fast_compact fuse_inplace_kv_sdpa"
    assert KNOWN.keys() - set(transforms_of(NEWEST)) == set(ended.split())
    Transform.of("round_trip").require("0.19.15")
