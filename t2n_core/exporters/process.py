"""Calls of exporters: in this process, or in a separate one if they have requirements."""

from __future__ import annotations

import copy
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Final

import torch
from torch.nn.utils.parametrize import is_parametrized, type_before_parametrizations

from t2n_core.engine.processes.jobs import JobProcess
from t2n_core.engine.processes.wire import Frame
from t2n_core.errors import BudgetError, MeaningError, RefusedError
from t2n_core.exporters import child
from t2n_core.exporters.environment import python_of
from t2n_core.exporters.exporter import DeclaredSizes, Exporter, ExportRequest, export_by, first_cause
from t2n_core.extras import importing
from t2n_core.nnef.archive import remove_archive
from t2n_core.scratch import scratch_folder
from t2n_core.torch_graph.compat import private
from t2n_core.torch_graph.compat.operators import operator
from t2n_core.torch_graph.compat.private import OpOverload, OpOverloadPacket

_PROCESSES: Final[dict[Path, JobProcess]] = {}
"""The process of each interpreter."""


def write_file(
    exporter: Exporter, request: ExportRequest, seconds: float, environments: Path, modules: Sequence[str] = ()
) -> DeclaredSizes:
    """Let an exporter write the file of a request, and return the sizes that it declares.

    Exporters with requirements run in a separate process, for at most `seconds`. `environments` is the folder with
    their environments, and `modules` are imported there first, as far as possible.

    Raises RefusedError if the exporter raises anything, takes longer, or writes nothing, and InputError if its
    requirements are not installed.
    """
    try:
        declared = (
            _in_process(exporter, request, seconds, python_of(exporter, environments), modules)
            if exporter.requirements
            else _called(exporter, request)
        )
        if not request.path.is_file():
            raise RefusedError(f"{exporter.name} wrote no file")
    except BaseException:
        remove_archive(request.path)
        raise
    return declared


def _called(exporter: Exporter, request: ExportRequest) -> DeclaredSizes:
    """Call an exporter in this process, with a copy of the model."""
    try:
        model = request.model if exporter.converts else copy.deepcopy(request.model)
        return export_by(exporter, replace(request, model=model))
    except Exception as error:
        cause = first_cause(error)
        raise RefusedError(f"{type(cause).__name__}: {cause}") from error


def _in_process(
    exporter: Exporter, request: ExportRequest, seconds: float, python: Path, modules: Sequence[str]
) -> DeclaredSizes:
    events: list[Frame] = []
    with importing(f"the exporter {exporter.name}"):
        import cloudpickle  # noqa: F401

    if python not in _PROCESSES:
        _PROCESSES[python] = JobProcess(child.__name__, python)
    with scratch_folder() as folder:
        pickled = folder / "request"
        try:
            names = _modules_of(exporter, request.model)
            with _by_value(name for name in names if not _can_import(name)):
                pickled.with_suffix(".exporter").write_bytes(_pickle(exporter))
                pickled.write_bytes(_pickle(request))
        except Exception as error:
            raise RefusedError(f"the model cannot be pickled for the process of {exporter.name}: {error}") from error
        try:
            job = {"request": str(pickled), "modules": [*modules, *names]}
            description = f"the export by {exporter.name}"
            _PROCESSES[python].work(job, [], events.append, what=description, seconds=seconds)
        except (BudgetError, MeaningError) as ended:
            raise RefusedError(ended.message) from None
    header = events[-1].header
    if header["event"] == "refused":
        raise RefusedError(f"{header['kind']}: {header['message']}")
    return DeclaredSizes({name: tuple(both) for name, both in header["bounds"].items()}, tuple(header["default"]))


def _pickle(value: Any) -> bytes:
    """Return a pickle by cloudpickle, with what PyTorch does not pickle: operators by name, parametrized modules."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        dispatch_table = cloudpickle.Pickler.dispatch_table.new_child(
            {
                OpOverload: lambda overload: (operator, (f"{overload._schema.name}.{overload._overloadname}",)),
                OpOverloadPacket: lambda packet: (operator, (packet._qualified_op_name,)),
            }
        )

        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, torch.nn.Module) and is_parametrized(obj):  # whose own reduction only raises
                return restore_parametrized, (type_before_parametrizations(obj), vars(obj))
            return super().reducer_override(obj)

    buffer = io.BytesIO()
    Pickler(buffer).dump(value)
    return buffer.getvalue()


def restore_parametrized(kind: type[torch.nn.Module], state: dict[str, Any]) -> torch.nn.Module:
    """Return a parametrized module from its class without parametrizations and its attributes."""
    module = kind.__new__(kind)
    vars(module).update(state)
    private._inject_new_class(module)
    for name in state["_modules"]["parametrizations"]:
        private._inject_property(module, name)
    return module


def _modules_of(exporter: Exporter, model: torch.nn.Module) -> list[str]:
    """Return the names of the Python modules with the classes of an exporter and a model."""
    return sorted({type(instance).__module__ for instance in (exporter, *model.modules())} - {"__main__"})


@contextmanager
def _by_value(names: Iterable[str]) -> Iterator[None]:
    """Pickle what these Python modules define with its code: another process cannot import them."""
    import cloudpickle

    modules = [sys.modules[name] for name in names if name in sys.modules]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def _can_import(name: str) -> bool:
    """Return whether a module is found on the search path, which the process of an exporter has too."""
    parent_name = name.rpartition(".")[0]
    parent = sys.modules.get(parent_name)
    path = None if not parent_name else getattr(parent, "__path__", [])
    return (not parent_name or _can_import(parent_name)) and PathFinder.find_spec(name, path) is not None
