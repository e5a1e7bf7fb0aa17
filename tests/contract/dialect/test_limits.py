"""Samples of an archive alone, drawn or given, with the outputs by the definitions of its operators, within limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from t2n_core.engine.processes.memory import limit_memory, memory_limit
from t2n_core.errors import BudgetError, InputError, MalformedArchiveError, MeaningError
from t2n_core.parity.definitions import samples_by_definitions
from t2n_core.parity.evaluation import evaluator as evaluator_module
from t2n_core.parity.evaluation.evaluator import Evaluator

GRAPH = """version 1.0;
extension tract_symbol B;
graph g(x) -> (y)
{
  x = external<scalar>(shape = [B, 3]);
  y = mul(x, 2.0);
}
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "graph.nnef").write_text(GRAPH, "utf-8")
    return tmp_path


def test_inputs_are_drawn_at_several_sizes(archive: Path) -> None:
    samples = samples_by_definitions(archive)
    assert [sample.sizes for sample in samples] == [{"B": 3}] * 2 + [{"B": 5}] * 2 + [{"B": 2}] * 2
    for sample in samples:
        np.testing.assert_allclose(sample.expected[0], 2 * sample.inputs[0], rtol=1e-6)
        assert sample.expected[0].dtype == np.float32


def test_given_inputs_are_taken(archive: Path) -> None:
    x = np.ones((4, 3), np.float32)
    (only,) = samples_by_definitions(archive, [(x,)])
    assert only.inputs[0] is x
    assert only.sizes == {"B": 4}
    assert (only.expected[0] == 2).all()


def test_a_malformed_archive_is_named(archive: Path) -> None:
    (archive / "graph.nnef").write_text(GRAPH.replace("2.0", "w"), "utf-8")
    with pytest.raises(MalformedArchiveError, match=r"is malformed.*no statement defines `w`, in `y = mul") as caught:
        samples_by_definitions(archive)
    assert caught.value.statement == "y = mul(x, w)"


BOMBS = {
    "tile": "a = tile(x, repeats = [100000, 100000]);",
    "pad": "a = pad(x, padding = [(0, 0), (0, 10000000000)]);",
    "doubling": "a0 = concat([x, x], axis = 0);"
    + "".join(f"a{n + 1} = concat([a{n}, a{n}], axis = 0);" for n in range(39))
    + "a = relu(a39);",
}
FRAGMENTS = """version 1.0;
extension KHR_enable_fragment_definitions;

{fragments}
graph g(x) -> (y)
{{
  x = external<scalar>(shape = [1, 3]);
  y = {call}(x);
}}
"""
FRAGMENT = "fragment {name}(x: tensor<scalar>) -> (y: tensor<scalar>)\n{{\n{body}\n}}\n"


@pytest.fixture
def little_memory() -> Iterator[None]:
    before = memory_limit()
    limit_memory(1 << 30)
    yield
    limit_memory(before)


@pytest.mark.parametrize("bomb", list(BOMBS))
def test_a_small_archive_that_takes_much_memory_is_refused(archive: Path, little_memory: None, bomb: str) -> None:
    (archive / "graph.nnef").write_text(GRAPH.replace("y = mul(x, 2.0);", f"{BOMBS[bomb]} y = relu(a);"), "utf-8")
    with pytest.raises(BudgetError, match=r"allocate|memory|too large|too big") as caught:
        samples_by_definitions(archive)
    assert "killed" not in str(caught.value)


def test_an_archive_that_takes_long_is_ended(archive: Path) -> None:
    body = "a = tile(x, repeats = [1000, 1000]);" + "".join(f" c{n} = tanh(a);" for n in range(100))
    (archive / "graph.nnef").write_text(GRAPH.replace("y = mul(x, 2.0);", f"{body} y = relu(c99);"), "utf-8")
    with pytest.raises(BudgetError, match="took longer than 1 seconds, in `"):
        Evaluator.shared().samples(archive, seconds=1.0)


def test_one_process_evaluates_one_archive_after_the_other(archive: Path) -> None:
    evaluator = Evaluator()
    x = np.ones((4, 3), np.float32)
    tensors = evaluator.evaluate(archive, [x], results=["y", "x"])
    assert {name: (tensor.dtype, tensor.array.dtype, tensor.array[0, 0]) for name, tensor in tensors.items()} == {
        "y": (np.float32, np.float64, 2.0),
        "x": (np.float32, np.float64, 1.0),
    }
    assert evaluator._worker is not None
    first = evaluator._worker.pid
    with pytest.raises(MalformedArchiveError, match="`z`"):
        evaluator.evaluate(archive, [x], results=["z"])
    assert len(evaluator.samples(archive)) == 6
    assert evaluator._worker.pid == first
    evaluator._worker.kill()
    assert evaluator.samples(archive, [(x,)])[0].expected[0][0, 0] == 2
    assert evaluator._worker.pid != first
    evaluator.close()


def test_an_operation_that_does_not_end_is_a_budget(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator_module, "_GRACE", 0.1)
    body = "a = tile(x, repeats = [2000, 2000]); y = max_pool(a, size = [1, 200], padding = [(0, 0), (0, 0)]);"
    (archive / "graph.nnef").write_text(GRAPH.replace("y = mul(x, 2.0);", body), "utf-8")
    with pytest.raises(BudgetError, match="took longer than 0 seconds"):
        Evaluator.shared().evaluate(archive, [np.ones((4, 3), np.float32)], seconds=0.4)


def test_a_fragment_that_calls_itself_without_end_is_refused(archive: Path) -> None:
    fragment = FRAGMENT.format(name="f", body="y = f(x);")
    (archive / "graph.nnef").write_text(FRAGMENTS.format(fragments=fragment, call="f"), "utf-8")
    with pytest.raises(BudgetError, match="`f` runs itself"):
        samples_by_definitions(archive)


def test_fragments_expand_within_a_budget(archive: Path) -> None:
    fragments = FRAGMENT.format(name="f0", body="y = relu(x);") + "".join(
        FRAGMENT.format(name=f"f{n}", body=f"a = f{n - 1}(x);\n y = f{n - 1}(a);") for n in range(1, 40)
    )
    (archive / "graph.nnef").write_text(FRAGMENTS.format(fragments=fragments, call="f39"), "utf-8")
    with pytest.raises(BudgetError, match="more than 100,000 times"):
        Evaluator.shared().samples(archive, seconds=2.0)


@pytest.mark.parametrize("shape", ["[1000000, 1000000]", "[-1, 4]", "[1, 1e308]", "[1, 99999999999999999999]"])
def test_inputs_of_absurd_shapes_are_refused(archive: Path, shape: str) -> None:
    (archive / "graph.nnef").write_text(GRAPH.replace("[B, 3]", shape), "utf-8")
    with pytest.raises((InputError, MeaningError)):
        samples_by_definitions(archive)
