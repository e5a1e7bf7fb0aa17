"""Base class of targets: the allowed operators, the engine that checks archives, and hooks for a user's own target."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from t2n_core.engine.protocol import Engine
from t2n_core.errors import EngineProvisionError, InputError, SpecError
from t2n_core.inference_target.version import SemanticVersion, version_text
from t2n_core.level import DEFAULT_LEVEL, TractCheckTolerance
from t2n_core.nnef.graph import Fragment, Graph, fragment_of
from t2n_core.nnef.options.weight_choice import Reader, WeightFormat
from t2n_core.nnef.options.writing_options import PLAIN, WritingOptions
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.spec import Spec, spec_for

if TYPE_CHECKING:
    import torch

    from t2n_core.torch_graph.graph.ir import TorchModuleIRGraph


STANDARD = "1.0.5"
"""The version of the standard whose operators a target without its own table writes."""


class InferenceTarget:
    """A consumer of NNEF archives, of one kind and version; the base class of all targets.

    A subclass needs a check: an `engine`, or a `post_export` that raises a T2NError for a wrong archive. Without its
    own `spec` its archives hold operators of the standard only; without its own `name` it is called as its class, in
    small letters.

    Args:
        version: of the engine or the standard, as text.
        check_io: run the archive after export and compare with PyTorch; if that fails the archive is removed. In a
            marker also called `check`.
        dynamic_axes: `{"x": {1: "T"}}`, or `{"x": [1]}` for symbols named after input and axis; negative axes count
            from the end; several inputs may share a symbol. In place of a symbol a `torch.export.Dim` with bounds,
            `Dim("T", min=2, max=16)`, or a multiple of one, `2 * Dim("T")`.
        check_io_tolerance: the level that must hold: `exact`, `close`, `approximate`, `very`, `super`, `ultra`. In a
            marker also called `tolerance`.
    """

    name: ClassVar[str] = "target"
    OPTIONS: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "check_io": ("check_io",),
        "check_io_tolerance": ("check_io_tolerance",),
    }
    """Options that an export may give to the target too -> the attributes that hold them.

    Those that choose the engine are not among them.
    """
    pulse: int | None = None
    """Steps of the time axis that the check streams at a time; None for a target or export without streams."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.name == InferenceTarget.name:
            cls.name = cls.__name__.lower()

    def __init__(
        self,
        version: str,
        check_io: bool = True,
        *,
        dynamic_axes: Any = None,
        check_io_tolerance: str | TractCheckTolerance = DEFAULT_LEVEL,
    ) -> None:
        self.requested_version = version_text(version)
        self.check_io = check_io
        self.dynamic_axes = dict(dynamic_axes or {})
        self.check_io_tolerance = TractCheckTolerance.parse(check_io_tolerance)

    @property
    def version(self) -> SemanticVersion:
        """Return the exact version."""
        return SemanticVersion(self.requested_version)

    @property
    def spec(self) -> Spec:
        """Return the table of the operators that may be written; by default the standard's."""
        return spec_for("khronos", STANDARD)

    @property
    def writing(self) -> WritingOptions:
        """Return the choices between lowerings that this target makes."""
        return PLAIN

    def folds_norm(self, channels: int, elements: int) -> bool:
        """Return whether a norm is folded into a preceding filter with this many output channels and elements."""
        return True

    def storage_refusal(self, format: WeightFormat, reader: Reader) -> str:
        """Return why a weight cannot have a storage format for this kind of operator; empty if it can."""
        return f"{self.name} reads no weights in {format}"

    @property
    def custom_fragments(self) -> Sequence[Fragment]:
        """Return the fragments that are in the archive from the beginning, for rules to call by name."""
        return ()

    @property
    def sizes_from_zero(self) -> frozenset[str]:
        """Return the symbols of dynamic axes that the options of this target allow to be 0."""
        return frozenset()

    def size_range(self, sizes: SizeRange) -> SizeRange:
        """Return the part of a range that an archive of this target is valid for. Raises InputError if it is empty."""
        return sizes

    def engine(self) -> Engine:
        """Return the engine that checks archives of this target. Raises EngineResolveError or EngineProvisionError."""
        raise EngineProvisionError(
            f"{type(self).__name__} has no engine that could check its archives",
            hint="override engine(), or check in post_export(); check_io=False exports without a check",
        )

    @property
    def checks_in_hook(self) -> bool:
        """Return whether the `post_export` of this target is its check, since it has no engine."""
        subclass, base = type(self), InferenceTarget
        return subclass.engine is base.engine and subclass.post_export is not base.post_export

    @property
    def has_dynamic_axes(self) -> bool:
        """Return whether dynamic axes were declared."""
        return bool(self.dynamic_axes)

    def with_options(self, **options: Any) -> Self:
        """Return the same target with some of its OPTIONS replaced, by the names of the constructor's arguments.

        Raises InputError for an invalid value.
        """
        other = copy.copy(self)
        target = self._of_options(options)
        for path in (path for name in options for path in self.OPTIONS[name]):
            holder, _, attribute = path.rpartition(".")
            value = attrgetter(path)(target)
            if holder:
                attribute, value = holder, replace(getattr(other, holder), **{attribute: value})
            setattr(other, attribute, value)
        return other

    def with_dynamic_axes(self, dynamic_axes: Any) -> Self:
        """Return the same target with other dynamic axes."""
        other = copy.copy(self)
        other.dynamic_axes = dict(dynamic_axes or {})
        return other

    def with_check_io_tolerance(self, check_io_tolerance: str | TractCheckTolerance) -> Self:
        """Return the same target with another level that must hold. Raises InputError for no level."""
        return self.with_options(check_io_tolerance=check_io_tolerance)

    def has_other(self, option: str, value: Any) -> bool:
        """Return whether one of the OPTIONS was given to this target with another value. Raises like with_options."""
        of_option = [attrgetter(path) for path in self.OPTIONS[option]]
        current, plain, requested = (
            [read(target) for read in of_option]
            for target in (self, self._of_options({}), self._of_options({option: value}))
        )
        return current not in (plain, requested)

    def _of_options(self, options: Mapping[str, Any]) -> InferenceTarget:
        """Return a target of the class that declares the OPTIONS, with these alone."""
        kind = next(base for base in type(self).__mro__ if "OPTIONS" in vars(base))
        return kind(self.requested_version, **options)  # type: ignore[no-any-return]

    @property
    def edits_graph(self) -> bool:
        """Return whether the hooks that may edit a graph are a user's own."""
        return not all(str(hook.__module__).startswith("t2n_core.") for hook in (self.post_capture, self.post_trace))

    # hooks of a user's own target, all optional, in the order of their calls; each may raise T2NError to refuse
    def pre_trace(self, model: torch.nn.Module, input_names: list[str] | None, output_names: list[str] | None) -> None:
        """Inspect a model before capture. An override may refuse it, but not change it.

        `input_names` and `output_names` are the user's; None if none were passed.
        """

    def post_capture(self, graph: TorchModuleIRGraph) -> None:
        """Inspect the captured graph of torch operators. An override may refuse it, or edit this copy of it."""

    def specific_fragments(self, model: torch.nn.Module) -> Mapping[str, str] | Sequence[Fragment | str]:
        """Return fragments to add to the archive of a model, for operations that `post_trace` writes.

        They are NNEF texts by their names, or a list of texts or of `Fragment`.
        """
        return {}

    def post_trace(self, nnef_graph: Graph, active_custom_extensions: list[str]) -> None:
        """Inspect the NNEF graph before it is checked and written. An override may refuse or edit it.

        `active_custom_extensions` are the lines of its `extension` declarations, to which an override may add.
        """

    def post_write(
        self,
        model: torch.nn.Module,
        nnef_graph: Graph,
        args: Sequence[torch.Tensor],
        exported_filepath: Path,
        debug_bundle_path: Path | None = None,
    ) -> None:
        """Inspect a written archive that is not checked yet. It is removed if an override raises an exception.

        The arguments are as for `post_export`.
        """

    def post_export(
        self,
        model: torch.nn.Module,
        nnef_graph: Graph,
        args: Sequence[torch.Tensor],
        exported_filepath: Path,
        debug_bundle_path: Path | None = None,
    ) -> None:
        """Check the written archive, if `check_io` requests it; after `super().post_export(…)` it is proven.

        `args` are the example's tensors in the order of the inputs; `debug_bundle_path` is the folder that the user
        requested, to which an override may add files. The archive is removed if an override raises an exception. An
        override that does not call this method does not switch the check off: it then follows.

        Raises:
            ParityError, EngineError: the check failed.
            InputError: no export is running.
        """
        if not self.check_io:
            return
        pending = _PENDING.get()
        if pending is None:
            raise InputError("post_export checks the archive of a running export", hint="call result.assert_parity()")
        pending.run()

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(slots=True)
class PendingCheck:
    """The check of an archive, which `post_export` runs or leaves to the caller of the export."""

    check: Callable[[], object]
    ran: bool = False

    def run(self) -> None:
        """Run the check, at most once. Raises ParityError, EngineError."""
        if not self.ran:
            self.check()
            self.ran = True

    @contextmanager
    def active(self) -> Iterator[None]:
        """While active, `post_export` can run this check."""
        token = _PENDING.set(self)
        try:
            yield
        finally:
            _PENDING.reset(token)


