"""Requirements of outputs: a level, the user's own tolerances, or metrics.

Does not import numpy, since a plugin imports this while it collects tests.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from t2n_core.level import DEFAULT_LEVEL, TractCheckTolerance
from t2n_core.parity.judging.float16_level import LARGEST, peak, rms

MetricFunction: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], float]
"""Takes the expected and the actual outputs of one sample, as lists of arrays, and returns a number."""
FLOAT16_LEVEL: Final = "float16"
"""The level that compares with the model in float64."""
ORIGINAL: Final = "original"
"""The reference of metrics: the model with its own weights."""
STORED: Final = "stored"
"""The reference of metrics: the model with the weights as the archive stores them."""
_ANY = ""
"""The name that stands for all outputs without a separate tolerance."""
_BOUND = re.compile(r"\s*(<=|>=)\s*(\S+)\s*")


@dataclass(frozen=True, slots=True)
class Metric:
    """A user's function that judges all outputs of a sample together."""

    name: str
    function: MetricFunction
    bound: float
    at_least: bool = False
    """True if larger is better, as for an accuracy."""

    @property
    def decides_nothing(self) -> bool:
        """Return whether every value is within the bound."""
        return self.bound == (-math.inf if self.at_least else math.inf)

    def holds(self, value: float) -> bool:
        """Return whether a value is within the bound; NaN never is."""
        return value >= self.bound if self.at_least else value <= self.bound

    @property
    def required(self) -> str:
        """Return the bound as text: `<= 0.01`; empty for a report-only metric."""
        if self.decides_nothing:
            return ""
        return f"{'>=' if self.at_least else '<='} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Requirements that decide whether outputs pass.

    An output with `atol` and `rtol` is judged by `|expected - actual| <= atol + rtol * |actual|`, any other one by its
    level. Without `elementwise` only the metrics decide, apart from shapes, dtypes, NaN and infinities, which no
    tolerance covers.
    """

    level: TractCheckTolerance = DEFAULT_LEVEL
    levels: Mapping[str, TractCheckTolerance] = field(default_factory=dict)
    """Levels of single outputs, by name."""
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """atol and rtol by output name; the empty name stands for all others."""
    metrics: tuple[Metric, ...] = ()
    elementwise: bool = True
    in_float64: bool = False
    """True if the expected values are the model's, computed in float64."""
    reference: str = ORIGINAL
    """The weights of the model that metrics compare with: `original`, its own, or `stored`, the archive's."""

    @classmethod
    def parse(cls, tolerance: str | TractCheckTolerance | Judgement) -> Judgement:
        """Return a judgement by a level alone, or the judgement itself. Raises InputError for an unknown level."""
        return tolerance if isinstance(tolerance, Judgement) else cls._of_levels(tolerance, DEFAULT_LEVEL)

    @classmethod
    def of(
        cls,
        tolerance: Any = None,
        *,
        atol: Any = None,
        rtol: Any = None,
        metric: Any = None,
        bound: Any = None,
        reference: str | None = None,
        default: TractCheckTolerance = DEFAULT_LEVEL,
    ) -> Judgement:
        """Return the judgement that a user's arguments describe.

        Args:
            tolerance: a level, or a mapping of names of outputs to levels; or a judgement, which the others add to.
                `float16` compares with the model in float64: no error above 0.5 % of the largest value of its output.
            atol, rtol: a number for all outputs, or a mapping of names of outputs to numbers; the other one is 0.
            metric: a function of the expected and the actual outputs, or a mapping of names to such functions.
            bound: the largest value that passes, or a text such as `">= 0.99"`; by name for several metrics. Where no
                bound decides anything, as infinity does not, the level decides.
            reference: the model that a metric compares with, if the archive stores weights in fewer bits: `original`,
                by default, has its own weights, and `stored` the archive's, as for levels, `atol` and `rtol`.
            default: the level of outputs that `tolerance` does not name.

        Raises:
            InputError: an unknown level or reference, a negative number, or a metric without its bound.
        """
        levels = tolerance if isinstance(tolerance, Judgement) else cls._of_levels(tolerance, default)
        limits = {**levels.limits, **_limits(atol, rtol)}
        metrics = (*levels.metrics, *_metrics(metric, bound))
        by_level = tolerance is not None and not levels.in_float64
        if isinstance(tolerance, Judgement):
            by_level = levels.elementwise
        elementwise = by_level or bool(limits) or all(entry.decides_nothing for entry in metrics)
        reference = levels.reference if reference is None else _reference(reference, metrics, levels.in_float64)
        return cls(levels.level, levels.levels, limits, metrics, elementwise, levels.in_float64, reference)

    @classmethod
    def _of_levels(cls, tolerance: Any, default: TractCheckTolerance) -> Judgement:
        if isinstance(tolerance, Mapping):
            levels = {str(name): TractCheckTolerance.parse(level) for name, level in tolerance.items()}
            return cls(levels.pop(_ANY, default), levels)
        if isinstance(tolerance, str) and tolerance.strip().lower() == FLOAT16_LEVEL:
            of_float16 = (Metric("peak", peak, LARGEST), Metric("rms", rms, math.inf))
            return cls(default, metrics=of_float16, elementwise=False, in_float64=True)
        return cls(default if tolerance is None else TractCheckTolerance.parse(tolerance))

    @property
    def required(self) -> TractCheckTolerance | None:
        """Return the level of outputs without a separate one; None if only metrics decide."""
        return self.level if self.elementwise else None

    def level_of(self, name: str) -> TractCheckTolerance:
        """Return the level of an output."""
        return self.levels.get(name, self.level)

    def limit_of(self, name: str) -> tuple[float, float] | None:
        """Return atol and rtol of an output; None if its level decides, or the metrics."""
        if not self.elementwise:
            return (math.inf, 0.0)
        return self.limits.get(name) or (None if name in self.levels else self.limits.get(_ANY))

    def criterion_text(self, name: str) -> str:
        """Return the criterion of an output as text, `atol=0.01 rtol=0` or `metrics`; empty if its level decides."""
        limit = self.limit_of(name)
        if not self.elementwise:
            return "metrics"
        return "" if limit is None else f"atol={limit[0]:g} rtol={limit[1]:g}"

    def unmatched(self, names: Sequence[str]) -> list[str]:
        """Return the names with a criterion that match no output."""
        return sorted({*self.levels, *self.limits} - {_ANY, *names})


