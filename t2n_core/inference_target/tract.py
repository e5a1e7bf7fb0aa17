"""The target for the tract engine, in any version on PyPI."""

from __future__ import annotations

import copy
import getpass
import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from packaging.version import InvalidVersion, Version

from t2n_core.engine import ResolvedEngine, engine_for, resolve_engines
from t2n_core.engine.pool import TractRunner
from t2n_core.engine.provision.versions import parse_spec
from t2n_core.errors import InputError
from t2n_core.inference_target.base import InferenceTarget, fragments_of
from t2n_core.inference_target.version import SemanticVersion
from t2n_core.level import DEFAULT_LEVEL, TractCheckTolerance
from t2n_core.nnef.graph import Fragment, Graph
from t2n_core.nnef.options.precision import PrecisionPlan
from t2n_core.nnef.options.weight_choice import Reader, WeightFormat, WeightOption, weight_choice
from t2n_core.nnef.options.writing_options import WritingOptions
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.spec import Spec, spec_for
from t2n_core.nnef.tract.constants import folds_norm
from t2n_core.nnef.tract.storage_formats import refusal
from t2n_core.nnef.tract.traits import traits_of
from t2n_core.nnef.tract.user_extensions import sizes_from_zero, to_write, with_assertions

if TYPE_CHECKING:
    import torch

_EXACT = re.compile(r"\d+\.\d+\.\d+([.a-z]+\d+)*")


class TractFeatureFlag(StrEnum):
    """An optional part of tract, in addition to its standard library and `tract_core`."""

    DEFAULT = "default"
    """All parts of the releases on PyPI."""
    ONNX = "onnx"
    PULSE = "pulse"
    EXTRA = "extra"
    TRANSFORMERS = "transformers"
    COMPLEX = "complex"


