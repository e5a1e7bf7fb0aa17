"""Nothing of a capture stays in a model: its caches hold real tensors afterwards, also after a refusal."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.capture.containers import preserve_containers
from t2n_core.torch_graph.capture.tracer import TorchModuleTracer, bind_inputs

table: torch.Tensor | None = None
tables: dict[int, torch.Tensor] = {}
namespace: Any = types.SimpleNamespace(table=None)


@functools.lru_cache(None)
def cached(size: int) -> torch.Tensor:
    return torch.arange(size) * 1.0


@functools.lru_cache(4)
def cached_in_a_list(size: int) -> list[torch.Tensor]:
    return [torch.arange(size) * 1.0]


class LoadedOnRequest(dict[str, Any]):
    """A mapping in the manner of transformers' `MODEL_MAPPING`: looking through it would import a library."""

    def _refuse(self, *_: Any) -> Any:
        raise ValueError("a model that is not installed was loaded")

    values = items = keys = __iter__ = __len__ = _refuse


on_request = LoadedOnRequest(a=torch.ones(1))


def in_a_global(size: int) -> torch.Tensor:
    global table
    if table is None:
        table = torch.arange(size) * 1.0
    return table


def in_a_dict(size: int) -> torch.Tensor:
    if size not in tables:
        tables[size] = torch.arange(size) * 1.0
    return tables[size]


def in_a_namespace(size: int) -> torch.Tensor:
    if namespace.table is None:
        namespace.table = torch.arange(size) * 1.0
    return namespace.table  # type: ignore[no-any-return]


def in_a_default(size: int, cache: dict[int, torch.Tensor] = {}) -> torch.Tensor:  # noqa: B006
    return cache.setdefault(size, torch.arange(size) * 1.0)


def in_a_closure() -> Callable[[int], torch.Tensor]:
    cached: torch.Tensor | None = None

    def compute(size: int) -> torch.Tensor:
        nonlocal cached
        if cached is None:
            cached = torch.arange(size) * 1.0
        return cached

    return compute


class Helper:
    """A helper that is no module, as rotary helpers often are."""

    def __init__(self) -> None:
        self.table: torch.Tensor | None = None

    def __call__(self, size: int) -> torch.Tensor:
        if self.table is None:
            self.table = torch.arange(size) * 1.0
        return self.table


class Slots:
    __slots__ = ("table",)

    def __init__(self) -> None:
        self.table: torch.Tensor | None = None

    def __call__(self, size: int) -> torch.Tensor:
        if self.table is None:
            self.table = torch.arange(size) * 1.0
        return self.table


class Shared:
    table: torch.Tensor | None = None

    def __call__(self, size: int) -> torch.Tensor:
        if Shared.table is None:
            Shared.table = torch.arange(size) * 1.0
        return Shared.table


class Caching(nn.Module):
    """Adds what a function keeps; decides on data if it is to be refused."""

    def __init__(self, function: Callable[[int], torch.Tensor], refused: bool = False) -> None:
        super().__init__()
        self.function, self.refused = function, refused

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + self.function(x.shape[1])
        return y * 2 if self.refused and y.sum() > 0 else y


KEEPERS: dict[str, Callable[[], Callable[[int], torch.Tensor]]] = {
    "lru_cache": lambda: cached,
    "lru_cache of lists": lambda: lambda size: cached_in_a_list(size)[0],
    "global": lambda: in_a_global,
    "global dict": lambda: in_a_dict,
    "namespace": lambda: in_a_namespace,
    "default": lambda: in_a_default,
    "closure": in_a_closure,
    "helper": Helper,
    "method of a helper": lambda: Helper().__call__,
    "slots": Slots,
    "class": Shared,
    "partial": lambda: functools.partial(in_a_default, cache={}),
}


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    global table
    table = namespace.table = Shared.table = None
    for cache in (tables, in_a_default.__defaults__[0]):  # type: ignore[index]
        cache.clear()
    cached.cache_clear()
    cached_in_a_list.cache_clear()


def capture(model: nn.Module, way: Any = "export") -> None:
    TorchModuleTracer(model.eval(), args=bind_inputs(model, (torch.randn(2, 3),)), capture=way).trace()


@pytest.mark.parametrize("refused", [False, True], ids=["captured", "refused"])
@pytest.mark.parametrize("keeper", KEEPERS.values(), ids=KEEPERS)
def test_a_model_that_caches_returns_real_tensors_afterwards(
    keeper: Callable[[], Callable[[int], torch.Tensor]], refused: bool
) -> None:
    model = Caching(keeper(), refused)
    if refused:
        with pytest.raises(CaptureError):
            capture(model)
    else:
        capture(model)
    x = torch.randn(2, 3)
    expected = x + torch.arange(3)
    assert type(model(x)) is torch.Tensor
    assert torch.equal(Caching(model.function)(x), expected)


def test_a_cache_that_was_filled_before_keeps_its_tensors() -> None:
    helper, model = Helper(), None
    before = [helper(3), cached(3), in_a_global(3), in_a_dict(3)]
    for function in (helper, cached, in_a_global, in_a_dict):
        model = Caching(function)
        capture(model)
    assert all(a is b for a, b in zip(before, [helper(3), cached(3), in_a_global(3), in_a_dict(3)], strict=True))


def test_globals_without_a_fake_tensor_are_left_alone() -> None:
    def counts(size: int) -> torch.Tensor:
        tables[-1] = torch.ones(1)
        return torch.ones(size)

    real = Caching(counts)
    with preserve_containers(real):
        real(torch.ones(2, 3))
    assert tables.pop(-1) is not None


def test_mappings_that_load_on_request_are_not_asked() -> None:
    """The library behind a model may have a mapping that imports what it returns, or fails to."""

    def looks(size: int) -> torch.Tensor:
        return torch.arange(size) * dict.__getitem__(on_request, "a")

    model = Caching(looks)
    with preserve_containers(model):
        model(torch.ones(2, 3))
        dict.__setitem__(on_request, "b", torch.ones(1))
    assert dict.keys(on_request) == {"a", "b"}


def hide() -> Callable[[int], torch.Tensor]:
    """Return a function whose cache no name leads to: it is a global of code that looks like the library's."""
    hidden = [Helper()]
    exec("def get():\n    return hidden[0]", module_globals := {"hidden": hidden, "__name__": "os"})
    del hidden
    get = module_globals.pop("get")
    return lambda size: get()(size)


def test_a_tensor_in_an_object_that_was_not_found_is_refused_with_its_holder() -> None:
    model = Caching(hide())
    with pytest.raises(CaptureError, match="holds no data, in `Helper`"):
        capture(model)


def test_hooks_that_a_model_registers_at_its_first_call_are_taken_out() -> None:
    """As transformers does for models that return hidden states: with a flag that says that they are there."""

    class Hooked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not getattr(self, "is_hooked", False):
                self.inner.register_forward_hook(lambda module, args, output: output * 2)
                self.is_hooked = True
            return self.inner(x)

    model, x = Hooked(), torch.randn(2, 3)
    TorchModuleTracer(model, args=bind_inputs(model, x)).trace()
    assert not model.inner._forward_hooks
    torch.testing.assert_close(model(x), 2 * torch.nn.functional.linear(x, model.inner.weight, model.inner.bias))
