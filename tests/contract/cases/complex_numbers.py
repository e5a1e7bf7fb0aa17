"""Complex numbers between real inputs and outputs: transforms, masks, rotations, and what is done to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.contract.cases import Case, Lazy, case, randn, uniform, weight

fft, aten = torch.fft, torch.ops.aten
real = torch.view_as_real
ANY = weight(randn(16))
"""A window; a wrong place of it shows."""
WINDOW = weight(uniform(0.5, 1.5, 16))
"""One whose sums are not near zero."""


def of_pairs(name: str, function: Callable[..., Any], *shape: int, **keywords: Any) -> Case:
    """Real [..., 2] to complex, through `function`, and back to real."""

    def call(x: Tensor) -> Any:
        results = function(torch.view_as_complex(x), **keywords)
        results = results if isinstance(results, tuple | list) else [results]
        return tuple(real(z.resolve_conj()) if z.is_complex() else z for z in results)

    return case(name, call, randn(*(shape or (3, 4)), 2))


def of_two(
    name: str, function: Callable[[Tensor, Tensor], Tensor], first: tuple[int, ...], second: tuple[int, ...]
) -> Case:
    def call(x: Tensor, y: Tensor) -> Tensor:
        result = function(torch.view_as_complex(x), torch.view_as_complex(y))
        return real(result) if result.is_complex() else result

    return case(name, call, randn(*first, 2), randn(*second, 2))


def short_time(name: str, length: int = 64, **settings: Any) -> Case:
    settings = {"n_fft": 16, "hop_length": 4, "return_complex": True, **settings}
    return case(name, lambda x, window: torch.stft(x, window=window, **settings).abs(), randn(3, length), ANY)


def masked(x: Tensor, window: Tensor, length: int | None = None) -> Tensor:
    z = torch.stft(x, 16, 4, window=window, return_complex=True)
    return torch.istft(z * torch.sigmoid(z.abs()), 16, 4, window=window, length=length)


def written(z: Tensor) -> list[Tensor]:
    z = z.clone()
    z[:, 0] = 0
    z[1] += z[0] * 2j
    copied = torch.empty_like(z)
    copied[:] = z
    return [z, copied]


def created(z: Tensor) -> list[Tensor]:
    padded = torch.zeros(z.shape[0], 6, dtype=torch.complex64)
    padded[:, 1:5] = z
    copied = torch.empty(z.shape[0], 4, dtype=torch.complex64)
    copied[:] = z * torch.full((z.shape[0], 1), 1 - 2j)
    return [padded, copied, torch.ones(z.shape[0], 2, dtype=torch.complex64) * z[:, :2]]


def rotary(x: Tensor) -> Tensor:
    """Of LLaMA's first implementation."""
    z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    angles = torch.outer(torch.arange(x.shape[1]), 10000.0 ** (-torch.arange(4) / 4.0))
    return real(z * torch.polar(torch.ones_like(angles), angles)).flatten(2)


TO_REAL = {
    "irfft": lambda x: torch.fft.irfft(torch.complex(x, x.flip(-1))),
    "irfft of 6": lambda x: torch.fft.irfft(torch.complex(x, x.flip(-1)), 6, norm="ortho"),
    "irfft of an odd number": lambda x: torch.fft.irfft(torch.complex(x, x.flip(-1)), 7, 1, norm="forward"),
    "irfft of real numbers": lambda x: torch.fft.irfft(x, dim=1),
    "irfft2": lambda x: torch.fft.irfft2(torch.complex(x, x.flip(-1)), (4, 6)),
    "irfftn": lambda x: torch.fft.irfftn(torch.complex(x, x.flip(-1)), dim=(0, 2)),
    "hfft": lambda x: torch.fft.hfft(torch.complex(x, x.flip(-1)), norm="ortho"),
    "hfft2": lambda x: torch.fft.hfft2(torch.complex(x, x.flip(-1)), (3, 8), (2, 1)),
    "hfftn": lambda x: torch.fft.hfftn(torch.complex(x, x.flip(-1)), (5, 4), norm="forward"),
}

ROTATIONS = torch.complex(torch.tensor([[0.5, -1.5, 2.0], [1.0, 0.25, -3.0]]), torch.tensor([[1.0, 2.0, -0.5]] * 2))


