"""The example call: objects among the arguments, results that are no tensors, what PyTorch refuses, what stays."""

from __future__ import annotations

import enum
import functools
import importlib
import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

from t2n_core import ExportResult, ModelExport, TractNNEF, export_model_to_nnef
from t2n_core.check.sampling.sampler import Sampler, double_outputs
from t2n_core.errors import CaptureError, DroppedResultWarning, InputError, T2NError, UnsupportedOpsError
from t2n_core.generative.calls import cache_argument
from t2n_core.torch_graph.frontend.inputs import bind_inputs
from t2n_core.torch_graph.frontend.sources import source_of
from tests.nets import net_of
from tests.releases import NEWEST

WAYS = pytest.mark.parametrize("capture", ["export", "trace"])


def exported(model: nn.Module, args: Any, tmp_path: Path, **options: Any) -> ExportResult:
    return ModelExport(model, args, **options).to(TractNNEF(NEWEST), tmp_path / "m.tgz")


class Cache:
    """Keeps what came before, as the caches of transformers do; PyTorch knows no pytree of it."""

    def __init__(self, past: torch.Tensor | None = None) -> None:
        self.layers = [SimpleNamespace(past=past)]

    def longer(self, x: torch.Tensor) -> torch.Tensor:
        (layer,) = self.layers
        layer.past = x if layer.past is None else torch.cat([layer.past, x], 1)
        return layer.past


class Slotted:
    __slots__ = ("past",)

    def __init__(self, past: torch.Tensor) -> None:
        self.past = past


class Remembers(nn.Module):
    def forward(self, x: torch.Tensor, cache: Any = None) -> dict[str, Any]:
        past = cache.longer(x) if isinstance(cache, Cache) else x
        return {"total": past.sum(1), "cache": cache}


PAST = torch.randn(2, 4)


@WAYS
@pytest.mark.parametrize("where", ["args", "kwargs"])
@pytest.mark.parametrize(
    "make",
    [
        Cache,
        Slotted,
        lambda past: {"inner": [Cache(past)]},
        lambda past: {1, past},
        lambda past: functools.partial(torch.add, past),
        lambda past: lambda x: x + past,
        lambda past: Cache(past).longer,
        lambda past: nn.Linear(4, 4),
    ],
    ids=["attributes", "slots", "inside", "set", "partial", "function", "method", "module"],
)
def test_an_object_that_holds_tensors_is_refused(make: Callable[..., Any], where: str, capture: str) -> None:
    cache, x = make(PAST), torch.randn(2, 3)
    arguments: dict[str, Any] = {"args": (x, cache)} if where == "args" else {"args": (x,), "kwargs": {"cache": cache}}
    with pytest.raises(InputError, match=r"`cache\w*` of Remembers is a \w+ that holds tensors") as caught:
        ModelExport(Remembers(), **arguments, capture=capture)
    assert caught.value.stage == "input"
    assert 'state="' in str(caught.value.hint)


def test_scripts_and_programs_refuse_objects_that_hold_tensors() -> None:
    x = torch.randn(2, 3)
    with pytest.raises(InputError, match="is a Cache that holds tensors"):
        ModelExport(torch.jit.script(nn.ReLU()), (Cache(PAST),))
    with pytest.raises(InputError, match="`scale` of the exported program is a Cache that holds tensors"):
        ModelExport(torch.export.export(net_of(lambda _, x, scale=None: x * 2.0), (x, 1.0)), (x, Cache(PAST)))


class Registered(Cache):
    """A cache of which PyTorch knows the pytree, without names of its parts."""


pytree.register_pytree_node(
    Registered, lambda cache: ([cache.layers[0].past], None), lambda parts, _: Registered(next(iter(parts)))
)


@WAYS
def test_tensors_of_a_registered_class_are_inputs_and_outputs(capture: str, tmp_path: Path) -> None:
    cache = Registered(PAST)
    result = exported(Remembers(), (torch.randn(2, 3), cache), tmp_path, capture=capture)
    assert result.input_names == ["x", "cache_0"]
    assert result.output_names == ["total", "cache_0_of_model"]
    result.assert_parity("approximate")
    assert cache.layers[0].past is PAST


def test_the_cache_of_transformers_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed; `tox -e models` has it")
    importlib.import_module("conformance.cases.models.libraries")
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM  # type: ignore[import-not-found,unused-ignore]

    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=50, **sizes)).eval()
    ids = torch.randint(3, 50, (1, 5))
    argument = cache_argument(model)
    with torch.no_grad():
        cache = getattr(model(input_ids=ids, use_cache=True), argument)
    with pytest.raises(InputError, match=f"`{argument}` of LlamaForCausalLM is a DynamicCache that holds tensors"):
        exported(model, {"input_ids": ids}, tmp_path, kwargs={argument: cache})
    assert cache.get_seq_length() == 5
    empty = DynamicCache()
    with pytest.warns(DroppedResultWarning, match=rf"not in the archive: {argument}: DynamicCache$"):
        result = exported(model, {"input_ids": ids}, tmp_path, kwargs={argument: empty})
    assert result.input_names == ["input_ids"]
    result.assert_parity("approximate")
    assert empty.get_seq_length() == 0


