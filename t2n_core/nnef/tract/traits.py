"""The behaviours of tract's releases that decide how operations are written, each with a name.

What a release computes from constants before the first run is in `constants.py`. An operation that it computes wrongly,
or that must not be written for it, is an erratum, in `quirks/`, with its releases. The operators of a release are in
`tools/spec_sources/tract_operators.tsv`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, fields
from typing import Any

from packaging.version import Version

from t2n_core.nnef.releases import Releases

_RANGES = "releases"


def _in(*ranges: Releases) -> Any:
    return field(metadata={_RANGES: ranges})


def _since(first: str, before: str | None = None) -> Any:
    return _in(Releases.of(first, before))


def _before(first_without: str) -> Any:
    return _in(Releases.of(None, first_without))


@dataclass(frozen=True, slots=True)
class TractTraits:
    """The behaviours of one release."""

    # What the optimiser leaves as it is.
    keeps_single_concats: bool = _before("0.21.6")
    """A `concat` of one value stays, and no `reshape` of its axis is moved across it; later it is removed."""

    splits_values_at_slices: bool = _in(Releases.of("0.21.11", "0.23.0"))
    """A value that only slices of one axis read is split at their bounds, one of which has to be 0."""
    slices_broadcast_operands: bool = _before("0.19.3")
    """A slice is moved before an operator, and then takes from an operand of one element along its axis as well."""
    fails_at_nested_slices: bool = _in(Releases.of("0.21.11", "0.21.14"), Releases.of("0.22", "0.22.3"))
    """A slice that is moved up to another one of the same axis replaces it, whose length is another."""

    # Support of symbolic sizes.
    reads_size_bounds: bool = _since("0.21.6")
    """Plain assertions on symbols, such as `tract_assert T >= 1`, and `tract_core_dyn_slice`."""
    checks_scenarios: bool = _since("0.21.8")
    """Sizes that none of the archive's scenarios allows are refused."""
    simplifies_for_scenarios: bool = _since("0.23.0")
    """Each size is simplified once more for each scenario, in many passes: two scenarios double the time of loading."""
    checks_scenarios_in_experts: bool = _since("0.23.9")
    """Each product of `tract_moe_ffn` evaluates all scenarios again: 10 % of a decoder's time for a token."""
    checks_scenarios_in_steps: bool = _since("0.21.8", "0.23.0")
    """Each step of a `tract_core_scan` evaluates all scenarios again, if its operands have a dynamic size besides the
    number of steps: 100 to 150 µs where there are several symbols."""
    reads_equalities: bool = _since("0.21.7")
    """Assertions with `==`."""
    solves_sums: bool = _since("0.21")
    """T is inferred from an extent `T + 1`; releases without it infer T from `T` and `2 * T` alone."""
    slices_by_sizes: bool = _since("0.19.6")
    """The bounds of `slice` may be sizes; in releases without it they are integers."""
    has_extremes: bool = _since("0.21.7")
    """`min` and `max` of sizes."""
    streams_reshapes: bool = _since("0.23.0")
    """A reshape may divide the steps of a stream, or take several together."""
    streams_gathers: bool = _since("0.23.0")
    """A gather along another axis than that of the stream."""

    # Errors with symbolic sizes.
    clamps_slice_ends: bool = _since("0.21.6", "0.23.0")
    """The extent of `slice(x, end=3)` on a dynamic axis T is taken for min(T, 3), so that no operation written for
    3 fits. The same holds for `end=T` on an axis of 64, and for `begin`."""
    fails_on_empty_reshapes: bool = _since("0.21.6", "0.23.0")
    """A `reshape` of a tensor without elements is an error."""
    merges_quotients: bool = _since("0.21.6")
    """Two equal sizes with a quotient subtracted are not recognised as equal; from 0.23.0 on `T - T / 2` is taken for
    `T / 2`, which is one less where T is odd."""
    is_slow_between_quotients: bool = _since("0.23.0")
    """The extent of a `slice` from one quotient to another takes minutes."""
    follows_sizes: bool = _since("0.23.0")
    """Scalars computed from a symbolic size stay symbolic integer expressions: 5 / 2 is 2. The count of a `mean_reduce`
    over dynamic axes is taken for a mask, of whose expressions a net of 50 layers makes the loading take minutes."""
    leaves_sizes_unsolved: bool = _since("0.23.0")
    """An axis of `2 * T` with an odd size leaves T unsolved, and is not compared with the T of a later axis."""

    # Errors with fixed symbols.
    keeps_slices_symbolic: bool = _in(Releases.of("0.21.8", "0.23.0"))
    """The dynamic extent of a slice stays symbolic when symbols are given a value before the model is decluttered, and
    no longer fits other extents."""
    refuses_nan_constants: bool = _in(Releases.of("0.21.6", "0.22"))
    """A constant of one element that is NaN does not equal itself when symbols are given a value. Before 0.21.6 it
    cannot be written otherwise."""

    # Errors with values.
    shifts_for_powers: bool = _before("0.23.9")
    """The `div` of integers by a constant power of two is rewritten to a shift, which rounds down."""
    sums_float16_in_float16: bool = _before("0.21.13")
    """Products of float16 are summed in float16, where PyTorch uses float32: all of them, from 0.21.2 to 0.21.7 those
    of a matrix and a vector. Convolutions do so in every release."""

    ends_sigmoid_early: bool = _since("0.23.6")
    """`sigmoid` is 4.8e-7 for all x below -14.5; in releases before at most 2^-25 for those below -18.6."""

    # Weights.
    reads_q40: bool = _since("0.21.11")
    """Matrices in blocks of 4 bits: in products, and gathers of their rows. Releases from 0.21.6 on have another
    layout, and no kernel for it with many row counts."""
    convolves_q40: bool = _since("0.21.12")
    """Kernels in blocks of 4 bits, in files of the kernel's rank."""

    # Speed.
    splits_dynamic_products: bool = _before("0.20")
    """A `matmul` over a dynamic axis is split into one product per index of the leading axes."""
    wants_small_first: bool = _before("0.21.6")
    """A scalar or a broadcast tensor is fast as the first operand (12 and 1.5 times), since only then the engine works
    in place on the second one, without iterating over it axis by axis."""
    sums_axes_at_once: bool = _since("0.21.10")
    """A sum over several axes is one pass; in releases without it, one sum after the other."""
    multiplies_float16_by_float32: bool = _in(Releases.of("0.21.13", "0.22"), Releases.of("0.23.0", None))
    """A `tract_core_einsum` of float16 and float32, summed in float32, takes no longer than one of float32 alone, and
    needs no cast. The releases between compute it without the processor's vector instructions, 30 times slower."""
    vectorises_equal_shapes: bool = _since("0.23.0")
    """Elementwise operations on two tensors of the same shape take a third of the time of those with an operand that is
    repeated in blocks of a dynamic size."""
    has_fast_exp: bool = _since("0.23.7")
    """`exp` uses the processor's vector instructions, in an eighth of the time."""
    copies_gathers: bool = _since("0.23.9")
    """A `gather` copies what lies inside its axis in one piece, not element by element."""
    has_upsample: bool = _since("0.23.8")
    """A `tract_core_resize` that repeats elements copies them in one pass, not by a `tile` for each axis."""
    sums_short_rows: bool = _since("0.23.5")
    """A sum over the last axis alone takes at most 1.15 of the time of one next to an axis of size 1, if the axis has
    up to 64 elements; a longer one takes twice the time."""
    fuses_norms: bool = _since("0.23.1")
    """The norm over the last axis is recognised, and faster than its parts."""


@functools.cache
def traits_of(version: Version) -> TractTraits:
    """Return the behaviours of this release."""
    return TractTraits(
        **{f.name: any(version in release_range for release_range in f.metadata[_RANGES]) for f in fields(TractTraits)}
    )


def first_release(trait: str) -> str:
    """Return the first release with a behaviour, for messages. Raises KeyError if there is no such behaviour."""
    ranges = {f.name: f.metadata[_RANGES] for f in fields(TractTraits)}[trait]
    return str(ranges[0].since)
