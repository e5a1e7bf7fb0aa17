"""A user's own metrics: the worst value over all samples, and whether a metric distinguishes samples at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from t2n_core.errors import InputError
from t2n_core.parity.judging.judgement import Metric
from t2n_core.parity.samples import Array, Sample


@dataclass(frozen=True, slots=True)
class MetricResult:
    """The worst value of a metric."""

    name: str
    required: str
    """The bound: `<= 0.01`; empty for a report-only metric."""
    value: float
    passed: bool
    sizes: Mapping[str, int]
    """Sizes of the dynamic axes where it is worst."""
    weak: str = ""
    """The reason why a pass proves little; empty if it proves enough."""
    reference: str = ""
    """The weights that it was measured against; empty if the model has the archive's."""

    def __str__(self) -> str:
        at = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        required = f", required {self.required}" if self.required else ""
        against = f", against {self.reference}" if self.reference else ""
        return f"metric {self.name}: {self.value:.6g}{required}{against}{f', worst at {at}' if at else ''}"


def measure(
    metrics: Sequence[Metric],
    samples: Sequence[Sample],
    outputs: Sequence[Sequence[Array]],
    indifferent: Mapping[str, str],
    reference: str = "",
) -> tuple[MetricResult, ...]:
    """Return the worst value of each metric; `indifferent` has the reasons why a metric proves little, by name.

    `reference` names the weights that the reference outputs were computed with.

    Raises InputError for a metric that returns no number, and any exception of a metric.
    """
    results = []
    for metric in metrics:
        values = [_value(metric, s.reference, got) for s, got in zip(samples, outputs, strict=True)]
        worst = max(range(len(values)), key=lambda index: _badness(metric, values[index]))
        value, weak = values[worst], indifferent.get(metric.name, "")
        sizes, passed = dict(samples[worst].sizes), metric.holds(value)
        results.append(MetricResult(metric.name, metric.required, value, passed, sizes, weak, reference))
    return tuple(results)


def indifferences(metrics: Sequence[Metric], samples: Sequence[Sample]) -> dict[str, str]:
    """Return why a metric proves little, for each that accepts the outputs of other inputs of the same shapes."""
    groups: dict[tuple[tuple[int, ...], ...], list[Sample]] = {}
    for sample in samples:
        groups.setdefault(tuple(output.shape for output in sample.expected), []).append(sample)
    pairs = [(group[0], other) for group in groups.values() for other in group[1:]]
    reasons = {}
    for metric in metrics:
        if metric.decides_nothing:
            continue
        if not pairs:
            reasons[metric.name] = "was measured for one set of inputs only"
        elif all(_accepts(metric, *pair) for pair in pairs):
            reasons[metric.name] = "accepts the outputs of other inputs too"
    return reasons


def _accepts(metric: Metric, sample: Sample, other: Sample) -> bool:
    try:
        return metric.holds(_value(metric, sample.reference, other.expected))
    except Exception:  # it refuses them, so it distinguishes them
        return False


def _value(metric: Metric, expected: Sequence[Array], actual: Sequence[Array]) -> float:
    result = metric.function(list(expected), list(actual))
    try:
        return float(result)
    except (TypeError, ValueError):
        raise InputError(f"metric `{metric.name}` returned {type(result).__name__}, which is not a number") from None


def _badness(metric: Metric, value: float) -> tuple[bool, float]:
    return value != value, -value if metric.at_least else value