class Kind(enum.Enum):
    DOUBLE = 2.0


@dataclass
class Settings:
    kind: Kind
    names: tuple[str, ...] = ("a", "b")
    offset: float | None = None


SENTINEL = object()


class Configured(nn.Module):
    def forward(self, x: torch.Tensor, settings: Any, config: Any, sentinel: object, flag: bool) -> torch.Tensor:
        assert sentinel is SENTINEL
        config.calls += 1
        return x * settings.kind.value + config.calls if flag else x


@WAYS
def test_values_without_tensors_are_constants_and_stay_as_they_are(capture: str, tmp_path: Path) -> None:
    config = SimpleNamespace(calls=1, words={"a": [1]})
    arguments = (torch.randn(2, 3), Settings(Kind.DOUBLE), config, SENTINEL, True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = exported(Configured(), arguments, tmp_path, capture=capture)
    assert result.input_names == ["x"]
    result.assert_parity("close")
    assert config == SimpleNamespace(calls=1, words={"a": [1]})


OTHERS = r"not in the archive: \[1\]\.name: str, \[3\]: Cache$"


@WAYS
def test_results_that_are_neither_tensors_nor_numbers_are_named_once(capture: str, tmp_path: Path) -> None:
    net = net_of(lambda _, x: (x * 2.0, {"name": "double", "more": [x + 1.0, 3]}, None, Cache(x)))
    export = ModelExport(net, (torch.randn(2, 3),), capture=capture)
    with pytest.warns(DroppedResultWarning, match=OTHERS) as seen:
        export.to(TractNNEF("0.21.19"), tmp_path / "m.tgz")
    assert [w.filename for w in seen if w.category is DroppedResultWarning] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error", DroppedResultWarning)
        result = export.to(TractNNEF(NEWEST), tmp_path / "m.tgz")
    assert result.output_names == ["output_0", "output_1", "output_2"]
    result.assert_parity("exact")


def test_numbers_among_the_results_of_scripts_and_programs_are_outputs(tmp_path: Path) -> None:
    class Numbers(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int, torch.Tensor]:
            return x * 2.0, 3, x + 1.0

    x = torch.randn(2, 3)
    for model in (torch.jit.script(Numbers()), torch.export.export(Numbers(), (x,))):
        result = exported(model, (x,), tmp_path)
        assert result.output_names == ["output_0", "output_1", "output_2"]
        result.assert_parity("exact")


class Nested(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[Any, ...]:
        return x * 2.0, (x * 3.0, {"far": x * 4.0})


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["b", "tup"], ["b", "tup_0", "tup_1_far"]),
        (["a", "b", "c"], ["a", "b", "c"]),
        (None, ["output_0", "output_1", "output_2"]),
    ],
)
def test_output_names_are_those_of_tensors_or_of_results(given: Any, names: list[str], tmp_path: Path) -> None:
    result = exported(Nested(), (torch.randn(2, 3),), tmp_path, output_names=given)
    assert result.output_names == names
    result.assert_parity("exact")


def test_another_number_of_output_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1 output names for 3 outputs in 2 results"):
        exported(Nested(), (torch.randn(2, 3),), tmp_path, output_names=["a"])


# ------------------------------------------------------------------------------------------- the caller's arguments
class Changes(nn.Module):
    """Writes into whatever it is given, and computes from what was there."""

    def forward(self, x: torch.Tensor, states: list[Any], named: dict[str, Any], config: Any) -> torch.Tensor:
        states.append(x)
        offset = named.pop("offset")
        config.words.append("seen")
        return x * float(len(states)) + offset + float(len(config.words))


@WAYS
def test_arguments_that_a_model_changes_stay_as_they_are(capture: str, tmp_path: Path) -> None:
    x, states, named_tensors = torch.randn(2, 3), [torch.ones(3)], {"offset": torch.full((3,), 0.5)}
    config = SimpleNamespace(words=["first"])
    result = exported(
        Changes(), (x, states), tmp_path, kwargs={"named": named_tensors, "config": config}, capture=capture
    )
    result.assert_parity("close")
    assert (len(states), list(named_tensors), config.words) == (1, ["offset"], ["first"])


class Writes(nn.Module):
    def forward(self, x: torch.Tensor, steps: torch.Tensor, *, past: torch.Tensor) -> torch.Tensor:
        past.mul_(2.0)
        steps += 1
        return x.add_(1.0) + past + steps