class TractNNEF(InferenceTarget):
    """The target of archives for the tract engine. The arguments of InferenceTarget are described there.

    Args:
        version: `0.21.13`, or what resolves to one release: `0.21` (its newest), `>=0.21,<0.23` (the newest in the
            range), `latest`. In a marker also called `versions`: it narrows the session's engines.
        feature_flags: registries that your engine has in addition to `registries`, any of `transformers`, `extra`,
            `pulse`, `onnx`. The releases on PyPI have all of them, so alone it adds nothing. `complex` is refused: this
            exporter writes no complex tensors, and no release since 0.20 has them.
        specific_tract_binary_path: a tract command line that checks instead of the release from PyPI. It reports its
            version itself; a `version` passed with it must be the same release. For a test session:
            `--t2n-tract=path:/to/tract`.
        specific_properties: texts for tract's `properties`, `{"name": "text"}`.
        dump_identity_properties: also write user, host, operating system, date and versions of the export as
            properties. Off by default, so that the same model gives the same bytes, and archives hold no user's name.
        force_attention_inner_in_f32: the engine's own attention operator (`reify_sdpa_operator`) computes float16 in
            float32 inside. The formula that is written without that operator always does.
        force_linear_accumulation_in_f32: products of float16 (linear layers, matrix products, convolutions, recurrent
            nets) are computed in float32, each result rounded once. Weights stay float16 in the archive.
        force_norm_in_f32: a batch norm of float16 is computed in float32 too. Layer, group, instance and RMS norms
            always are, as in PyTorch.
        reify_sdpa_operator: attention as `tract_transformers_sdpa`, from 0.22.0 on. Where that operator cannot express
            the call, or would be wrong (a mask that may leave a query without a key, or be below -30000 for all its
            keys, an oblong causal mask), the formula is written as without the option, and the result's notes state
            why. Off by default: in 0.22, and from 0.23.6 on, most sizes take longer with the operator.
        upsample_with_debox: nearest upsampling by integer factors as one `debox`, from 0.23.0 on.
        keep_nan: a NaN goes through activations, `clamp`, `maximum` and `minimum` as in PyTorch, where the engine's
            kernels return a number: `relu`, `relu6`, `hardtanh`, `hardsigmoid`, `sigmoid`, `tanh`, `gelu` and these
            three then take a comparison and a selection more for each operand. An element that is not finite reaches
            only the results of a linear or cubic resize that depend on it, not all along its axes.
        registries: the registries that the engine in your product is built with: any of `transformers`, `extra`,
            `pulse`, `onnx`; `[]` for `tract_core` alone; None or `default` for the ones in the releases on PyPI.
            Operators of others are never written; the exporter uses another lowering if it has one.
        weights: how weights of two axes or more are stored; the engine computes with them in float32, as fast as
            before. `float16` halves the archive. `int8` stores integers with a scale for each output channel, a
            quarter. `q4_0` stores blocks of 32 4-bit integers with a scale, a seventh, where the version reads them: of
            linear layers (from 0.21.6 on), embeddings and experts (0.21.11), convolutions that are not depthwise
            (0.21.12). By layer: `{"head": "float32", "*": "int8"}`, patterns of names of weights or modules, of which
            the first that fits decides; or a function of name and tensor that returns a format or None. For your own
            scales, pass `StoredAs("int8", scales=...)` as a format. The result's notes name the weights that keep their
            dtype, with the reason. The check is against the model with the rounded weights: it proves that the engine
            computes what the archive holds, not that this few bits are enough for your model, which a metric measures:
            it compares with the model's own weights.
        precision: a plan, or the path of one as TOML, of operators that are computed in float16 in a float32 model;
            inputs and outputs stay float32. With `auto` a plan is searched in the engine, and written next to the
            archive. The check is then at the level `float16`, unless another is chosen.
        pulse: the check also runs the archive as a stream (tract's `pulse`), this many steps of its one dynamic axis at
            a time, and compares with PyTorch on the whole sequence, without the engine's delay. With several dynamic
            axes `{"T": 8}` names the streamed one; the others keep the size of the example. What needs the end of a
            stream is refused, and a node that the engine cannot stream fails at stage `optimise` and is named.
        pulsed_archive: with `pulse`, the export also writes the stream as an archive, `model.pulsed.nnef.tgz` next to
            `model.nnef.tgz`, as the engine itself writes its pulsed model. It is loaded anew and compared pulse by
            pulse with PyTorch on the whole sequence, also without `check_io`; the notes of the result state its pulse
            and by how many steps each output is late. A stream that is refused or differs fails the export.
        custom_extensions: further `extension` lines. An assertion on sizes, `["tract_assert T <= 16"]`, becomes part of
            the range of sizes that the archive is valid for, which the engine then checks; `tract_assert P >= 0` also
            allows a size of 0, where a range else starts at 1; of scenarios, `tract_assert tg: S == 1` (from 0.21.8
            on), one has to hold.
        custom_fragments: fragments, as NNEF text or `Fragment`, that are in the archive and that rules of `rules=` call
            by name.
        engine: a `ResolvedEngine`; the index is not queried then. Not in markers.
        offline: take engines and version lists from the cache only. For a test session: `--t2n-offline`.

    Raises:
        InputError: options that exclude each other, or an invalid value.
        EngineResolveError: no such release.
    """

    name: ClassVar[str] = "tract"
    OPTIONS: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **InferenceTarget.OPTIONS,
        "feature_flags": ("feature_flags",),
        "specific_properties": ("specific_properties",),
        "dump_identity_properties": ("dump_identity_properties",),
        "force_attention_inner_in_f32": ("_writing.attention_in_f32",),
        "force_linear_accumulation_in_f32": ("_writing.linear_accumulation_in_f32",),
        "force_norm_in_f32": ("_writing.norm_in_f32",),
        "reify_sdpa_operator": ("_writing.reify_sdpa",),
        "upsample_with_debox": ("_writing.upsample_with_debox",),
        "keep_nan": ("_writing.keep_nan",),
        "registries": ("registries",),
        "weights": ("_writing.weights",),
        "precision": ("searches_precision", "_writing.precision"),
        "pulse": ("pulse", "_writing.streaming", "_writing.streamed_symbol"),
        "pulsed_archive": ("pulsed_archive",),
        "custom_extensions": ("custom_extensions",),
        "custom_fragments": ("_fragments",),
    }

    def __init__(
        self,
        version: str = "latest",
        feature_flags: Iterable[str] | str | None = None,
        check_io: bool = True,
        dynamic_axes: Any = None,
        specific_tract_binary_path: str | Path | None = None,
        check_io_tolerance: str | TractCheckTolerance = DEFAULT_LEVEL,
        specific_properties: Mapping[str, str] | None = None,
        dump_identity_properties: bool = False,
        force_attention_inner_in_f32: bool = False,
        force_linear_accumulation_in_f32: bool = False,
        force_norm_in_f32: bool = False,
        reify_sdpa_operator: bool = False,
        upsample_with_debox: bool = False,
        *,
        keep_nan: bool = False,
        registries: Iterable[str] | str | None = None,
        weights: WeightOption = None,
        precision: str | Path | PrecisionPlan | None = None,
        pulse: int | Mapping[str, int] | None = None,
        pulsed_archive: bool = False,
        custom_extensions: Sequence[str] = (),
        custom_fragments: Sequence[str | Fragment] = (),
        engine: ResolvedEngine | None = None,
        offline: bool = False,
    ) -> None:
        super().__init__(version, check_io=check_io, dynamic_axes=dynamic_axes, check_io_tolerance=check_io_tolerance)
        if engine is not None and specific_tract_binary_path is not None:
            raise InputError("pass either an engine or specific_tract_binary_path")
        streamed_symbol, self.pulse = _pulse(pulse)
        self.pulsed_archive = pulsed_archive
        self.searches_precision = precision == "auto"
        self._resolved = engine
        self._binary = None if specific_tract_binary_path is None else Path(specific_tract_binary_path)
        self._offline = offline
        self.feature_flags = _flags("feature_flags", feature_flags)
        self.registries = None if registries is None else _flags("registries", registries)
        self.specific_properties = dict(specific_properties or {})
        self.dump_identity_properties = dump_identity_properties
        self._writing = WritingOptions(
            attention_in_f32=force_attention_inner_in_f32,
            linear_accumulation_in_f32=force_linear_accumulation_in_f32,
            norm_in_f32=force_norm_in_f32,
            reify_sdpa=reify_sdpa_operator,
            upsample_with_debox=upsample_with_debox,
            keep_nan=keep_nan,
            weights=weight_choice(weights),
            precision=_plan(precision),
            streaming=pulse is not None,
            streamed_symbol=streamed_symbol,
        )
        self.custom_extensions = tuple(_extension(line) for line in custom_extensions)
        self._fragments = tuple(fragments_of(custom_fragments, "custom_fragments"))

    @classmethod
    def latest(cls, **options: Any) -> TractNNEF:
        """Return a target for the newest release on PyPI."""
        return cls("latest", **options)

    @classmethod
    def latest_version(cls, *, offline: bool = False) -> SemanticVersion:
        """Return the newest release on PyPI, or in the cache. Raises EngineResolveError if there is none."""
        return SemanticVersion(resolve_engines("latest", offline=offline, fetch=False)[-1].version)

    def on(self, release: ResolvedEngine) -> TractNNEF:
        """Return this target, with all its options, for another release."""
        other = copy.copy(self)
        other.requested_version, other._resolved, other._binary = release.version, release, None
        return other

    @property
    def resolved(self) -> ResolvedEngine:
        """Return the engine of this target, fetched if necessary.

        Raises EngineResolveError, EngineProvisionError, InputError.
        """
        if self._resolved is None:
            engine_spec = self.requested_version if self._binary is None else f"path:{self._binary}"
            items = parse_spec(engine_spec)
            if len(items) > 1 or items[0].kind in ("all", "all-minors"):
                raise InputError(
                    f"TractNNEF takes one version, not {engine_spec!r}",
                    hint="a session takes several: --t2n-tract, narrowed by `versions` of the marker",
                )
            engines = resolve_engines(engine_spec, offline=self._offline)
            if not engines:
                raise InputError(f"TractNNEF takes one version, not {engine_spec!r}")
            if self._binary is not None:
                self._check_binary(engines[-1].version)
            self._resolved = engines[-1]  # the newest of a range
        return self._resolved

    @property
    def version(self) -> SemanticVersion:
        if self._resolved is None and self._binary is None and _EXACT.fullmatch(self.requested_version):
            return SemanticVersion(self.requested_version)  # export without a check needs no engine
        return SemanticVersion(self.resolved.version)

    @property
    def spec(self) -> Spec:
        spec = spec_for("tract", self.version)
        if self.registries is None or TractFeatureFlag.DEFAULT in self.registries | self.feature_flags:
            return spec
        names = sorted(self.registries | self.feature_flags)
        return spec.with_registries(["tract_core", *(f"tract_{name}" for name in names)])

    @property
    def writing(self) -> WritingOptions:
        return self._writing

    def folds_norm(self, channels: int, elements: int) -> bool:
        return folds_norm(self.spec.version, channels, elements)

    def storage_refusal(self, format: WeightFormat, reader: Reader) -> str:
        return refusal(traits_of(self.spec.version), format, reader)

    @property
    def custom_fragments(self) -> tuple[Fragment, ...]:
        return self._fragments

    def with_extensions(self, lines: Iterable[str]) -> TractNNEF:
        """Return the same target with more `custom_extensions`. Raises InputError for an invalid line."""
        return self.with_options(custom_extensions=(*self.custom_extensions, *lines))

    def with_specific_properties(self, specific_properties: Mapping[str, str]) -> TractNNEF:
        """Return the same target with other `specific_properties`."""
        return self.with_options(specific_properties=specific_properties)

    def with_precision(self, plan: PrecisionPlan | None) -> TractNNEF:
        """Return the same target with a precision plan, without a search for one."""
        return self.with_options(precision=plan)

    def engine(self) -> TractRunner:
        return engine_for(self.resolved)

    @property
    def sizes_from_zero(self) -> frozenset[str]:
        return frozenset() if self.pulse is not None else sizes_from_zero(self.custom_extensions)

    def size_range(self, sizes: SizeRange) -> SizeRange:
        if self.pulse is not None:  # a stream has its own sizes
            return sizes
        return with_assertions(sizes, self.custom_extensions)

    def pre_trace(self, model: torch.nn.Module, input_names: list[str] | None, output_names: list[str] | None) -> None:
        from t2n_core.torch_graph.constraints.declared_axes import check_declared

        if self.pulsed_archive and self.pulse is None:
            raise InputError("pulsed_archive=True needs pulse=, the steps that the archive takes at a time")
        check_declared(self.dynamic_axes)

    def post_trace(self, nnef_graph: Graph, active_custom_extensions: list[str]) -> None:
        further: Sequence[str] = self.custom_extensions
        if self.pulse is None:
            further = to_write(further, nnef_graph.sizes, traits_of(self.spec.version))
        active_custom_extensions += [e for e in further if e not in active_custom_extensions]
        nnef_graph.properties.update(self.specific_properties)
        if self.dump_identity_properties:
            nnef_graph.properties.update(identity_properties())

    def _check_binary(self, reported: str) -> None:
        """Raise InputError for a binary of another release, which proves nothing about the requested one."""
        try:
            requested, actual = Version(self.requested_version).release, Version(reported).release
        except InvalidVersion:  # `latest`, a range: any binary
            return
        if actual[: len(requested)] != requested:
            raise InputError(f"{self._binary} is tract {reported}, not the requested version {self.requested_version}")