_PENDING: ContextVar[PendingCheck | None] = ContextVar("pending_check", default=None)


def fragments_of(value: object, where: str) -> list[Fragment]:
    """Return fragments from texts by name, or from a list of texts or fragments.

    Raises:
        InputError: neither of these, a text that declares no fragment, or a fragment whose name differs from its key.
    """
    if isinstance(value, Mapping):
        entries: list[tuple[Any, Any]] = list(value.items())
    elif isinstance(value, Sequence) and not isinstance(value, str):
        entries = [(None, item) for item in value]
    else:
        raise InputError(f"{where}: {value!r} is neither texts by name nor a list", hint=_FRAGMENTS)
    fragments = []
    for name, item in entries:
        try:
            fragment = item if isinstance(item, Fragment) else fragment_of(item)
        except SpecError as wrong:
            raise InputError(f"{where}: {wrong.message}", hint=_FRAGMENTS) from wrong
        except TypeError:
            raise InputError(f"{where}: {item!r} is neither NNEF text nor a Fragment", hint=_FRAGMENTS) from None
        if name is not None and fragment.name != name:
            raise InputError(f"{where}: the text of `{name}` declares the fragment `{fragment.name}`")
        fragments.append(fragment)
    return fragments


_FRAGMENTS = 'such as {"twice": "fragment twice(x: tensor<scalar>) -> (y: tensor<scalar>) { y = x * 2.0; }"}'
