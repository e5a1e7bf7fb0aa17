"""The plugin's interface to the converter. Loaded late: `load_converter` imports torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_t2n.collect.markers import CaseOptions
from pytest_t2n.collect.targets import OwnTarget
from pytest_t2n.config.settings import Settings
from pytest_t2n.records.cell import SelectedEngine
from t2n_core.extras import loading_modules

if TYPE_CHECKING:
    from t2n_core.export.model import ModelExport


class Converter(NamedTuple):
    """The classes of the converter that the plugin uses."""

    model_export: type[ModelExport]
    tract: Callable[..., Any]
    khronos: Callable[..., Any]


def load_converter() -> Converter:
    """Return the converter; imported at the first cell that runs, never during collection."""
    with loading_modules():
        from t2n_core.export.model import ModelExport
        from t2n_core.inference_target import KhronosNNEF, TractNNEF

    if "PYTEST_XDIST_WORKER" in os.environ:
        import torch

        # Otherwise each worker would start as many threads as the machine has cores.
        torch.set_num_threads(1)
    return Converter(ModelExport, TractNNEF, KhronosNNEF)


def is_export(model: Any) -> bool:
    """Return whether this is a ModelExport, which already has its arguments."""
    return isinstance(model, load_converter().model_export)


def new_export(
    model: Any,
    args: Any,
    kwargs: Mapping[str, Any] | None,
    options: CaseOptions,
    target: str,
    rewriters: tuple[Any, ...],
) -> ModelExport:
    """Return the export of a model with the options of a test; a khronos graph has fixed sizes."""
    of_target: dict[str, Any] = {"rewriters": rewriters}
    fixed = options.has_fixed_sizes(target)
    if fixed:
        of_target |= {"dynamic_axes": None, "sizes": None}
    export = load_converter().model_export(model, args, kwargs, **replace(options.export, **of_target).arguments())
    if fixed and callable(options.export.extra_inputs) and options.export.dynamic_axes is not None:
        _keep_sizes(export, options.export.dynamic_axes)
    return export


def _keep_sizes(export: ModelExport, dynamic_axes: Any) -> None:
    """Pass the example's sizes to the user's function of the sizes, since a capture with fixed sizes has no names."""
    from t2n_core.torch_graph.constraints.declared_axes import example_sizes

    function = export.input_function
    if function is None:  # a strategy
        return
    shapes = {name: tuple(t.shape) for name, t in zip(export.inputs.names, export.inputs.tensors, strict=True)}
    sizes = example_sizes(dynamic_axes, shapes)
    export.input_function = lambda _: function(dict(sizes))


def to_archive(
    export: ModelExport,
    engine: SelectedEngine,
    options: CaseOptions,
    settings: Settings,
    item: Any,
    path: Path,
) -> Any:
    """Return the archive of a model for an engine: an ExportResult, or a ForeignArchive of another exporter.

    Raises T2NError.
    """
    if not engine.exporter:
        return export.to(target_of(engine, options), path)
    from pytest_t2n.run.exports.other_exporters import export_by_other

    return export_by_other(export, engine, options, settings, item, path)


def target_of(engine: SelectedEngine, options: CaseOptions, **further: Any) -> Any:
    """Return the inference target of an engine with the options of a test, and further ones."""
    from t2n_core.engine import ResolvedEngine

    user_target = options.own.get(engine.target)
    if user_target is not None:
        return own_target(user_target, engine, options, **further)
    converter = load_converter()
    more = {**options.options_of(engine.target), **further}
    if engine.target == "khronos":
        return converter.khronos(engine.version, **more)
    resolved = None if engine.resolved is None else ResolvedEngine.from_dict(engine.resolved)
    return converter.tract(engine.version, engine=resolved, dynamic_axes=options.export.dynamic_axes, **more)


def own_target(user_target: OwnTarget, engine: SelectedEngine, options: CaseOptions, *, check_io: bool = True) -> Any:
    """Return a target of the user for an engine; what its `post_export` checks, it checks as the test does."""
    from t2n_core.errors import InputError
    from t2n_core.level import TractCheckTolerance

    try:
        target = user_target.create(engine, options.export.dynamic_axes, options.options_of(user_target.name))
    except ValueError as exc:
        raise InputError(str(exc)) from None
    if isinstance(user_target.given, type):
        target.check_io = check_io and options.check
        level = options.judged_by.get("tolerance")
        if isinstance(level, str):
            target.check_io_tolerance = TractCheckTolerance.parse(level)
    return target