def _plan(option: str | Path | PrecisionPlan | None) -> PrecisionPlan | None:
    """Return the plan of an option; None without one, or if one is to be searched. Raises InputError."""
    if option is None or isinstance(option, PrecisionPlan):
        return option
    return None if option == "auto" else PrecisionPlan.read(Path(option))


def _pulse(option: int | Mapping[str, int] | None) -> tuple[str | None, int | None]:
    """Return the symbol of a stream's time axis, None if it is not named, and its steps. Raises InputError."""
    symbol, steps = None, option
    if isinstance(option, Mapping):
        if len(option) != 1:
            raise InputError(f"pulse={dict(option)}: one dynamic axis is streamed", hint='name it alone, as {"T": 8}')
        ((symbol, steps),) = option.items()
    if steps is not None and (not isinstance(steps, int) or steps < 1):
        raise InputError(f"pulse={option}: a pulse has one step or more")
    return symbol, steps


def _flags(option: str, value: Iterable[str] | str | None) -> frozenset[TractFeatureFlag]:
    """Return the flags of an option. Raises InputError."""
    names = [value] if isinstance(value, str) else list(value or ())
    try:
        flags = frozenset(TractFeatureFlag(name) for name in names)
    except ValueError as wrong:
        choices = ", ".join(flag.value for flag in TractFeatureFlag)
        raise InputError(f"{option}: {wrong}", hint=f"one or more of {choices}") from None
    if TractFeatureFlag.COMPLEX in flags:
        raise InputError(
            f"{option}: this exporter writes no complex tensors, and no release on PyPI since 0.20 supports them",
            hint="compute with real and imaginary parts (torch.view_as_real)",
        )
    return flags


def _extension(line: str) -> str:
    """Return an extension such as `tract_assert T >= 1`, without keyword and semicolon. Raises InputError."""
    plain = line.strip().removeprefix("extension ").removesuffix(";").strip()
    if not plain or ";" in plain or "\n" in plain:
        raise InputError(f"custom_extensions: {line!r} is not one extension", hint="such as 'tract_assert T >= 1'")
    return plain


def identity_properties() -> dict[str, str]:
    """Return user, host, operating system, date and versions of this export, as properties of an archive."""
    return {
        "export_user": _user(),
        "export_host": platform.node(),
        "export_os": platform.platform(),
        "export_date": datetime.now(UTC).isoformat(timespec="seconds"),
        "export_python": platform.python_version(),
        "export_torch": metadata.version("torch"),
        "export_t2n": str(sys.modules["t2n_core"].__version__),
    }


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without an entry for its user
        return "unknown"
