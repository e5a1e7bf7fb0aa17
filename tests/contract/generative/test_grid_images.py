"""Images of any size for the Qwen-VL models: the program computes of a grid what transformers does."""

from __future__ import annotations

import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers.vision_utils import get_vision_position_ids, get_vision_window_index

from conformance.cases.several_archives.multimodal import CASES, SIZES, SOFT, of_sizes, qwen_model
from t2n_core import TractNNEF
from t2n_core.errors import InputError
from t2n_core.generative.deep_images import grid_images
from t2n_core.generative.grid_images import GridImages
from t2n_core.program import export_program
from t2n_core.program.driver import execute
from tests.releases import NEWEST

each = pytest.mark.parametrize("family", ["qwen2_vl", "qwen2_5_vl", "qwen3_vl"])
GRIDS = pytest.mark.parametrize("size", [*SIZES, (2, 2), (8, 8), (4, 14)])


def empty_run(name: str, inputs: Any) -> dict[str, Any]:
    """Return nothing in place of an archive's outputs."""
    return {}


def values_after(grid: GridImages, example: dict[str, torch.Tensor], *statements: str) -> dict[str, Any]:
    values: dict[str, Any] = {name: tensor.numpy() for name, tensor in example.items()}
    execute([getattr(grid, name) for name in statements], values, empty_run)
    return values


def example_of(size: tuple[int, int]) -> dict[str, torch.Tensor]:
    torch.manual_seed(5)
    return of_sizes(size, *SIZES[1:])[0]


@each
@GRIDS
def test_positions_are_those_of_transformers(family: str, size: tuple[int, int]) -> None:
    model, example = qwen_model(family), example_of(size)
    values = values_after(GridImages(model), example, "layout", "of_prompt", "of_step")
    grid = example["image_grid_thw"]
    assert np.array_equal(values["positions"].reshape(-1, 2), get_vision_position_ids(grid, 2).numpy())

    tokens = example["input_ids"]
    kinds = (tokens == SOFT).to(torch.int32)
    expected, shift = model.model.get_rope_index(tokens, mm_token_type_ids=kinds, image_grid_thw=grid)
    prompt = values_after(GridImages(model), example, "layout", "of_prompt")["position_ids"]
    assert np.array_equal(prompt, expected.numpy())
    assert values["position_ids"].tolist() == [[[tokens.shape[1] + int(shift)]]] * 3
    assert int(values["place"]) == tokens.shape[1] + int(shift) + 1


@GRIDS
def test_windows_are_those_of_transformers(size: tuple[int, int]) -> None:
    model, example = qwen_model("qwen2_5_vl"), example_of(size)
    windows = values_after(GridImages(model), example, "layout")["windows"]
    index, ends = get_vision_window_index(example["image_grid_thw"], 2, window_size=16, patch_size=4)
    expected = np.zeros(len(index), np.int64)
    for number, (begin, end) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
        expected[index[begin // 4 : end // 4]] = number
    assert np.array_equal(windows[:, None] == windows[None], expected[:, None] == expected[None])


@each
@GRIDS
def test_rows_are_those_of_the_model(family: str, size: tuple[int, int]) -> None:
    model, example = qwen_model(family), example_of(size)
    grid = grid_images(model)
    with torch.no_grad():
        actual = grid.encoder(**grid.example(example))
        inputs = {name: example[name] for name in ("pixel_values", "image_grid_thw")}
        features = model.get_image_features(**inputs, return_dict=True)
    if family == "qwen3_vl":
        actual, inner = actual
        expected = torch.stack([rows for (rows,) in features.deepstack_features])
        torch.testing.assert_close(inner, expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(actual, features.pooler_output[0], atol=1e-4, rtol=1e-4)


@each
def test_one_archive_takes_images_of_several_sizes(family: str, tmp_path: Path) -> None:
    torch.manual_seed(2)
    result = export_program(CASES[family](), TractNNEF(NEWEST), tmp_path / "qwen")
    assert result.proof is not None
    assert result.proof.outcome.status == "pass"
    assert result.calls == {"embedding": 72, "encoder": 3, "decoder": 72}
    of_family = {"qwen2_vl": {}, "qwen2_5_vl": {"windows": ["R"]}, "qwen3_vl": {"extent": ["2"]}}
    inputs = {"patches": ["R", "4", "96"], "positions": ["R", "4", "2"], **of_family[family]}
    assert result.manifest["parts"]["encoder"]["inputs"] == inputs


@each
def test_tokens_depend_on_the_shape_of_the_image(family: str) -> None:
    """The program's check would find wrong positions: with rows and columns exchanged the model's tokens are others."""
    torch.manual_seed(zlib.crc32(family.encode()))
    program = CASES[family]()
    for example in program.examples[1:]:
        turned = {**example, "image_grid_thw": example["image_grid_thw"][:, [0, 2, 1]]}
        assert (program.expected(turned)["tokens"] != program.expected(example)["tokens"]).sum() > 4


def test_prompts_without_one_whole_image_are_refused() -> None:
    model, example = qwen_model("qwen2_5_vl"), example_of((4, 6))
    grid = GridImages(model)
    with pytest.raises(InputError, match="an example has image_grid_thw, input_ids, noise, pixel_values"):
        grid.example({**example, "noise": torch.zeros(1)})
    with pytest.raises(InputError, match="the patches do not fit the grid"):
        grid.example({**example, "image_grid_thw": torch.tensor([[1, 4, 4]])})
    with pytest.raises(InputError, match="the patches do not fit the grid"):
        grid.example({**example, "image_grid_thw": torch.tensor([[1, 2, 6], [1, 2, 6]])})
    with pytest.raises(InputError, match="the patches do not fit the grid"):
        grid.example({**example, "image_grid_thw": torch.tensor([[2, 2, 6]])})
    apart = example["input_ids"].clone()
    apart[0, :2] = apart[0, 2:4].clone()
    apart[0, 3] = 5
    with pytest.raises(ValueError, match="rows for"):
        values_after(grid, {**example, "input_ids": apart}, "layout", "of_prompt")


def test_other_families_with_a_grid_are_refused() -> None:
    with pytest.raises(InputError, match="reads a grid of patches in a way of its own"):
        grid_images(SimpleNamespace(config=SimpleNamespace(model_type="glm4v")))
    model = qwen_model("qwen3_vl")
    model.model.visual.interpolation_align_corners = False
    with pytest.raises(InputError, match="interpolates positions in another way"):
        grid_images(model)
