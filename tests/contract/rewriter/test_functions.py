"""Python functions and methods, however they are held. Each row of what fails in mmdeploy's rewriter is a test here."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF, rewriter
from t2n_core.errors import CaptureError, RewriteError
from t2n_core.rewriter.activation import rewriting
from t2n_core.rewriter.context import Session, Target
from t2n_core.rewriter.patches import _patches
from t2n_core.rewriter.selection import select
from tests.releases import NEWEST

NAME = "t2n_test_library"
TARGET = TractNNEF(NEWEST)


@pytest.fixture
def library() -> Iterator[Any]:
    """A fresh copy of library.py, importable under a name of its own."""
    spec = importlib.util.spec_from_file_location(NAME, Path(__file__).with_name("library.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    yield module
    assert not _patches
    del sys.modules[NAME]


class Calling(nn.Module):
    """Calls what it is given, between two linear layers."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 3)
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.function(self.first(x)))


def doubling(subject: Any, **options: Any) -> Any:
    @rewriter.function(subject, **options)
    def opaque__any(ctx: rewriter.RewriteContext, x: torch.Tensor) -> torch.Tensor:
        return x * 2.0

    return opaque__any


HOLDERS = {
    "name": lambda lib: lib.opaque,
    "saved handle": lambda lib: lib.KEPT,
    "tuple": lambda lib: lib.IN_A_TUPLE[0],
    "list": lambda lib: lib.IN_A_LIST[0],
    "dict": lambda lib: lib.IN_A_DICT["f"],
    "partial": lambda lib: lib.PARTIAL,
    "default argument": lambda lib: lib.by_default,
    "closure cell": lambda lib: lib.CLOSED,
    "slots": lambda lib: lib.SLOTTED.f,
    "instance attribute": lambda lib: lib.PLAIN.f,
}


@pytest.mark.parametrize("held", HOLDERS.values(), ids=HOLDERS)
@pytest.mark.parametrize("by_path", [False, True], ids=["object", "path"])
def test_every_reference_is_reached(library: Any, proven: Any, x: torch.Tensor, held: Any, by_path: bool) -> None:
    function = held(library)
    with pytest.raises(CaptureError):
        proven(Calling(function), (x,))
    rewrite = doubling(f"{NAME}.opaque" if by_path else library.opaque)
    result = proven(Calling(function), (x,), rewrite, dynamic_axes={"x": {0: "B", 1: "T"}})
    assert result.rewrites.applied == {rewrite: 1}


def test_a_saved_handle_is_the_original_inside_the_rewrite(library: Any, proven: Any, x: torch.Tensor) -> None:
    saved = library.recursive
    calls: list[int] = []

    @rewriter.function(library.recursive)
    def recursive__any(ctx: rewriter.RewriteContext, x: torch.Tensor, depth: int) -> torch.Tensor:
        calls.append(depth)
        return saved(x, depth)

    proven(Calling(lambda x: library.recursive(x, 3)), (x,), recursive__any)
    assert calls == [3]


def test_what_the_original_calls_is_rewritten_as_ever(library: Any, proven: Any, x: torch.Tensor) -> None:
    calls: list[int] = []

    @rewriter.function(library.recursive)
    def recursive__any(ctx: rewriter.RewriteContext, x: torch.Tensor, depth: int) -> torch.Tensor:
        calls.append(depth)
        return ctx.original(x, depth)

    proven(Calling(lambda x: library.recursive(x, 3)), (x,), recursive__any)
    assert calls == [3, 2, 1, 0]


def test_functions_are_the_same_objects_afterwards(library: Any, proven: Any, x: torch.Tensor) -> None:
    function = library.opaque
    before = (function.__code__, dict(vars(function)), function.__defaults__, inspect.signature(function))
    proven(Calling(function), (x,), doubling(function))
    assert library.opaque is function
    assert (function.__code__, dict(vars(function)), function.__defaults__, inspect.signature(function)) == before
    library.FACTOR = 5.0
    assert torch.equal(function(torch.ones(3)), torch.full((3,), 5.0))


