"""From which release on tract does what: every boundary that decides how a statement is written.

What it must not be given at all is in `tools/spec_sources/hazards.toml`, what it has in `tract_operators.tsv`.
"""

from __future__ import annotations

from packaging.version import Version

BOUNDED_SIZES = Version("0.21.6")
"""The first release that reads what is known of a size."""
CHECKED_SCENARIOS = Version("0.21.8")
"""The first release that refuses sizes which none of the archive's scenarios allows."""
SOLVED_SIZES = Version("0.21")
"""The first release that finds T where an extent is `T + 1`; before, only from `T` and `2 * T`."""
SIZES_AS_BOUNDS = Version("0.19.6")
"""Before, the bounds of `slice` are numbers only."""
EXTREMES = Version("0.21.7")
"""The first release that reads `min` and `max` of sizes."""
CLAMPED_ENDS = (Version("0.21.6"), Version("0.23.0"))
"""From the first to before the second, `slice` of a dynamic axis T with `end = 3` has the extent min(T, 3) in the
engine, which then fits nothing that is written for 3; so of 64 rows with `end = T`, and for `begin`."""
EMPTY_RESHAPES = (Version("0.21.6"), Version("0.23.0"))
"""From the first to before the second, a `reshape` of a tensor without elements is an error."""
SUBTRACTED_QUOTIENTS = Version("0.21.6")
"""From then on the engine does not see that two sizes with a quotient subtracted are equal; from 0.23.0 on it takes
`T - T / 2` for `T / 2`, which is one less where T is odd."""
QUOTIENTS_AS_BOUNDS = Version("0.23.0")
"""From then on the engine takes minutes for the extent of a `slice` from one quotient to another."""
RESHAPES_INTO_SCANS = (Version("0.23.0"), Version("0.23.9"))
"""From the first to before the second, the engine moves a `reshape` of a scan's result into the scan, and fails."""

RESHAPES_INTO_SUMS = (Version("0.20"), Version("0.20.19"))
"""From the first to before the second, the engine moves a `reshape` of a sum into the product that is a part of it, and
then reads and writes elsewhere: wrong numbers, or it dies."""

BATCHED_CONSTANTS = Version("0.20")
"""Before, `matmul` reads beyond an operand whose batch is repeated to that of a constant."""
PRODUCTS_APART = Version("0.20")
"""Before, a `matmul` over a dynamic axis is one product for each index of the axes in front."""
SUMS_IN_SINGLE = Version("0.21.13")
"""Before, products of float16 are summed up in float16, where PyTorch takes float32: all of them, from 0.21.2 to 0.21.7
those of a matrix and a vector. Convolutions still are."""
ROWS_OVERRUN = Version("0.23.0")
"""Before, `conv` over two axes writes beyond its memory where a window begins behind the end of a row."""
PRODUCTS_OF_EQUALS = Version("0.21.8")
"""Before, a `matmul` over an axis whose size is spelled otherwise in the second operand is of the first element alone,
or no product at all."""
REWRITTEN_PRODUCTS = Version("0.21.12")
"""From then on the engine takes a `tile` off a product's operand although the result then lacks the size, and folds
a `reshape` of one operand's batch into the other operand although that has one element there."""

BLOCKS, BLOCKS_IN_HALVES = Version("0.21.6"), Version("0.21.11")
"""The first releases that read Q4_0 in tract's own layout, and in that of llama.cpp."""

SMALL_FIRST = Version("0.21.6")
"""Before, a number or a stretched tensor is fast as the first operand (12 and 1.5 times), since only then the engine
works in the memory of the second one, without going through it axis by axis."""
SUMS_OF_AXES = Version("0.21.10")
"""Before, a sum over several axes is one sum after the other."""
FAST_NORMS = Version("0.23.1")
"""From then on the norm over the last axis, which the engine recognises, is faster than its parts."""
SWAPPED_SUB = (Version("0.21.8"), Version("0.21.11"))
"""From the first to before the second, `sub` of few elements minus many gives the negative."""
LONE_AXES = (Version("0.21.8"), Version("0.23.0"))
"""From the first to before the second, `add`, `mul` and the like, of many floats, are computed for a part of the
elements only, or beyond their memory, where an axis of one element was inserted into the first operand: the engine
takes the axis' stride, which is that of the next axis, for the number of elements behind it."""
SIZES_AS_FORMULAS = Version("0.23.0")
"""From then on the engine follows numbers made of a size as formulas in whole numbers: half of 5 is 2."""
FOLDED_CONDITIONS = Version("0.23.0")
"""From then on what is 0 or 1 everywhere, of a size known later (`ones(T)`), becomes one element as an operand of
`mul`, `div`, `pow`, `and` and as a condition, although the result may have its shape from it. In all releases `pow` and
the `div` of integers do so with a second operand that is full of one number."""
EMPTY_SUMS = (Version("0.21.6"), Version("0.23.5"))
"""Before the first and from the second on, a sum of floats along an axis without elements takes the engine down; from
the second on the last axis only."""
DIVIDED_BY_POWERS = Version("0.23.9")
"""Before, the `div` of integers by a power of two that is known rounds down: the engine makes a shift of it."""
MIXED_PRODUCT = Version("0.21.6")
"""`mul` and `div` of floats misread a second operand whose stretched axes are neither all in front nor all behind."""
