"""Names in the bytes of a library: constants without separators, and parts of symbols."""

from __future__ import annotations

from t2n_core.releases.scan.names import function_names, operator_names, word_names

LIBRARY = (
    b"\xff tract_core_cumsumaxisexclusive\x01 tract_nnef_load\x00tract_version\x00"
    b"select_outputsset_propertyf32_to_f16 \x00_RNvNtCs9_5tract3nnefload_5graph9conv_nhwc3run\x00"
)


def test_an_operator_ends_anywhere_in_its_run() -> None:
    names = operator_names(LIBRARY)
    assert {"tract_core_cumsum", "tract_core_cumsumaxis"} <= set(names)
    assert not any(name.startswith("tract_nnef_") for name in names)
    assert names == sorted(names)


def test_functions_stand_between_zeros() -> None:
    assert function_names(LIBRARY) == ["tract_version"]


def test_a_word_stands_beside_a_known_one_or_is_part_of_a_symbol() -> None:
    words = set(word_names(LIBRARY, ["select_outputs"]))
    assert {"select_outputs", "set_property", "f32_to_f16", "conv_nhwc"} <= words
    assert "set_property" not in word_names(LIBRARY, ["unknown"])
