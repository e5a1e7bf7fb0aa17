"""The options of an export. The plugin's marker, its help and the table in the docs are generated from them.

Has no heavy imports, since the plugin imports this while it collects tests.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any, Final

from t2n_core.errors import InputError
from t2n_core.text import suggestion
from t2n_core.torch_graph.choices import (
    CAPTURE_WAYS,
    NAMING_SCHEMES,
    TRAINING_WAYS,
    CaptureWay,
    NamingScheme,
    TrainingWay,
)

_HELP: Final = "help"
_CHOICES: Final = "choices"
_MARKER_NAME: Final = "marker name"


def _about(help: str, *, choices: Sequence[str] = (), marker: str | None = "") -> dict[str, Any]:
    """Return the metadata of an option.

    `marker` is its name in the marker, if different; None for an option that the marker does not have.
    """
    return {_HELP: help, _CHOICES: tuple(choices), _MARKER_NAME: marker}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """The options of an export, for all targets.

    Raises:
        InputError: a value is not one of the choices of its option.
    """

    input_names: Sequence[str] | None = field(
        default=None, metadata=_about("names of the inputs; those of `forward` if not given")
    )
    output_names: Sequence[str] | None = field(
        default=None, metadata=_about("names of the outputs, or of the top-level results; numbered if not given")
    )
    dynamic_axes: Any = field(
        default=None,
        metadata=_about(
            '{"input": {axis: "symbol"}} or {"input": [axes]}; in place of a symbol a torch.export.Dim with bounds, '
            "or a multiple of one; axes declared for an output are compared with the inferred ones",
        ),
    )
    state: Any = field(
        default=None,
        metadata=_about(
            "the arguments that hold state from an earlier call, such as a cache: names, or {name: field or index of "
            "the result with the next value}; their tensors are inputs and outputs, and growing axes may be empty",
        ),
    )
    extra_inputs: Any = field(
        default=(),
        metadata=_about(
            "further arguments to check the same archive with; a hypothesis strategy, from which ten are drawn; or a "
            "function of the sizes, whose inputs replace random ones",
            marker="inputs",
        ),
    )
    sizes: Sequence[Any] | None = field(
        default=None,
        metadata=_about(
            'sizes to check at besides the example\'s, as [{"T": 7}]; with ... in the list also the automatic ones'
        ),
    )
    rewriters: Sequence[Any] = field(default=(), metadata=_about("functions that adapt the model while it is exported"))
    strict_rewrites: bool = field(
        default=False, metadata=_about("a rewriter that fits the target and never applies is an error")
    )
    registered_rewriters: bool = field(
        default=True, metadata=_about("also use the rewriters of FUNCTION_REWRITER and the other registries")
    )
    deploy_config: Any = field(
        default=None, metadata=_about("a deployment config, any object, that rewriters read as `ctx.cfg`")
    )
    builtin_rewriters: bool = field(
        default=True, metadata=_about("also use the rewriters of this package for known libraries", marker=None)
    )
    rules: Any = field(default=None, metadata=_about("the rules of operators, if not the default ones", marker=None))
    fn_name: str = field(default="forward", metadata=_about("the method of the module that is exported"))
    capture: CaptureWay = field(
        default="export",
        metadata=_about(
            "export, or trace for models that torch.export refuses: control flow that depends on values in tensors is "
            "then frozen, with a warning for each line",
            choices=CAPTURE_WAYS,
        ),
    )
    training: TrainingWay = field(
        default="evaluate",
        metadata=_about(
            "evaluate: a model in training mode is exported and checked in evaluation mode, with a note, and put back; "
            "refuse: it is refused where the modes differ",
            choices=TRAINING_WAYS,
        ),
    )
    nnef_variable_naming_scheme: NamingScheme = field(
        default="natural",
        metadata=_about(
            "names of tensors in the text: natural (module path and operator), raw (as in the torch graph) or numeric",
            choices=NAMING_SCHEMES,
        ),
    )

    debug_bundle_path: Any = field(
        default=None,
        metadata=_about(
            "a folder, or a `.tgz` of one, for archive, example and PyTorch's outputs, in the layout of tract's own "
            "test cases",
            marker=None,
        ),
    )

    def __post_init__(self) -> None:
        for name, choices in _choices().items():
            value = getattr(self, name)
            if value not in choices:
                raise InputError(f"{name}={value!r} is not one of {', '.join(choices)}")
        _check_sizes(self.sizes)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> ExportOptions:
        """Return the options with these names. Raises InputError for an unknown name or a wrong value."""
        names = [option.name for option in fields(cls)]
        for name in options:
            if name not in names:
                raise InputError(f"there is no option `{name}` of an export", hint=suggestion(name, names))
        return cls(**options)

    def arguments(self) -> dict[str, Any]:
        """Return the options by name, as arguments of ModelExport."""
        return {option.name: getattr(self, option.name) for option in fields(self)}


def _check_sizes(sizes: Any) -> None:
    """Raise InputError unless the value is a list of sizes by name."""
    expected_form = 'a list of sizes by name, as [{"T": 7}, ...]'
    if sizes is None:
        return
    if isinstance(sizes, str | bytes | Mapping) or not isinstance(sizes, Sequence):
        raise InputError(f"sizes={sizes!r} is not {expected_form}")
    for entry in sizes:
        if entry is ...:
            continue
        numbers = entry.values() if isinstance(entry, Mapping) else [None]
        if not entry or not all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in numbers):
            raise InputError(f"sizes: {entry!r} is not {expected_form}")


def help_of(option: Field[Any]) -> str:
    """Return the help of an option, in one line."""
    return str(option.metadata[_HELP])


def choices_of(option: Field[Any]) -> tuple[str, ...]:
    """Return the choices of an option, the default first; empty if it also accepts other values."""
    return tuple(option.metadata[_CHOICES])


@functools.cache
def _choices() -> dict[str, tuple[str, ...]]:
    """Return the choices of each option that has some, by its name."""
    return {option.name: choices for option in fields(ExportOptions) if (choices := choices_of(option))}


def marker_options() -> dict[str, Field[Any]]:
    """Return the options of the marker, by their names there."""
    return {
        option.metadata[_MARKER_NAME] or option.name: option
        for option in fields(ExportOptions)
        if option.metadata[_MARKER_NAME] is not None
    }