@WAYS
def test_tensors_that_a_model_writes_into_stay_as_they_are(capture: str, tmp_path: Path) -> None:
    tensors = [torch.ones(3), torch.ones(3, dtype=torch.int64), torch.ones(3)]
    x, steps, past = tensors
    with pytest.raises(CaptureError, match=r"writes into its input|functional graph"):
        exported(Writes(), (x, steps), tmp_path, kwargs={"past": past}, capture=capture)
    call = bind_inputs(Writes(), (x, steps), {"past": past})
    sampler = Sampler(source_of(Writes()), call, [tuple(tensor.shape) for tensor in tensors], {})
    for sample in sampler.samples():
        double_outputs(lambda args, kwargs: Writes()(*args, **kwargs), call, sample)
    assert all(torch.equal(tensor, torch.ones(3, dtype=tensor.dtype)) for tensor in tensors)


# ------------------------------------------------------------------------------------------------ what PyTorch refuses
class Scores(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 0.0
        return self.layer(x)


REFUSED: dict[str, tuple[nn.Module, torch.Tensor, str]] = {
    "double layer": (nn.Linear(4, 3).double(), torch.randn(2, 4), "must have the same dtype"),
    "integers": (nn.Linear(4, 3), torch.ones(2, 4, dtype=torch.int64), "must have the same dtype"),
    "shape": (nn.Linear(4, 3), torch.randn(2, 5), "shapes cannot be multiplied"),
    "rank": (nn.Conv1d(4, 3, 2), torch.randn(2, 2, 4, 5), "Expected 2D"),
    "floats as indices": (nn.Embedding(4, 3), torch.randn(3), "scalar types: Long, Int"),
}


@WAYS
@pytest.mark.parametrize("name", list(REFUSED))
def test_what_pytorch_refuses_is_its_error(name: str, capture: str, tmp_path: Path) -> None:
    layer, x, message = REFUSED[name]
    export = ModelExport(nn.Sequential(layer), (x,), capture=capture)
    for _ in range(2):
        with pytest.raises(InputError, match=message) as caught:
            export.to(TractNNEF(NEWEST, check_io=False), tmp_path / "m.tgz")
        assert caught.value.stage == "input"
        assert "bug of the exporter" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_what_only_the_check_can_see_is_the_error_of_pytorch(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="index out of range") as caught:
        export_model_to_nnef(nn.Embedding(4, 3), (torch.tensor([7]),), tmp_path / "m.tgz", TractNNEF(NEWEST))
    assert caught.value.stage == "input"
    assert list(tmp_path.iterdir()) == []


def test_an_export_never_runs_a_model_that_it_can_write(tmp_path: Path) -> None:
    calls = []

    class Counts(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            calls.append(type(x))
            return x * 2.0

    example = torch.tensor([[0.5, -1.5, 2.0], [-0.25, 1.0, -2.0]])  # others may lead to another draw of inputs
    result = exported(Counts(), (example,), tmp_path)
    assert torch.Tensor not in calls
    result.assert_parity("exact")
    assert calls.count(torch.Tensor) == 2, "the example, and one set of inputs apart from it"


def test_a_model_that_runs_keeps_the_error_of_the_export(tmp_path: Path) -> None:
    torch.manual_seed(3)
    state = torch.get_rng_state()
    export = ModelExport(net_of(lambda _, x: torch.linalg.eigvals(x + torch.rand(3)).real), (torch.eye(3),))
    errors: list[T2NError] = []
    for version in ("0.21.19", NEWEST):
        with pytest.raises(UnsupportedOpsError) as caught:
            export.to(TractNNEF(version), tmp_path / "m.tgz")
        errors.append(caught.value)
    assert len(errors) == 2
    assert torch.equal(torch.get_rng_state(), state)


def test_buffers_that_the_run_writes_stay_as_they_are(tmp_path: Path) -> None:
    model = Scores()
    before = model.calls
    outcome = exported(model, (torch.ones(2, 4, dtype=torch.float64),), tmp_path).check_parity()
    assert "must have the same dtype" in str(outcome)
    exported(model, (torch.randn(2, 4),), tmp_path).assert_parity("approximate")
    assert model.calls is before
    assert not model.calls.any()


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_a_tensor_that_is_given_twice_is_two_inputs(tmp_path: Path, capture: str) -> None:
    both = net_of(
        lambda self, query, keys: query * 2 + keys[0] * 3 + keys[1] * self.weight,
        weight=nn.Parameter(torch.randn(3, 4)),
    )
    model, x = both.eval(), torch.randn(3, 4)
    for arguments in ((x, [x, x]), (model.weight, [x, model.weight])):
        export = ModelExport(model, arguments, capture=capture)
        export.to(TractNNEF(NEWEST, check_io=False), tmp_path / "m.tar").assert_parity("approximate")