def test_signatures_are_those_of_the_original(library: Any, proven: Any, x: torch.Tensor) -> None:
    seen: list[Any] = []

    @rewriter.function(library.by_default)
    def by_default__any(ctx: rewriter.RewriteContext, x: torch.Tensor) -> torch.Tensor:
        seen.extend([inspect.signature(library.by_default), inspect.signature(ctx.original)])
        return x * 2.0

    expected = inspect.signature(library.by_default)
    proven(Calling(library.by_default), (x,), by_default__any)
    assert seen == [expected, expected]


def test_later_changes_of_its_globals_are_seen_by_a_rewrite(library: Any, proven: Any, x: torch.Tensor) -> None:
    rewrite = doubling(library.opaque)
    scope: dict[str, Any] = {"factor": 3.0}
    exec("def late(ctx, x):\n    return x * factor", scope)
    late = rewriter.function(library.opaque)(scope["late"])
    library.FACTOR = scope["factor"] = 7.0
    proven(Calling(library.opaque), (x,), late)
    library.FACTOR = 2.0
    proven(Calling(library.opaque), (x,), rewrite)


# --------------------------------------------------------------------------------------------------------- methods
def test_methods_keep_their_descriptors(library: Any, proven: Any, x: torch.Tensor) -> None:
    kit, raw = library.Kit(), dict(vars(library.Kit))

    def method(ctx: rewriter.RewriteContext, bound: Any, x: torch.Tensor) -> torch.Tensor:
        return x * (bound.scale if isinstance(bound, type) else 2.0)

    def all_of_them(x: torch.Tensor) -> torch.Tensor:
        return kit.plain(x) + kit.static(x) + kit.of_class(x) + library.Kit.of_class(x) * kit.factor

    rewriters = [
        rewriter.function(library.Kit.plain)(method),
        rewriter.method(library.Kit, "of_class")(method),
        rewriter.function(f"{NAME}:Kit.static")(lambda ctx, x: x * 2.0),
        rewriter.function(f"{NAME}.Kit.factor")(lambda ctx, self: ctx.original(self) + 0.0),
    ]
    result = proven(Calling(all_of_them), (x,), *rewriters)
    assert {r.subject_name: n for r, n in result.rewrites.applied.items()}[f"{NAME}.Kit.of_class"] == 2
    assert dict(vars(library.Kit)) == raw
    assert torch.equal(library.Kit().static(torch.ones(2)), torch.full((2,), 2.0))
    assert torch.equal(library.Kit.static(torch.ones(2)), torch.full((2,), 2.0))
    assert library.SubKit.of_class.__self__ is library.SubKit
    assert torch.equal(library.SubKit.of_class(torch.ones(2)), torch.full((2,), 6.0))


def test_an_inherited_method_is_replaced_for_its_class_only(library: Any, proven: Any, x: torch.Tensor) -> None:
    base, derived = library.Kit(), library.SubKit()
    library.opaque = lambda x: x * 2.0  # now the base's method can be captured as it is

    @rewriter.method(library.SubKit, "plain")
    def plain__sub(ctx: rewriter.RewriteContext, self: Any, x: torch.Tensor) -> torch.Tensor:
        assert isinstance(self, library.SubKit)
        return ctx.original(self, x) + 0.0

    result = proven(Calling(lambda x: base.plain(x) + derived.plain(x)), (x,), plain__sub)
    assert result.rewrites.applied == {plain__sub: 1}
    assert "plain" not in vars(library.SubKit)


def test_the_nearest_class_wins(library: Any, proven: Any, x: torch.Tensor) -> None:
    calls: list[str] = []

    def noting(word: str) -> Any:
        def method(ctx: rewriter.RewriteContext, self: Any, x: torch.Tensor) -> torch.Tensor:
            calls.append(word)
            return x * 2.0

        return method

    rewriters = [
        rewriter.method(library.Kit, "plain")(noting("base")),
        rewriter.method(library.SubKit, "plain")(noting("sub")),
    ]
    base, derived = library.Kit(), library.SubKit()
    proven(Calling(lambda x: base.plain(x) + derived.plain(x)), (x,), *rewriters)
    assert calls == ["base", "sub"]


