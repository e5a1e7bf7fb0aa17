"""Calls of exporters, in this process and in one of their own."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import time
import venv
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

from t2n_core import DeclaredSizes, Exporter, ExportRequest, ModelExport
from t2n_core.engine.processes.jobs import close_jobs
from t2n_core.errors import InputError, RefusedError
from t2n_core.exporters.process import write_file
from t2n_core.exporters.request import request_of
from tests.releases import RECENT

NUMPY = ("numpy>=1.26",)
"""Requirements that are met here: a process of its own, in this environment."""


class Toy(Exporter):
    """An exporter that writes what its model is, after a change of it."""

    name = "toy"

    def export(self, request: ExportRequest) -> DeclaredSizes:
        with torch.no_grad():
            next(request.model.parameters()).zero_()
        request.path.write_text(f"{request.model} by {os.getpid()} with {torch.get_num_threads()}")
        return DeclaredSizes({"T": (3, None)}, (2, 9))


class Refusing(Toy):
    """An exporter whose error wraps another one, after it has written a part."""

    def export(self, request: ExportRequest) -> DeclaredSizes:
        request.path.write_text("part")
        try:
            raise NotImplementedError("no rule for aten::sinc")
        except NotImplementedError as error:
            raise RuntimeError("read the manual") from error


class Silent(Toy):
    """An exporter that writes nothing."""

    def export(self, request: ExportRequest) -> DeclaredSizes:
        return DeclaredSizes()


class Foldered(Toy):
    """An exporter that writes a folder in place of a file."""

    def export(self, request: ExportRequest) -> DeclaredSizes:
        request.path.mkdir()
        request.path.joinpath("graph.nnef").write_text("graph")
        return DeclaredSizes()


class Returning(Toy):
    """An exporter that returns something else."""

    def export(self, request: ExportRequest) -> DeclaredSizes:
        super().export(request)
        return 3  # type: ignore[return-value]


class Importing(Toy):
    """An exporter that writes where a package of its environment is."""

    def export(self, request: ExportRequest) -> DeclaredSizes:
        request.path.write_text(str(import_module("only_here").__file__))
        return DeclaredSizes()


class Sleeping(Toy):
    """An exporter that takes an hour."""

    def export(self, request: ExportRequest) -> DeclaredSizes:
        time.sleep(3600)
        return DeclaredSizes()


class Dying(Toy):
    """An exporter that ends its process."""

    def export(self, request: ExportRequest) -> DeclaredSizes:
        os.kill(os.getpid(), signal.SIGKILL)
        return DeclaredSizes()


class Leaky(Toy):
    """An exporter that does its first model right alone."""

    def export(self, request: ExportRequest) -> DeclaredSizes:
        if hasattr(torch, "_toy_has_run"):
            raise RuntimeError("again")
        torch._toy_has_run = True  # type: ignore[attr-defined]
        return super().export(request)


@pytest.fixture(scope="module", autouse=True)
def processes() -> Iterator[None]:
    """Processes of exporters end with these tests."""
    yield
    close_jobs()


def request(path: Path, exporter: Exporter, model: nn.Module | None = None) -> ExportRequest:
    export = ModelExport((model or nn.Linear(3, 4)).eval(), torch.ones(2, 3))
    return request_of(export, exporter, RECENT, path / "toy.nnef.tgz")


def in_own_process(kind: type[Toy]) -> Toy:
    return type(kind.__name__, (kind,), {"requirements": NUMPY, "__module__": kind.__module__})()


EITHER = pytest.mark.parametrize("is_own", [False, True], ids=["here", "own process"])


@EITHER
def test_the_model_of_the_user_is_not_changed(tmp_path: Path, is_own: bool) -> None:
    exporter = in_own_process(Toy) if is_own else Toy()
    export_request = request(tmp_path, exporter)
    before = next(export_request.model.parameters()).clone()
    assert write_file(exporter, export_request, 60, tmp_path) == DeclaredSizes({"T": (3, None)}, (2, 9))
    assert next(export_request.model.parameters()).equal(before)
    text = export_request.path.read_text()
    assert text.startswith("Linear(in_features=3, out_features=4, bias=True) by ")
    assert text.endswith(f" by {os.getpid()} with {torch.get_num_threads()}") == (not is_own)
    assert text.endswith(" with 1") or not is_own


@EITHER
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Refusing, "NotImplementedError: no rule for aten::sinc"),
        (Silent, "toy wrote no file"),
        (Foldered, "toy wrote no file"),
        (Returning, "TypeError: `export` returned 3, not DeclaredSizes or None"),
    ],
    ids=["raises", "writes nothing", "writes a folder", "returns another"],
)
def test_a_refusal_has_its_first_cause_and_leaves_no_file(
    tmp_path: Path, kind: type[Toy], message: str, is_own: bool
) -> None:
    exporter = in_own_process(kind) if is_own else kind()
    with pytest.raises(RefusedError) as refusal:
        write_file(exporter, request(tmp_path, exporter), 60, tmp_path)
    assert refusal.value.message == message
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_takes_too_long_or_dies_is_a_refusal_and_the_next_export_runs(tmp_path: Path) -> None:
    sleeping = in_own_process(Sleeping)
    export_request = request(tmp_path, sleeping)
    with pytest.raises(RefusedError, match=r"the export by toy took longer than \d+ seconds"):
        write_file(sleeping, export_request, 3, tmp_path)
    with pytest.raises(RefusedError, match=r"its process ended with -9|killed"):
        write_file(in_own_process(Dying), export_request, 60, tmp_path)
    write_file(in_own_process(Toy), export_request, 60, tmp_path)
    assert export_request.path.exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_an_export_leaves_nothing_in_the_process_for_the_next_one(tmp_path: Path) -> None:
    exporter = in_own_process(Leaky)
    for _ in range(2):
        write_file(exporter, request(tmp_path, exporter), 60, tmp_path)


OF_A_SUITE = """
import numpy
from torch import nn
from t2n_core import Exporter

