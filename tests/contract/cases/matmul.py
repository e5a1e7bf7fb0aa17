"""Matrix products."""

from __future__ import annotations

import math

import torch
from torch import nn

from tests.contract.cases import build, case, randint, randn, weight

_GROUPED = "transformers::grouped_mm_fallback"


def _grouped_mm(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    """As the library of that name defines it, which takes its place where it is imported later."""
    ends = [0, *offs.tolist()]
    return torch.cat([input[a:b] @ w for a, b, w in zip(ends, ends[1:], weight, strict=False)])


def _define() -> None:
    """Define the operator where there is none, also where the library that had defined it is gone again."""
    if not torch._C._dispatch_has_kernel(_GROUPED):
        made = torch.library.custom_op(_GROUPED, _grouped_mm, mutates_args=())
        made.register_fake(lambda input, weight, offs: input.new_empty(input.shape[0], weight.shape[2]))


def _grouped(x: torch.Tensor, matrices: torch.Tensor) -> torch.Tensor:
    """One row with the first matrix, none with the second, and so on; the others with the last one."""
    _define()
    count = torch.ones_like(x[:, :1], dtype=torch.int64).sum(0)
    ends = torch.minimum((torch.arange(1, matrices.shape[0]) + 1) // 2, count)
    result: torch.Tensor = torch.ops.transformers.grouped_mm_fallback(x, matrices, torch.cat([ends, count]))
    return result


def _of_repeated(x: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """A row beside each of four others: engines move the repetition behind the product."""
    rows = torch.stack([x, x.sin(), x.cos(), -x], 1)
    return torch.nn.functional.linear(torch.cat([rows, x.unsqueeze(1).expand_as(rows)], -1), matrix)


class _Upsampled(nn.Module):
    """Products over a size that the engine works out itself."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose1d(4, 4, 1, stride=3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(torch.cat([x[:, ::3], x], 1).mT)
        return torch.einsum("htc,hsc->ht", y, y)


def _of_windows(x: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """Batch and places of windows on one axis: engines unfold that in the weights too."""
    b, h, w, c = x.shape
    windows = x.view(b, h // 2, 2, w // 3, 3, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 2, 3, c)
    return torch.nn.functional.linear(windows, matrix)


def _of_middle(x: torch.Tensor) -> torch.Tensor:
    """A slice of which the bounds are T - (T + 1) // 2 and a little more or less."""
    half = x.chunk(2, 1)[-1]
    length = half.shape[1]
    return torch.cat([half, half + 1], 1)[:, length - 1 : length + 1] @ x[0, :1].reshape(6, 1)


def _of_halves(x: torch.Tensor) -> torch.Tensor:
    """Over an axis whose size is spelled `(T + 1) // 2` in one operand and `(2 * T + 3) // 4` in the other."""
    return torch.matmul(x.chunk(2, 2)[0], torch.cat([x, x], 2).tensor_split(4, 2)[0].transpose(1, 2))


def _of_padded_rows(x: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """Over an axis of 4 elements wherever the model runs, whose size is made of a dynamic one."""
    return torch.nn.functional.pad(x, (0, -x.shape[1] % 4)) @ matrix


CASES = [
    case("einsum over a computed size", build(_Upsampled), randn(2, 5, 4)).dynamic({0: {1: "T"}}),
    case("linear", build(nn.Linear, 5, 3), randn(2, 5)),
    case("linear dynamic", build(nn.Linear, 5, 3), randn(2, 4, 5)).dynamic({0: {0: "B", 1: "T"}}),
    case("linear of a vector", build(nn.Linear, 5, 3), randn(5)),
    case("linear without bias", build(nn.Linear, 5, 3, bias=False), randn(2, 3, 4, 5)),
    case("linear to a number", torch.nn.functional.linear, randn(2, 5), weight(randn(5))),
    case("matmul", torch.matmul, randn(2, 3, 5), randn(5, 4)),
    case("matmul of integers", torch.matmul, randint(-9, 9, 2, 3, 5), randint(-9, 9, 5, 4)),
    case("mm of bytes", torch.mm, randint(0, 9, 3, 5, dtype=torch.uint8), randint(0, 9, 5, 4, dtype=torch.uint8)),
    case("matmul broadcast", torch.matmul, randn(2, 1, 3, 5), randn(6, 5, 4)),
    case("matmul of a wide weight", torch.matmul, randn(1, 2, 5), weight(randn(3, 5, 4))),
    case("matmul of one row and a wide weight", torch.matmul, randn(2, 1, 1, 5), weight(randn(3, 5, 4))),
    case("wide weight matmul", torch.matmul, weight(randn(3, 5, 4)), randn(4, 1)),
    case("matmul vector", torch.matmul, randn(2, 3, 5), randn(5)),
    case("vector matmul", torch.matmul, randn(5), randn(2, 5, 3)),
    case("mm", torch.mm, randn(3, 5), randn(5, 4)),
    case("bmm", torch.bmm, randn(2, 3, 5), randn(2, 5, 4)),
    case("mv", torch.mv, randn(3, 5), randn(5)),
    case("dot", torch.dot, randn(5), randn(5)),
    case("vdot", torch.vdot, randn(5), randn(5)),
    case("inner", torch.inner, randn(5), randn(5)),
    case("outer", torch.outer, randn(5), randn(3)),
    case("addmm", torch.addmm, randn(3, 4), randn(3, 5), randn(5, 4), beta=0.5, alpha=2),
    case("baddbmm", torch.baddbmm, randn(2, 3, 4), randn(2, 3, 5), randn(2, 5, 4), alpha=2),
    case("addbmm", torch.addbmm, randn(3, 4), randn(2, 3, 5), randn(2, 5, 4), beta=0.5, alpha=2),
    case("addbmm without self", torch.addbmm, randn(3, 4), randn(2, 3, 5), randn(2, 5, 4), beta=0),
    case("bilinear", build(nn.Bilinear, 5, 4, 3), randn(2, 6, 5), randn(2, 6, 4)),
    case("bilinear of a program", torch.ops.aten.bilinear, randn(2, 5), randn(2, 4), randn(3, 5, 4), randn(3)),
    case("bilinear of vectors", build(nn.Bilinear, 5, 4, 3, bias=False), randn(5), randn(4)),
    *(case(f"cdist {p}", torch.cdist, randn(2, 3, 5), randn(2, 4, 5), p=p) for p in (0.0, 1.0, 2.0, 3.0, math.inf)),
    case("_cdist_forward", torch.ops.aten._cdist_forward, randn(3, 5), randn(4, 5), 2.0, None),
    case("groups of rows", _grouped, randn(7, 4), weight(randn(3, 4, 5))),
    case("groups of rows of varying number", _grouped, randn(7, 4), weight(randn(3, 4, 5))).dynamic({0: {0: "T"}}),
    case("many groups of rows", _grouped, randn(17, 4), weight(randn(9, 4, 5))).dynamic({0: {0: "T"}}),
    case("linear of a repeated row", _of_repeated, randn(2, 5), weight(randn(3, 10))).dynamic({0: {0: "B"}}),
    case("matmul of a middle", _of_middle, randn(2, 24, 6)).dynamic({0: {1: "T"}}),
    case("matmul over halves", _of_halves, randn(2, 3, 9)).dynamic({0: {2: "T"}}),
    case("matmul of padded rows", _of_padded_rows, randn(5, 3), weight(randn(4, 2))).dynamic({0: {1: "T"}}),
    case("linear of windows", _of_windows, randn(2, 4, 6, 5), weight(randn(3, 5))).dynamic({0: {0: "B"}}),
    *(
        case(f"matrix_exp of norm {scale}", lambda x, scale=scale: torch.linalg.matrix_exp(x * scale), randn(2, 4, 4))
        for scale in (0.1, 1.0, 5.0)
    ),
    case("matrix_exp of float16", lambda x: torch.matrix_exp(x * 0.3), randn(3, 3, dtype=torch.float16)).refused(
        "float16 matrix overflows"
    ),
    case("matrix_exp of any size", lambda x: torch.matrix_exp(x * 0.3), randn(3, 5, 5)).dynamic(
        {0: {0: "B", 1: "N", 2: "N"}}
    ),
    case("matrix_exp of large negative numbers", lambda x: torch.matrix_exp(x - 400 * torch.eye(3)), randn(3, 3)),
    *(
        case(
            f"{name} of {dtype}".replace("torch.", ""), function, *(randint(low, 120, *s, dtype=dtype) for s in shapes)
        )
        for dtype, low in ((torch.int8, -120), (torch.uint8, 0), (torch.int16, -120), (torch.int64, -120))
        for name, function, shapes in (
            ("mm", torch.mm, ((3, 4), (4, 5))),
            ("linear", torch.nn.functional.linear, ((2, 3, 4), (5, 4), (5,))),
            ("linear of a vector", torch.nn.functional.linear, ((4,), (5, 4))),
            ("addbmm", torch.addbmm, ((3, 5), (2, 3, 4), (2, 4, 5))),
            ("inner", torch.inner, ((3, 4), (2, 4))),
        )
    ),
]
