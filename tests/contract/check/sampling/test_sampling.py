"""The samples that a model is checked with: apart from the example, of its domain, and such that outputs move."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from t2n_core import ModelExport
from t2n_core.nnef.graph import Graph, Operation, Value, constant_outputs
from t2n_core.parity.samples import Sample


class Call(nn.Module):
    """Calls a function; counts its runs."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function, self.runs = function, 0

    def forward(self, *inputs: Tensor):
        if not torch.compiler.is_exporting():
            self.runs += 1
        return self.function(*inputs)


def samples_of(function, *inputs: Tensor, **options) -> list[Sample]:
    return ModelExport(Call(function).eval(), inputs, **options).samples


def labels_of(samples: list[Sample]) -> list[str]:
    return [sample.label.rpartition(" ")[2] for sample in samples]


def noise(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(2))


def test_one_set_apart_from_the_example_is_enough_where_outputs_move() -> None:
    samples = samples_of(lambda x: x * 2, noise(3, 5))
    assert labels_of(samples) == ["example", "alike"]
    assert not np.array_equal(samples[0].inputs[0], samples[1].inputs[0])


def test_floats_of_one_sign_are_tried_with_both() -> None:
    samples = samples_of(lambda x: x * 2, noise(3, 50).abs())
    assert labels_of(samples) == ["example", "alike", "signed"]
    assert samples[2].inputs[0].sum() < 0


def test_a_domain_is_kept_where_signs_lead_to_nan() -> None:
    samples = samples_of(torch.log, noise(3, 50).abs() + 0.1)
    assert labels_of(samples) == ["example", "alike"]
    assert np.isfinite(samples[1].expected[0]).all()


def test_floats_further_out_are_left_where_outputs_grow_out_of_proportion() -> None:
    """Rounding errors of numbers that are a thousand times as large are so too, in PyTorch as well."""
    assert labels_of(samples_of(lambda x: x**2, noise(30, 50))) == ["example", "alike"]
    grown = samples_of(lambda x: (x * 2, x**8), noise(30, 50))
    assert labels_of(grown) == ["example", "near"]
    assert all(
        np.std(after) < 3 * np.std(before) for before, after in zip(*(sample.expected for sample in grown), strict=True)
    )


def test_inputs_in_place_of_constants_are_kept_however_much_outputs_grow() -> None:
    for constant in (torch.zeros(30, 50), torch.ones(30, 50)):
        example, drawn = samples_of(lambda x: x**8, constant)
        assert drawn.inputs[0].std() > 0.5
        assert drawn.expected[0].std() > 10 * example.expected[0].max()


def test_bolder_inputs_come_until_the_output_moves() -> None:
    assert labels_of(samples_of(lambda x: x > 5, noise(3, 5)))[-1] == "wide"
    assert labels_of(samples_of(lambda x: (x == 0).any(1), noise(3, 5)))[-1] == "coarse"
    assert "special" in labels_of(samples_of(torch.isnan, noise(3, 50)))


def test_given_inputs_of_the_same_sizes_take_the_place_of_drawn_ones() -> None:
    square = noise(4, 4) @ noise(4, 4).mT + 4 * torch.eye(4)
    assert labels_of(samples_of(torch.linalg.cholesky, square, extra_inputs=[(square * 3,)])) == [
        "example",
        "inputs[0]",
    ]
    again = samples_of(lambda x: x * 2, noise(3, 5), extra_inputs=[(noise(3, 5),)])
    assert labels_of(again) == ["example", "inputs[0]", "alike"], "the same call again proves nothing"


def test_a_model_that_takes_nothing_else_has_its_example_alone() -> None:
    class Picky(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if not torch.compiler.is_exporting() and x.sum() != 15:
                raise ValueError("another sum")
            return x * 2

    export = ModelExport(Picky(), (torch.arange(6.0),))
    assert labels_of(export.samples) == ["example"]


def test_lengths_stay_valid_at_every_size() -> None:
    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(4, 3, batch_first=True)

        def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
            mask = torch.arange(x.shape[1])[None] < lengths[:, None]
            return self.rnn(x)[0] * mask[..., None]

    def packed(x: Tensor, lengths: Tensor) -> Tensor:
        sequence = pack_padded_sequence(x, lengths, batch_first=True)  # refuses what is too long, or not sorted
        return pad_packed_sequence(sequence, batch_first=True)[0]

    example = (noise(3, 9, 4), torch.tensor([9, 7, 2]))
    export = ModelExport(Packed().eval(), example, input_names=["x", "lengths"], dynamic_axes={"x": {1: "T"}})
    for sample in export.samples:
        packed(*(torch.from_numpy(array) for array in sample.inputs))
    assert {sample.inputs[0].shape[1] for sample in export.samples} >= {9, 1, 11}


def test_what_sizes_alone_decide_is_constant() -> None:
    x, shape, half, double = (Value(name, np.dtype(np.float32), (2,)) for name in ("x", "shape", "half", "double"))
    operations = [
        Operation("external", {"shape": [2]}, (x,)),
        Operation("tract_core_shape_of", {"input": x}, (shape,)),
        Operation("mul", {"x": shape, "y": 0.5}, (half,)),
        Operation("add", {"x": x, "y": half}, (double,)),
    ]
    graph = Graph(inputs=[x], outputs=[half, double], operations=operations)
    assert constant_outputs(graph) == {"half"}
