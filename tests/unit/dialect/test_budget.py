"""Memory and fragments are counted before an evaluation spends them, and the statement is named."""

from __future__ import annotations

import time

import numpy as np
import pytest

from t2n_core import dialect
from t2n_core.errors import BudgetError
from t2n_core.nnef.reading.archive import ArchiveContent
from t2n_core.nnef.reading.parser import read_text

FRAGMENT = "fragment {name}(x: tensor<scalar>) -> (y: tensor<scalar>)\n{{\n{body}\n}}\n"


def content(body: str, fragments: str = "") -> ArchiveContent:
    head = "version 1.0;\nextension KHR_enable_fragment_definitions;\n" if fragments else "version 1.0;\n"
    x = "x = external<scalar>(shape = [2, 2]);"
    return ArchiveContent(read_text(f"{head}{fragments}graph g(x) -> (y)\n{{\n{x}\n{body}\n}}\n"), {})


def refusal(archive: ArchiveContent) -> BudgetError:
    start = time.process_time()
    with pytest.raises(BudgetError) as caught:
        dialect.evaluate(archive, [np.ones((2, 2), np.float32)], memory=1 << 30)
    assert time.process_time() - start < 1
    return caught.value


WINDOW = "a = unsqueeze(x, axes = [0, 1]); w = sum_reduce(a, axes = [2, 3]);"
HALVES = "a = reshape(x, shape = [4, 1]); (b, c) = split(a, axis = 0, ratios = [1, 1]);"
DOUBLING = "a0 = concat([x, x], axis = 0);" + "".join(f"a{n + 1} = concat([a{n}, a{n}], axis = 0);" for n in range(39))


@pytest.mark.parametrize(
    ("body", "statement"),
    [
        (f"{DOUBLING} y = relu(a39);", "a24 = concat([a23, a23], axis = 0)"),
        ("y = tile(x, repeats = [9000, 9000]);", "y = tile(x, repeats = [9000, 9000])"),
        ("a = pad(x, padding = [(0, 0), (0, 99999999)]); y = neg(a);", "a = pad("),
        (
            "a = tile(x, repeats = [4200, 1]); b = transpose(a, axes = [1, 0]); c = matmul(a, b); y = c + c;",
            "y = add(c, c)",
        ),
        ("a = tile(x, repeats = [6000, 1]); y = matmul(a, a, transposeB = true);", "y = matmul("),
        (
            "a = tile(x, repeats = [3000, 3000]); b = exp(a); c = a - b; d = stack([c, c, b], axis = 0); y = d;",
            "d = st",
        ),
        (f"{WINDOW} y = conv(a, w, padding = [(90000, 90000), (90000, 90000)]);", "y = conv("),
        (f"{WINDOW} y = deconv(a, w, stride = [90000, 90000], padding = [(0, 0), (0, 0)]);", "y = deconv("),
        ("a = unsqueeze(x, axes = [0, 1]); y = nearest_upsample(a, factor = [9000, 9000]);", "y = nearest_upsample("),
        ("a = unsqueeze(x, axes = [0, 1]); y = multilinear_upsample(a, factor = [9000, 9000]);", "y = multilinear_up"),
        (
            "a = tile(x, repeats = [1, 5000]); i = tile(x, repeats = [5000, 1]); y = gather(a, i, axis = 0);",
            "y = gather(",
        ),
        (f"{HALVES} d = tile(b, repeats = [1, 99999999]); y = d;", "d = tile("),
        ("a = unsqueeze(x, axes = [0]); b = tile(a, repeats = [50000000, 1, 1]); y = b;", "b = tile("),
        (
            "a = tile(x, repeats = [90000, 1]); b = unsqueeze(a, axes = [1]); c = unsqueeze(a, axes = [0]); y = b * c;",
            "y",
        ),
    ],
)
def test_memory_is_refused_before_it_is_spent(body: str, statement: str) -> None:
    error = refusal(content(body))
    assert error.statement.startswith(statement)
    assert "GB of memory, more than 1.07 GB" in error.message


def test_memory_inside_fragments_is_counted() -> None:
    fragments = FRAGMENT.format(name="f", body="a = tile(x, repeats = [9000, 9000]);\n y = sum_reduce(a, axes = [0]);")
    error = refusal(content("y = f(x);", fragments))
    assert error.statement.startswith("a = tile(")


def test_memory_of_loops_is_counted() -> None:
    fragments = FRAGMENT.format(name="body", body="y = tile(x, repeats = [1, 4000]);")
    loop = (
        "a = tile(x, repeats = [10000, 1]);\n"
        'y = tract_core_scan(body = "body", scan = [("x", a, 0, 1)], full = [], state = [], '
        'output = [("y", "full", 0, 1)]);'
    )
    error = refusal(content(loop, fragments))
    assert error.statement.startswith("y = tract_core_scan(")