DEFAULT_CRITERIA: Final = Judgement()
"""The criteria of a check that names none."""


def _reference(reference: str, metrics: Sequence[Metric], in_float64: bool) -> str:
    if reference not in (ORIGINAL, STORED):
        raise _input_error(f"reference={reference!r} is neither {ORIGINAL!r} nor {STORED!r}")
    if not metrics:
        raise _input_error(
            f"reference={reference!r} without a metric: levels, atol and rtol are for the weights as stored"
        )
    if in_float64 and reference == STORED:
        raise _input_error(f"the level `{FLOAT16_LEVEL}` compares with the model's own weights, and not as stored")
    return reference


def _limits(atol: Any, rtol: Any) -> dict[str, tuple[float, float]]:
    by_name = [_by_name(*pair) for pair in (("atol", atol), ("rtol", rtol))]
    names = dict.fromkeys(name for tolerances in by_name for name in tolerances)
    return {name: (by_name[0].get(name, 0.0), by_name[1].get(name, 0.0)) for name in names}


def _by_name(argument: str, value: Any) -> dict[str, float]:
    if value is None:
        return {}
    tolerances = {}
    for name, number in value.items() if isinstance(value, Mapping) else [(_ANY, value)]:
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < math.inf:
            raise _input_error(f"{argument}={value!r} is neither a number from 0 on nor a mapping of outputs to such")
        tolerances[str(name)] = float(number)
    return tolerances


def _metrics(metric: Any, bound: Any) -> list[Metric]:
    if metric is None:
        if bound is not None:
            raise _input_error(f"bound={bound!r} without a metric: give metric=")
        return []
    if not isinstance(metric, Mapping):
        name = getattr(metric, "__name__", type(metric).__name__)
        functions: Mapping[str, Any] = {"metric" if name == "<lambda>" else name: metric}
        bounds: Mapping[str, Any] = dict.fromkeys(functions, bound)
    else:
        functions, bounds = metric, bound if isinstance(bound, Mapping) else {}
    metrics = []
    for name, function in functions.items():
        if not callable(function):
            raise _input_error(f"metric={function!r} is not a function of the expected and the actual outputs")
        if bounds.get(name) is None:
            raise _input_error(f"metric `{name}` has no bound: give bound=0.01, or bound='>= 0.99' if larger is better")
        metrics.append(_with_bound(str(name), function, bounds[name]))
    return metrics


def _with_bound(name: str, function: MetricFunction, bound: Any) -> Metric:
    match = _BOUND.fullmatch(bound) if isinstance(bound, str) else None
    try:
        number = float(match[2] if match is not None else bound)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        raise _input_error(f"bound={bound!r} of metric `{name}` is neither a number nor a text such as '>= 0.99'")
    return Metric(name, function, number, match is not None and match[1] == ">=")


def _input_error(message: str) -> Exception:
    from t2n_core.errors import InputError  # not at the start of each session of pytest

    return InputError(message)