def test_an_inherited_static_method_must_be_named_where_it_is(library: Any, x: torch.Tensor) -> None:
    rewrite = rewriter.method(library.SubKit, "static")(lambda ctx, x: x)
    with pytest.raises(RewriteError, match=r"Kit\.static"):
        _ = ModelExport(Calling(torch.relu), (x,), rewriters=[rewrite]).captured


def test_a_module_s_forward_and_its_path(proven: Any, x: torch.Tensor) -> None:
    class Gate(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if float(x.sum()) > 1e30 else torch.sigmoid(x)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), Gate()) for _ in range(2)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for block in self.blocks:
                x = block(x)
            return x

    paths: list[str] = []

    @rewriter.method(Gate, "forward")
    def gate_forward(ctx: rewriter.RewriteContext, self: Gate, x: torch.Tensor) -> torch.Tensor:
        paths.append(ctx.path)
        assert ctx.options["dynamic_axes"] == {"x": {0: "B"}}
        return torch.sigmoid(x)

    proven(Net(), (x,), gate_forward, dynamic_axes={"x": {0: "B"}})
    assert paths == ["blocks.0.1", "blocks.1.1"]


# ------------------------------------------------------------------------------------------------- other callables
def test_what_has_no_python_code_is_replaced_by_name(library: Any, proven: Any, x: torch.Tensor) -> None:
    cached = library.cached
    rewrite = rewriter.function(library.cached)(lambda ctx, size: 1.0)
    library.cached(4)
    net = Calling(lambda x: x * library.cached(2))
    result = proven(net, (x,), rewrite)
    assert result.rewrites.applied == {rewrite: 1}
    assert library.cached is cached
    assert library.cached(2) == 1.0


def test_a_scripted_function_is_replaced_by_name(library: Any, proven: Any, x: torch.Tensor) -> None:
    library.scripted = scripted = torch.jit.script(library.to_be_scripted)
    rewrite = doubling(scripted)
    assert proven(Calling(lambda x: library.scripted(x)), (x,), rewrite).rewrites.applied == {rewrite: 1}
    assert library.scripted is scripted


def test_functions_under_script_if_tracing(library: Any, proven: Any, x: torch.Tensor) -> None:
    with pytest.raises(CaptureError):
        proven(Calling(library.caller_of_scripted), (x,))
    proven(Calling(library.caller_of_scripted), (x,), doubling(library.scripted_if_tracing))
    traced = torch.jit.trace(library.scripted_if_tracing, (x,))
    assert torch.equal(traced(x), x * 2.0)