class Net(nn.Module):
    def forward(self, x):
        return x * 2

class Suited(Exporter):
    name = "suited"
    requirements = ("numpy>=1.26",)

    def export(self, request):
        model, tensors = request.flat()
        request.path.write_text(str(model(*tensors).sum().item()))
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A file of tests as pytest imports it: under a name that no other process finds."""
    file = tmp_path / "test_suite.py"
    file.write_text(OF_A_SUITE)
    spec = importlib.util.spec_from_file_location("tests_of_a_user.test_suite", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_classes_of_a_file_of_tests_travel_with_their_code(tmp_path: Path, suite: ModuleType) -> None:
    exporter = suite.Suited()
    export_request = request(tmp_path, exporter, suite.Net())
    assert write_file(exporter, export_request, 60, tmp_path) == DeclaredSizes()
    assert export_request.path.read_text() == "12.0"


class CallsOperators(nn.Module):
    """A model that holds operators of PyTorch, which have no pickles of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.neg, self.mul = torch.ops.aten.neg, torch.ops.aten.mul.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        negative: torch.Tensor = self.mul(self.neg(x), x)
        return negative


class Summing(Toy):
    """An exporter that writes the sum of the model's result."""

    def export(self, request: ExportRequest) -> DeclaredSizes:
        model, tensors = request.flat()
        request.path.write_text(str(model(*tensors).sum().item()))
        return DeclaredSizes()


def test_operators_of_a_model_travel_by_name(tmp_path: Path) -> None:
    exporter = in_own_process(Summing)
    model = CallsOperators()
    export_request = request(tmp_path, exporter, model)
    write_file(exporter, export_request, 60, tmp_path)
    (x,) = export_request.inputs.tensors
    assert export_request.path.read_text() == str(model(x).sum().item())


def test_parametrized_modules_travel_with_their_class(tmp_path: Path) -> None:
    exporter = in_own_process(Summing)
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), nn.Tanh())
    export_request = request(tmp_path, exporter, model)
    write_file(exporter, export_request, 60, tmp_path)
    (x,) = export_request.inputs.tensors
    with torch.no_grad():
        assert float(export_request.path.read_text()) == pytest.approx(model(x).sum().item())


def test_a_model_that_cannot_be_pickled_is_a_refusal(tmp_path: Path) -> None:
    exporter = in_own_process(Toy)
    model = nn.Linear(3, 4)
    model.register_forward_hook(lambda *_, file=sys.stdout.buffer: None)
    with pytest.raises(RefusedError, match="the model cannot be pickled for the process of toy"):
        write_file(exporter, request(tmp_path, exporter, model), 60, tmp_path)


def test_an_environment_has_its_own_packages_but_this_package_is_the_one_that_asks(tmp_path: Path) -> None:
    home = tmp_path / "environments" / "toy"
    venv.create(home, symlinks=True)
    (home / "ready").touch()
    (packages,) = home.glob("[Ll]ib/**/site-packages")
    for name, text in (("t2n_core", "raise ImportError('another version')"), ("only_here", "")):
        (packages / name).mkdir()
        (packages / name / "__init__.py").write_text(text)

    exporter = type("Importing", (Importing,), {"requirements": ("only-here",), "__module__": __name__})()
    export_request = request(tmp_path, exporter)
    write_file(exporter, export_request, 60, home.parent)
    assert export_request.path.read_text().startswith(str(packages))


def test_an_exporter_without_its_requirements_is_not_asked(tmp_path: Path) -> None:
    exporter = type("Needy", (Toy,), {"requirements": ("no-such-distribution",)})()
    with pytest.raises(InputError, match="the exporter toy needs no-such-distribution"):
        write_file(exporter, request(tmp_path, exporter), 60, tmp_path)


def test_an_exporter_that_converts_has_the_file_of_another(tmp_path: Path) -> None:
    class Copying(Toy):
        converts = "other"

        def export(self, request: ExportRequest) -> DeclaredSizes:
            assert request.source is not None
            request.path.write_bytes(request.source.read_bytes())
            return DeclaredSizes()

    source = tmp_path / "source.onnx"
    source.write_text("file of the other")
    export_request = replace(request(tmp_path, Copying()), source=source)
    write_file(Copying(), export_request, 60, tmp_path)
    assert export_request.path.read_text() == "file of the other"
