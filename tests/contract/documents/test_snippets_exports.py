"""The snippets of torch-to-nnef's documentation that export a model, by their numbers: the import alone changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import KhronosNNEF, TractNNEF, export_model_to_nnef
from t2n_core.errors import InputError

X = torch.randn(3, 4)


def tract(**options: object) -> TractNNEF:
    return TractNNEF("0.23.9", check_io=False, **options)  # type: ignore[arg-type]


def test_01_a_model_in_training_mode(tmp_path: Path) -> None:
    """1: a vision model as built, in training mode, is exported in evaluation mode."""
    model = nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.1))
    result = export_model_to_nnef(model, X, tmp_path / "vit.nnef.tgz", tract(), input_names=["input"])
    assert "is in training mode" in result.notes[0]
    assert model.training


def test_03_a_dynamic_batch(tmp_path: Path) -> None:
    """3: a dynamic batch, as an option of the target or of the export."""
    axes = {"x": {0: "B"}}
    ways: list[tuple[TractNNEF, Any]] = [(tract(dynamic_axes=axes), {}), (tract(), {"dynamic_axes": axes})]
    for target, options in ways:
        result = export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.nnef.tgz", target, ["x"], ["y"], **options)
        assert "B" in str(result.graph.inputs[0].shape)


def test_03_dynamic_axes_that_differ(tmp_path: Path) -> None:
    """3: axes given twice must be the same."""
    target, axes = tract(dynamic_axes={"x": {0: "B"}}), {"x": {1: "T"}}
    with pytest.raises(InputError, match="dynamic_axes differ"):
        export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tar", target, ["x"], ["y"], dynamic_axes=axes)


def test_04_custom_extensions_of_the_export(tmp_path: Path) -> None:
    """4: `custom_extensions` are taken by the export too."""
    given: dict[str, Any] = {"dynamic_axes": {"x": {0: "B"}}, "custom_extensions": ["tract_assert B <= 16"]}
    result = export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tar", tract(), ["x"], ["y"], **given)
    assert "16" in str(result.range)


def test_06_custom_extensions_that_differ(tmp_path: Path) -> None:
    """6: extensions given twice must be the same."""
    target = tract(custom_extensions=["tract_assert B <= 16"], dynamic_axes={"x": {0: "B"}})
    with pytest.raises(InputError, match="custom_extensions differ"):
        export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tar", target, ["x"], custom_extensions=["tract_assert B <= 8"])


def test_06_another_option_of_the_target(tmp_path: Path) -> None:
    """6: other options of the target are refused with what to write."""
    for target, name in ((tract(), "reify_sdpa_operator"), (KhronosNNEF(), "check_io")):
        given: Any = {name: True}
        with pytest.raises(InputError, match=rf"`{name}` is an option of the target(.|\n)*{name}="):
            export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tar", target, ["x"], **given)
