"""PyTorch's samples of a model at its declared sizes, without a capture: the same for all exporters."""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

from t2n_core.check.sampling.input_function import InputFunction
from t2n_core.check.sampling.sampler import Sampler
from t2n_core.export.exportable_model import ExportableModel
from t2n_core.nnef.sizes.dims import Shape, symbol
from t2n_core.parity.samples import Sample
from t2n_core.rewriter.context import without_rewrites
from t2n_core.torch_graph.frontend.inputs import ModelInputs, bind_inputs

_SAMPLES: Final[WeakKeyDictionary[ExportableModel, list[Sample]]] = WeakKeyDictionary()


def samples_of(export: ExportableModel) -> list[Sample]:
    """Return the samples of a model, the example first. Raises InputError if the model does not run on it."""
    if export not in _SAMPLES:
        extra = [_bind(export, more) for more in export.extra_inputs]
        sizes = (...,) if export.options.sizes is None else export.options.sizes
        with without_rewrites():
            _SAMPLES[export] = _sampler(export).samples(extra, export.declared.range, (), sizes)
    return _SAMPLES[export]


def _sampler(export: ExportableModel) -> Sampler:
    function = None
    if export.input_function is not None:
        function = InputFunction(export.input_function, lambda arguments: _bind(export, arguments))
    inputs = export.inputs
    shapes = [_shape(export, name, tensor.shape) for name, tensor in zip(inputs.names, inputs.tensors, strict=True)]
    return Sampler(export.source, inputs, shapes, export.example_sizes, function, export.source.module)


def _shape(export: ExportableModel, name: str, example: tuple[int, ...]) -> Shape:
    """Return the extents of an input, with the symbols of its dynamic axes."""
    axes = export.declared.axes.get(name, {})
    return tuple(axes[axis].extent(symbol(axes[axis].name)) if axis in axes else n for axis, n in enumerate(example))


def _bind(export: ExportableModel, arguments: Any) -> ModelInputs:
    return bind_inputs(export.source, arguments, export.kwargs, export.inputs.names)