def test_views_take_no_memory() -> None:
    views = "".join(f"a{n + 1} = transpose(a{n}, axes = [1, 0]);" for n in range(40))
    archive = content(f"a0 = tile(x, repeats = [200, 200]); {views} y = copy(a40);")
    (tensor,) = dialect.evaluate(archive, [np.ones((2, 2), np.float32)], memory=400 * 400 * 8 * 3).values()
    assert tensor.shape == (400, 400)
    assert (
        "a = tile("
        in refusal(
            content("a = tile(x, repeats = [9000, 9000]); y = slice(a, axes = [0], begin = [0], end = [1]);")
        ).message
    )


def test_values_that_no_statement_reads_later_take_no_memory() -> None:
    chain = "a0 = tile(x, repeats = [200, 200]);" + "".join(f"a{n + 1} = neg(a{n});" for n in range(40))
    archive = content(f"{chain} y = relu(a40);")
    (tensor,) = dialect.evaluate(archive, [np.ones((2, 2), np.float32)], memory=400 * 400 * 8 * 3).values()
    assert tensor.shape == (400, 400)


def test_fragments_are_counted_before_they_run() -> None:
    fragments = FRAGMENT.format(name="f0", body="y = relu(x);") + "".join(
        FRAGMENT.format(name=f"f{n}", body=f"a = f{n - 1}(x);\n y = f{n - 1}(a);") for n in range(1, 40)
    )
    error = refusal(content("y = f39(x);", fragments))
    assert error.message == "fragments are run more than 100,000 times, in `y = f39(x)`"
    (few,) = dialect.evaluate(content("y = f9(x);", fragments), [np.full((2, 2), -1, np.float32)]).values()
    assert (few.array == 0).all()


def test_a_fragment_that_runs_itself_is_an_error() -> None:
    fragments = FRAGMENT.format(name="f", body="y = g(x);") + FRAGMENT.format(name="g", body="y = f(x);")
    assert refusal(content("y = f(x);", fragments)).message == "the fragment `f` runs itself, in `y = f(x)`"


SDPA = 'y = tract_transformers_sdpa(a, a, a, datum_type = "f32", acc_datum_type = "f32", is_causal = false);'
ROWS = "a = tile(x, repeats = [3, 1]);"
IMAGE = "b = unsqueeze(x, axes = [0, 1]); a = tile(b, repeats = [1, 6, 2, 2]); w = tile(b, repeats = [{}, {}, 1, 1]);"


@pytest.mark.parametrize(
    ("body", "refused", "count"),
    [
        ("b = matmul(x, x); y = relu(b);", "b = matmul(x, x)", 2**3),
        (f"{ROWS} y = matmul(a, a, transposeA = true);", "y = matmul(", 2 * 6 * 2),
        (f"{ROWS} y = matmul(a, a, transposeB = true);", "y = matmul(", 6 * 2 * 6),
        (f"{ROWS} y = linear(a, a);", "y = linear(", 6 * 2 * 6),
        ('y = tract_core_einsum([x, x, x], expr = "ab,bc,cd->", acc = "f32", output = "");', "y = tract_", 2**4),
        (f"{IMAGE.format(4, 6)} y = conv(a, w, padding = [(0, 0), (0, 0)]);", "y = conv(", 4 * 9 * 6 * 4),
        (f"{IMAGE.format(6, 1)} y = conv(a, w, padding = [(0, 0), (0, 0)], groups = 0);", "y = conv(", 6 * 9 * 4),
        (f"{IMAGE.format(4, 3)} y = deconv(a, w, groups = 2);", "y = deconv(", 6 * 16 * 2 * 4),
        (f"a = unsqueeze(x, axes = [0]); {SDPA}", "y = tract_", 2 * 2**3),
    ],
)
def test_products_that_no_machine_computes_in_time_are_refused(body: str, refused: str, count: int) -> None:
    x = [np.ones((2, 2), np.float32)]
    assert dialect.evaluate(content(body), x, timeout=60)
    with pytest.raises(BudgetError, match=f"{count} multiply-adds take longer than 1e-12 seconds") as caught:
        dialect.evaluate(content(body), x, timeout=1e-12)
    assert caught.value.statement.startswith(refused)


def test_products_of_loops_are_counted_for_each_step() -> None:
    fragments = FRAGMENT.format(name="body", body="y = matmul(x, x, transposeB = true);")
    loop = (
        "a = tile(x, repeats = [25, 1]);\n"
        'b = tract_core_scan(body = "body", scan = [("x", a, 0, 1)], full = [], state = [], '
        'output = [("y", "full", 0, 1)]);\n y = matmul(x, x);'
    )
    with pytest.raises(BudgetError, match="100 multiply-adds take longer") as caught:
        dialect.evaluate(content(loop, fragments), [np.ones((2, 2), np.float32)], timeout=1e-12)
    assert caught.value.statement.startswith("y = matmul(x, x, transposeB")