CASES = [
    *(
        case(name, lambda x, function=function: real(function(torch.view_as_complex(x))), randn(3, 7, 2, 2)).dynamic(
            {0: {1: "T"}}
        )
        for name, function in {
            "matmul with a constant over a dynamic axis": lambda z: z @ ROTATIONS,
            "constant times places": lambda z: ROTATIONS[:, :1] * torch.arange(z.shape[1]),
            "mean over a dynamic axis": lambda z: z.mean(1),
            "mean over two axes, one dynamic": lambda z: torch.mean(z, (0, -2), keepdim=True),
            "mean over all axes": lambda z: z.mean(),
            "mean of real numbers": lambda z: z.real.mean(1, dtype=torch.complex64),
        }.items()
    ),
    *(
        case(f"{name}, all axes dynamic", f, randn(3, 5, 4)).dynamic({0: {0: "B", 1: "T", 2: "F"}})
        for name, f in TO_REAL.items()
    ),
    short_time("stft"),
    short_time("stft of both sides", onesided=False),
    short_time("stft normalised", normalized=True),
    short_time("stft without middle", center=False),
    short_time("stft with zeros around", pad_mode="constant"),
    short_time("stft free length").dynamic({0: {0: "B", 1: "T"}}),
    case(
        "stft narrow window",
        lambda x, w: torch.stft(x, 16, 5, 10, w, return_complex=True).angle().cos(),
        randn(3, 64),
        weight(randn(10)),
    ),
    case("stft real", lambda x, w: torch.stft(x, 16, window=w, return_complex=False), randn(64), ANY),
    case("stft aten", lambda x: real(aten.stft.default(x, 16, 4, return_complex=True)), randn(3, 64)),
    case("stft aten center", lambda x: real(aten.stft.center(x, 16, 4, return_complex=True)), randn(64)),
    case("istft", masked, randn(3, 64), WINDOW),
    case("istft to a length", masked, randn(3, 64), WINDOW, 61),
    case("istft beyond", masked, randn(3, 64), WINDOW, 75),
    case("istft free length", lambda x, w: masked(x, w, x.shape[-1]), randn(3, 64), WINDOW).dynamic({0: {1: "T"}}),
    case("rfft", lambda x: real(fft.rfft(x)), randn(3, 15)),
    case("rfft angle", lambda x: fft.rfft(x).angle(), randn(3, 16)),
    case("stft angle", lambda x: torch.stft(x, 16, 5, return_complex=True).angle()[:, ::8], randn(3, 64)),
    case("rfft padded", lambda x: fft.rfft(x, n=32, norm="ortho").abs(), randn(3, 15)),
    case("rfft long", lambda x: real(fft.rfft(x)), randn(2, 1200)),
    case("rfft first axis", lambda x: real(fft.rfft(x, dim=0)), randn(6, 5)),
    case("rfft2", lambda x: real(fft.rfft2(x, norm="forward")), randn(3, 6, 10)),
    case("irfft", lambda x: fft.irfft(fft.rfft(x) * 1j, n=15), randn(3, 15)),
    case("irfft long", lambda x: fft.irfft(fft.rfft(x) * (0.5 - 2j)), randn(2, 1200)),
    case("irfft2", lambda x: fft.irfft2(fft.rfft2(x) + 1, s=(6, 10)), randn(3, 6, 10)),
    case("hfft", lambda x: fft.hfft(x), randn(3, 9)),
    case("rfft free length", lambda x: fft.rfft(x).abs(), randn(3, 15)).dynamic({0: {1: "T"}}),
    case("fft free length", lambda x: fft.fftn(x, dim=(1, 2)).real, randn(3, 6, 10)).dynamic({0: {1: "T"}}),
    case("ifft free length", lambda x: fft.ifft(fft.fft(x) * 2j).imag, randn(3, 15)).dynamic({0: {1: "T"}}),
    case("irfft free length", lambda x: fft.irfft(fft.rfft(x) + 2, n=x.shape[1]), randn(3, 15)).dynamic({0: {1: "T"}}),
    case("ortho free length", lambda x: fft.rfft(x, norm="ortho").abs(), randn(3, 15)).dynamic({0: {1: "T"}}),
    case("fft free rows", lambda x: fft.rfft(x).abs(), randn(3, 15)).dynamic({0: {0: "B"}}),
    case("fftn", lambda x: fft.fftn(x, dim=(1, 2)).real, randn(3, 6, 10)),
    case(
        "convolution",
        lambda x, w: fft.irfft(fft.rfft(x, n=40) * fft.rfft(w, n=40), n=40),
        randn(3, 25),
        weight(randn(16)),
    ),
    of_pairs("fft", fft.fft, 3, 12),
    of_pairs("ifft", fft.ifft, 3, 12),
    of_pairs("fft split", fft.fft, 2, 1300),
    case("rotary", rotary, randn(2, 5, 8)),
    case("rotary free length", rotary, randn(2, 5, 8)).dynamic({0: {1: "T"}}),
    case(
        "complex weight",
        lambda x, w: real(torch.view_as_complex(x) * torch.view_as_complex(w)),
        randn(2, 5, 2),
        weight(randn(5, 2)),
    ),
    of_two("mul", torch.mul, (3, 4), (4,)),
    of_two("div", torch.div, (3, 4), (3, 1)),
    of_two("add", lambda a, b: torch.add(a, b, alpha=2 - 1j), (3, 4), (4,)),
    of_two("sub", torch.sub, (3, 4), (4,)),
    of_two("rsub", lambda a, b: aten.rsub(a, b) * (1 - (2 - 1j) * a), (3, 4), (4,)),
    of_two("matmul", torch.matmul, (2, 3, 4), (2, 4, 5)),
    of_two("mm", torch.mm, (3, 4), (4, 5)),
    of_two("mv", torch.mv, (3, 4), (4,)),
    of_two("dot", torch.dot, (4,), (4,)),
    of_two("outer", torch.outer, (4,), (3,)),
    of_two("einsum", lambda a, b: torch.einsum("bf,cf->bc", a, b.conj()), (3, 4), (2, 4)),
    of_two("cat", lambda a, b: torch.cat([a, b, torch.ones(1, 4)]), (3, 4), (2, 4)),
    of_two("stack", lambda a, b: torch.stack([a, b], 1), (3, 4), (3, 4)),
    of_two(
        "stacks",
        lambda a, b: torch.hstack([torch.vstack([a, b]), torch.concat([b, a])]) + torch.dstack([a, b])[0, 0, 0],
        (3, 4),
        (3, 4),
    ),
    of_two("where", lambda a, b: torch.where(a.abs() > 1, a, b), (3, 4), (4,)),
    of_two("equal", lambda a, b: (torch.cat([a, b]) == torch.cat([a, a])) | ((a - b)[:1] != 0), (3, 4), (3, 4)),
    of_two("select_scatter", lambda a, b: torch.select_scatter(a, b, 0, 1), (3, 4), (4,)),
    of_two("slice_scatter", lambda a, b: torch.slice_scatter(a, b, 0, 1), (3, 4), (2, 4)),
    of_two("index_put", lambda a, b: a.index_put((torch.tensor([2, 0]),), b), (3, 4), (2, 4)),
    of_pairs(
        "real factors",
        lambda z: (
            z * 2.5,
            torch.multiply(z, -2),
            torch.true_divide(z, 3),
            z / 3,
            z * torch.arange(4.0),
            torch.arange(4) * z,
            1j / z,
            z + 1,
            1 - z,
        ),
    ),
    of_pairs("parts", lambda z: (z.real, z.imag, z.conj(), z.abs(), z.angle(), z.sgn(), torch.conj_physical(z))),
    of_pairs("functions", lambda z: (z.exp(), z.log(), z.square(), z**3, z.reciprocal(), -z)),
    of_pairs("polar", lambda z: torch.polar(z.abs(), z.angle() + 1)),
    of_pairs("complex", lambda z: torch.complex(z.imag, z.real[0])),
    of_pairs("norm", lambda z: (torch.linalg.vector_norm(z, dim=1), z.abs().sum(), z.mean(), z.sum(0), z.cumsum(1))),
    of_pairs("tests", lambda z: (z.isnan(), z.isinf(), z.isfinite())),
    of_pairs(
        "views",
        lambda z: (
            z.reshape(2, 6),
            z.T,
            z.permute(1, 0),
            z.transpose(0, 1),
            z[None, 1:],
            z[:, -1],
            z.flatten(),
            z.unflatten(1, (2, 2)),
            z.unsqueeze(1).expand(3, 2, 4),
            z.movedim(0, 1),
            z[:, :1].squeeze(1),
            z.view(12),
            z.t(),
            z.T.clone(memory_format=torch.contiguous_format),
            z.T.contiguous(),
            z.conj().resolve_conj(),
            z.diagonal(),
            z.unfold(1, 2, 1),
            z.narrow(0, 1, 2),
        ),
    ),
    of_pairs(
        "choices",
        lambda z: (
            z.flip(0),
            z.roll(1, 1),
            z.repeat(2, 1),
            z.tile(2),
            z[torch.tensor([2, 0])],
            z.index_select(1, torch.tensor([3, 1])),
            z.gather(1, torch.tensor([[3], [0], [1]])),
            z.tril(),
            z.triu(),
            z.diff(),
        ),
    ),
    of_pairs(
        "parts of a list",
        lambda z: (*z.split(2, 1), *z.split([1, 3], 1), *z.chunk(2, 1), *z.unbind(), *z.tensor_split(3, 1)),
    ),
    of_pairs(
        "filled",
        lambda z: (
            z.masked_fill(z.real > 0, 2.0),
            torch.nn.functional.pad(z, (1, 2)),
            torch.zeros_like(z) + 1,
            torch.ones_like(z),
            torch.full_like(z, 2 + 1j),
            z.real.to(torch.complex64),
            z.new_zeros(3, 2) + z[:, 2:],
            z.real.new_zeros(4, dtype=torch.complex64) - z,
        ),
    ),
    of_pairs("written", written),
    of_pairs("created", created).dynamic({0: {0: "B"}}),
    of_pairs("sine", lambda z: z.sin()).refused("aten::sin of complex numbers"),
    of_pairs("root", lambda z: z**0.5).refused("power"),
    case(
        "weight with lazy signs",
        lambda x, w: x @ w,
        randn(3, 8),
        weight(Lazy(lambda: fft.fft(torch.eye(8)).conj().imag)),
    ),
    case("output", fft.rfft, randn(3, 8)).refused("an output is complex"),
]
