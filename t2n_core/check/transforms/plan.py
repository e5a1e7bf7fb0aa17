"""The runs of a transformed model: samples that fit its new interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from t2n_core.check.exported.archive import ExportedArchive
from t2n_core.check.transforms.dtypes import given_dtypes
from t2n_core.check.transforms.folded import steps_of
from t2n_core.check.transforms.interface import Interface, Port, positions
from t2n_core.check.transforms.level import loss_of
from t2n_core.engine.tract.transforms.table import Loss
from t2n_core.engine.tract.transforms.transform import Transform
from t2n_core.errors import InputError
from t2n_core.parity.samples import Array, Sample


@dataclass(frozen=True, slots=True)
class Plan:
    """Samples with the inputs of the transformed model and the outputs that it keeps."""

    samples: list[Sample]
    outputs: tuple[int, ...]
    """The index in the archive of each output of the transformed model."""
    one_state: bool = False
    """True if the samples are steps of one State, which holds the caches."""


def plan_runs(
    result: ExportedArchive,
    transforms: Sequence[Transform],
    samples: Sequence[Sample],
    before: Interface,
    now: Interface,
) -> Plan:
    """Return the runs that check a transformed model.

    Raises InputError if samples do not fit its interface.
    """
    by_name = {transform.name: transform.arguments for transform in transforms}
    samples = _of_sizes(result, samples, by_name.get("set_symbols", {}).get("values", {}))
    outputs = _selected_outputs(result, before, by_name["select_outputs"]) if "select_outputs" in by_name else None
    inputs = positions(before.inputs, now.inputs)
    if len(now.inputs) > len(before.inputs) or inputs is None:
        came = ", ".join(port.name for port in now.inputs if port.name not in {other.name for other in before.inputs})
        raise InputError(
            f"after {_names_text(transforms)} the model has new inputs, for which PyTorch has no counterpart: {came}",
            hint="feed its state from call to call with a session of the engine",
        )
    if len(inputs) < len(before.inputs):
        output_indices, steps = steps_of(result, before, now, inputs, quantised=loss_of(transforms) >= Loss.EIGHT_BITS)
        samples, outputs = steps, output_indices if outputs is None else outputs
        return Plan([given_dtypes(sample, now.inputs) for sample in samples], outputs, one_state=True)
    if outputs is None:
        kept_outputs = positions(before.outputs, now.outputs)
        if kept_outputs is None or len(kept_outputs) != len(before.outputs):
            raise InputError(
                f"after {_names_text(transforms)} the model has {len(now.outputs)} outputs, of unknown origin"
            )
        outputs = tuple(kept_outputs)
    samples = [
        replace(
            sample,
            inputs=tuple(sample.inputs[index] for index in inputs),
            expected=tuple(sample.expected[index] for index in outputs),
            original=None if sample.original is None else tuple(sample.original[index] for index in outputs),
        )
        for sample in samples
    ]
    if "batchify" in by_name:
        samples = _batches(samples, by_name["batchify"], [before.inputs[index] for index in inputs], before, now)
    return Plan([given_dtypes(sample, now.inputs) for sample in samples], outputs)


def _of_sizes(result: ExportedArchive, samples: Sequence[Sample], values: Mapping[str, Any]) -> Sequence[Sample]:
    """Return the samples at the sizes of `set_symbols`, drawn if there are none."""
    if not values:
        return samples
    symbols = result.captured.symbols
    for name, size in values.items():
        if name not in symbols:
            sizes = ", ".join(symbols) or "none"
            raise InputError(f"set_symbols: the archive has no size {name}", hint=f"it has {sizes}")
        if not isinstance(size, int) or isinstance(size, bool):
            raise InputError(f"set_symbols: {name} = {size!r} is not an integer, and samples have integer sizes")
    of_them = [sample for sample in samples if all(sample.sizes.get(name) == size for name, size in values.items())]
    return of_them or [result.sample_at({**symbols, **values})]


def _selected_outputs(result: ExportedArchive, before: Interface, arguments: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the indices of the outputs that `select_outputs` names, by the archive's names or the engine's."""
    engine_names = [port.name for port in before.outputs]
    indices = []
    for name in arguments.get("outputs", ()):
        if name in result.output_names:
            indices.append(result.output_names.index(name))
        elif engine_names.count(name) == 1:
            indices.append(engine_names.index(name))
        else:
            raise InputError(
                f"select_outputs: {name!r} is not an output of the archive, and inner nodes have no reference",
                hint=f"it has {', '.join(result.output_names)}",
            )
    if not indices:
        raise InputError("select_outputs names no output", hint=f"the archive has {', '.join(result.output_names)}")
    return tuple(indices)


def _batches(
    samples: Sequence[Sample], arguments: Mapping[str, Any], inputs: Sequence[Port], before: Interface, now: Interface
) -> list[Sample]:
    """Return batches of samples of equal sizes, one seat each, as inputs of a model after `batchify`."""
    if arguments.get("shared"):
        raise InputError("batchify: samples share no input, so that `shared` cannot be checked")
    if any(len(old.shape) + 1 != len(new.shape) for old, new in zip(inputs, now.inputs, strict=True)):
        raise InputError(
            "batchify: the archive has inputs with this symbol already, whose axis moves to the front",
            hint='give another one: {"name": "batchify", "symbol": "SEATS"}',
        )
    alike: dict[tuple[Any, ...], list[Sample]] = {}
    for sample in samples:
        alike.setdefault(tuple(array.shape for array in sample.inputs), []).append(sample)
    return [_stack(group) for group in alike.values()]


def _stack(group: Sequence[Sample]) -> Sample:
    inputs, expected = (tuple(map(np.stack, zip(*arrays, strict=True))) for arrays in _columns(group))
    originals = [sample.original for sample in group if sample.original is not None]
    original = tuple(map(np.stack, zip(*originals, strict=True))) if originals else None
    return replace(group[0], inputs=inputs, expected=expected, original=original)


def _columns(group: Sequence[Sample]) -> tuple[list[tuple[Array, ...]], list[tuple[Array, ...]]]:
    return [sample.inputs for sample in group], [sample.expected for sample in group]


def _names_text(transforms: Sequence[Transform]) -> str:
    return ", ".join(map(str, transforms))