# --------------------------------------------------------------------------------------------------- undoing it all
def test_all_is_undone_after_an_exception(library: Any, x: torch.Tensor) -> None:
    def fails(ctx: rewriter.RewriteContext, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("no")

    for subject in (library.opaque, torch.add, torch.nn.functional.layer_norm):
        code = getattr(subject, "__code__", None)
        rewrite = rewriter.function(subject)(fails)
        net = Calling(lambda x: subject(x, [6]) if code and "shape" in str(code.co_varnames) else subject(x, x))  # noqa: B023
        net = net if subject is not library.opaque else Calling(library.opaque)
        with pytest.raises(CaptureError):
            _ = ModelExport(net, (x,), rewriters=[rewrite]).captured
        assert getattr(subject, "__code__", None) is code
    assert not _patches
    assert torch.equal(torch.add(torch.ones(2), 1), torch.full((2,), 2.0))


def test_an_exception_while_rewriters_are_put_on_undoes_them(library: Any, x: torch.Tensor) -> None:
    code = library.opaque.__code__

    def factory(ctx: rewriter.RewriteContext, module: nn.Module) -> nn.Module:
        raise ValueError("no module")

    net = Calling(library.opaque)
    before = dict(net._modules)
    rewriters = [doubling(library.opaque), rewriter.module(nn.Linear)(factory)]
    with pytest.raises(RewriteError, match="ValueError: no module"):
        _ = ModelExport(net, (x,), rewriters=rewriters).captured
    assert library.opaque.__code__ is code
    assert dict(net._modules) == before


def test_nested_exports_each_have_their_own(library: Any, proven: Any, x: torch.Tensor) -> None:
    """After both exits mmdeploy leaves torch.add rewritten for ever."""
    first, second = torch.ones(2), torch.full((2,), 2.0)
    outer = [doubling(library.opaque), rewriter.function(torch.add)(lambda ctx, a, b: ctx.original(a, b) * 10.0)]
    outer.append(rewriter.function(torch.nn.functional.layer_norm)(lambda ctx, x, *rest: x * 10.0))
    inner = rewriter.function(torch.add)(lambda ctx, a, b: ctx.original(b, a))
    session = Session(Target(None), {})
    with rewriting(Calling(torch.relu), select(outer, None), session) as rewritten, rewritten.modes[0]:
        assert torch.equal(first + first, second * 10)
        doubler = doubling(library.opaque)
        net = Calling(lambda y: torch.nn.functional.layer_norm(library.opaque(y) + y, [6]))
        result = proven(net, (x,), doubler, inner)
        assert result.rewrites.applied == {doubler: 1, inner: 1}
        assert torch.equal(torch.add(first, first), second * 10)
        assert torch.equal(torch.nn.functional.layer_norm(first, [2]), first * 10)
    assert [session.hits[r] for r in outer] == [0, 2, 1]
    assert not _patches
    assert torch.equal(torch.add(first, first), second)
    assert not torch.equal(torch.nn.functional.layer_norm(first, [2]), first * 10)


def test_threads_do_not_see_each_other(library: Any, x: torch.Tensor, tmp_path: Path) -> None:
    """Two exports with other rewrites of one function, of one model, while a third thread calls the function itself."""
    results: dict[str, Any] = {}
    wrong: list[Any] = []
    done = threading.Event()
    net = Calling(library.opaque).eval()
    plain = copy.deepcopy(net)  # torch.export puts fake weights into the one that another thread captures

    def bystander() -> None:
        while not done.is_set():
            if not torch.equal(library.opaque(torch.ones(2)), torch.full((2,), 2.0)):
                wrong.append("rewritten")

    def export(name: str, factor: float) -> None:
        for index in range(3):
            rewrite = rewriter.function(library.opaque)(lambda ctx, y: y * factor * 0.5 + y * factor * 0.5)
            export = ModelExport(net, (x,), rewriters=[rewrite])
            result = export.to(TractNNEF(NEWEST), tmp_path / f"{name}{index}.nnef.tar")
            results[f"{name}{index}"] = (result.rewrites.applied[rewrite], result.archive.read_bytes())
            for sample in export.samples:
                expected = plain(torch.from_numpy(sample.inputs[0])).detach().numpy()
                wrong.extend([] if (sample.expected[0] == expected).all() else [sample])

    threads = [threading.Thread(target=export, args=("a", 2.0)), threading.Thread(target=export, args=("b", 3.0))]
    watcher = threading.Thread(target=bystander)
    watcher.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    watcher.join()
    assert not wrong
    assert {count for count, _ in results.values()} == {1}
    assert len(results) == 6
    assert len({data for name, (_, data) in results.items() if name[0] == "a"}) == 1
    assert results["a0"][1] != results["b0"][1]


def test_many_rewriters_cost_little(library: Any, x: torch.Tensor) -> None:
    """mmdeploy searches every object of the process: 0.6 s for 20 rewriters and 170 000 objects."""
    ballast = [[i] for i in range(300_000)]
    scope: dict[str, Any] = {}
    for index in range(20):
        exec(f"def f{index}(x): return x", scope)
    rewriters = [doubling(scope[f"f{index}"]) for index in range(20)]
    net = Calling(torch.relu)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        selection = select(rewriters, None)
        with rewriting(net, selection, Session(Target(None), {})):
            pass
        times.append(time.perf_counter() - start)
    assert len(ballast) == 300_000
    assert min(times) < 0.1
