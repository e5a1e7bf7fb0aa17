"""Slices, selections, gathering and scattering, sorting."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from conformance.cases.programs.program import Program, numbers, program, wholes


class _Taken(nn.Module):
    """Rows by a constant index, in falling order."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("index", torch.tensor([2, 0]))

    def forward(self, x: Tensor) -> Tensor:
        return x.index_select(1, self.index)


class _Written(nn.Module):
    """Rows of one tensor written into a copy of the other, through a slice."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        out = x * 2
        out[:, 1:3] = y
        out[:, 0] += 1
        return out


def _rows(*index: int) -> tuple[Tensor, Tensor]:
    return torch.randn(3, 4, 2), torch.tensor(index)


PROGRAMS: dict[str, Program] = {
    "slice": program(lambda x: x[:, 2:, :], numbers(2, 5, 3)),
    "every_other": program(lambda x: x[..., 1::2], numbers(2, 5, 3)),
    "slices_of_two_axes": program(lambda x: x[..., :2, 1::2], numbers(2, 5, 7)),
    "from_the_end": program(lambda x: x[:, -2:], numbers(2, 5, 3)),
    "every_other_whole_number": program(lambda x: x[..., 0::2], wholes(2, 3, 10), in_standard=False),
    "select": program(lambda x: x.select(1, 1), numbers(2, 3, 4)),
    "select_the_last": program(lambda x: x[:, -1], numbers(2, 3, 4)),
    "narrow": program(lambda x: x.narrow(1, 1, 2), numbers(2, 3, 4)),
    "by_an_input": program(lambda x, i: x[i], lambda: _rows(2, 0)),
    "by_an_input_at_axis_1": program(lambda x, i: x[:, i], lambda: _rows(3, 1, 1)),
    "by_an_input_at_axis_2": program(lambda x, i: x[:, :, i], lambda: _rows(1)),
    "by_a_constant": Program(_Taken, numbers(2, 3, 4)),
    "gather": program(
        lambda x, i: torch.gather(x, 1, i),
        lambda: (torch.randn(1, 5, 3), torch.tensor([[[1, 2], [3, 0], [4, 0]]])),
        in_standard=False,
    ),
    "scatter": program(
        lambda x, i, s: torch.scatter(x, 1, i, s),
        lambda: (torch.randn(2, 5), torch.stack([torch.randperm(5)[:3] for _ in range(2)]), torch.randn(2, 3)),
        in_standard=False,
    ),
    "write_through_a_slice": Program(_Written, lambda: (torch.randn(2, 4, 3), torch.randn(2, 2, 3))),
    "masked_fill": program(lambda x, m: x.masked_fill(m, -1.5), lambda: (torch.randn(4, 5), torch.rand(4, 5) > 0.5)),
    "where": program(lambda x, y: torch.where(x > 0, x, y), lambda: (torch.randn(4, 5), torch.randn(4, 5))),
    **{
        f"argsort_{axis}": program(lambda x, a=axis: x.argsort(a), wholes(2, 3, 5), in_standard=False)
        for axis in (0, 1, -1)
    },
    **{f"sort_{axis}": program(lambda x, a=axis: x.sort(a), wholes(2, 3, 5), in_standard=False) for axis in (0, 1, -1)},
    **{
        f"topk_{axis}": program(lambda x, a=axis: x.topk(1 + a, a), numbers(2, 3, 5), in_standard=False)
        for axis in range(3)
    },
    "repeat_interleave": program(lambda x: x.repeat_interleave(4, 1), numbers(2, 3, 2)),
    "repeat_interleave_0": program(lambda x: x.repeat_interleave(3, 0), numbers(2, 3, 2)),
}
