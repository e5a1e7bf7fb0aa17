"""Export a model for some engines and compare in one call: an assertion for any test runner, or without one."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2n_core.engine import resolve_engines
from t2n_core.errors import InputError, ParityError
from t2n_core.export.model import ModelExport
from t2n_core.export.options import ExportOptions
from t2n_core.inference_target import InferenceTarget, KhronosNNEF, TractNNEF
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Outcome, Status
from t2n_core.scratch import scratch_folder

_JUDGING = ("atol", "rtol", "metric", "bound", "reference")


def assert_nnef_parity(
    model: Any,
    args: Any = None,
    *,
    tract: str = "latest",
    khronos: bool = False,
    kwargs: Mapping[str, Any] | None = None,
    tolerance: Any = None,
    timeout: float = 60.0,
    strict: bool = False,
    offline: bool = False,
    **options: Any,
) -> dict[str, Outcome]:
    """Export a model, run it in engines, and compare with PyTorch; return the outcomes by engine.

    Args:
        model, args, kwargs: see `ModelExport`.
        tract: versions in the grammar of `--t2n-tract`; empty for none.
        khronos: also run Khronos's reference tools, at fixed sizes.
        tolerance: a level, or levels by output; `atol`, `rtol`, `metric`, `bound` and `reference` as in `Judgement.of`.
        timeout: seconds for an engine.
        strict: also fail if a pass proves little.
        offline: use only engines in the cache.
        options: any of `ExportOptions` and of `TractNNEF`, by name.

    Raises:
        T2NError: the first failure, with a note that lists all engines that failed.
    """
    __tracebackhide__ = True
    try:
        criteria = Judgement.of(tolerance, **{name: options.pop(name, None) for name in _JUDGING})
    except InputError as wrong:
        raise wrong.with_traceback(None) from None  # the error is in the user's call
    of_target, of_export = split_options(TractNNEF, options)
    ExportOptions.of(of_export)  # reports a wrong name before an engine is downloaded
    axes = of_export.pop("dynamic_axes", None)
    targets: list[InferenceTarget] = []
    if tract:
        engines = resolve_engines(tract, offline=offline)
        targets += [TractNNEF(engine.version, engine=engine, dynamic_axes=axes, **of_target) for engine in engines]
    if khronos:
        targets.append(KhronosNNEF())
    if not targets:
        raise InputError("there is no engine to compare with", hint='give tract="0.21,0.23" or khronos=True')
    outcomes: dict[str, Outcome] = {}
    exports: dict[bool, ModelExport] = {}
    with scratch_folder() as folder:
        for index, target in enumerate(targets):
            export = exports.get(target.has_dynamic_axes)
            if export is None:
                export = ModelExport(model, args, kwargs, dynamic_axes=target.dynamic_axes or None, **of_export)
                exports[target.has_dynamic_axes] = export
            title = str(target)
            try:
                result = export.to(target, Path(folder) / f"{index}.tar")
                outcomes[title] = result.check_parity(criteria, timeout=timeout)
            except Exception as error:
                outcomes[title] = Outcome.from_error(error, "lower", engine=title)
    _raise_first(outcomes, strict=strict)
    return outcomes


def split_options(target: type[InferenceTarget], options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of a target's class, and all others, which include dynamic axes."""
    parameter_names = inspect.signature(target).parameters.keys() - {"dynamic_axes"}
    of_target = {name: value for name, value in options.items() if name in parameter_names}
    return of_target, {name: value for name, value in options.items() if name not in parameter_names}


def _raise_first(outcomes: Mapping[str, Outcome], *, strict: bool) -> None:
    """Raise the failure of the first engine that has one. Raises T2NError."""
    __tracebackhide__ = True
    failed = {title: outcome for title, outcome in outcomes.items() if not outcome.passed}
    weak = {title: outcome for title, outcome in outcomes.items() if outcome.status is Status.WEAK} if strict else {}
    bad = {**failed, **weak}
    if not bad:
        return
    title, outcome = next(iter(bad.items()))
    try:
        if title in weak:
            raise ParityError(outcome.describe())
        outcome.raise_for_failure()
    except Exception as error:
        if len(bad) > 1:
            error.add_note(f"not proven in {', '.join(bad)}; this is {title}")
        raise
