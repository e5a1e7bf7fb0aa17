"""A file that another exporter wrote, and its check by two profiles.

values   what any exporter promises: right on the engine's main path, in a fresh State, at the example's sizes and the
         exporter's declared ones; inputs and outputs are found by name, or by place where it uses its own names
strict   what this package promises: the call's names in its order, right on every path of the engine and in calls in
         one State, and at sizes beyond the declared ones right or refused
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from t2n_core.check.file import CheckedFile, open_checked
from t2n_core.engine.paths import EnginePath, on_path
from t2n_core.errors import InterfaceError
from t2n_core.export.exportable_model import ExportableModel
from t2n_core.exporters.exporter import DeclaredSizes, Exporter
from t2n_core.exporters.samples import samples_of
from t2n_core.parity.check import check_parity
from t2n_core.parity.judging.interface import Interface, Port
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Outcome, Stage, Status
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.parity.sizes import check_sizes

PROFILES: Final = "profiles"
"""Fact of an outcome: the status by each profile."""


class Profile(StrEnum):
    """The profile of a check of another exporter's file."""

    VALUES = "values"
    STRICT = "strict"


@dataclass
class ForeignArchive:
    """Another exporter's file, with PyTorch's samples of the model."""

    archive: Path
    export: ExportableModel
    exporter: Exporter
    declared: DeclaredSizes
    engine: Any
    profile: Profile
    times: Mapping[str, float]
    planned_level: ClassVar[str] = ""
    """No level of a plan, which only this package's own exports follow."""

    @cached_property
    def file(self) -> CheckedFile:
        """Return the file as it is read. Raises InputError if it cannot be."""
        return open_checked(self.archive, {})

    @property
    def samples(self) -> list[Sample]:
        """Return PyTorch's samples, the example first. Raises InputError if the model does not run on it."""
        return samples_of(self.export)

    def check_request(self, criteria: Judgement, timeout: float = 60.0) -> CheckRequest:
        """Return the check by the profile, at the declared sizes; `timeout` is in seconds.

        Raises InputError if the model cannot compute the samples, or the file cannot be read, and InterfaceError if it
        has other inputs or outputs.
        """
        return self._request(self.profile, criteria, timeout)

    def check_parity(self, criteria: Judgement, *, timeout: float = 60.0) -> Outcome:
        """Return the outcome by the profile, with the status by both. Failures are outcomes, never raised."""
        return self._by_profiles(lambda profile: self._check(profile, criteria, timeout))

    def check_sizes(self, samples: Sequence[Sample], timeout: float = 60.0) -> Outcome:
        """Return the outcome by the profile at the sizes of these samples, as `check_parity` does."""
        return self._by_profiles(lambda profile: self._check_sizes(profile, samples, timeout))

    def _by_profiles(self, check: Callable[[Profile], Outcome]) -> Outcome:
        """Return the outcome of the profile of this check, with the status by both.

        A file that passes by `strict` has the values, and one that the engine does not load has none.
        """
        strict = check(Profile.STRICT)
        values = strict if strict.status is Status.PASS or self._is_not_loaded(strict) else check(Profile.VALUES)
        statuses = {Profile.VALUES.value: values.status.value, Profile.STRICT.value: strict.status.value}
        outcome = strict if self.profile is Profile.STRICT else values
        return replace(outcome, facts={**outcome.facts, PROFILES: statuses})

    def _is_not_loaded(self, outcome: Outcome) -> bool:
        """Return whether the engine does not load the file on its main path, whatever names the call has."""
        main: Sequence[EnginePath] = getattr(self.engine, "paths", ())[:1]
        is_of_engine = outcome.error is not None and outcome.error.error_class != InterfaceError.__name__
        return outcome.stage in (Stage.LOAD, Stage.OPTIMISE) and outcome.path in ("", *main) and is_of_engine

    def _check_sizes(self, profile: Profile, samples: Sequence[Sample], timeout: float) -> Outcome:
        is_strict = profile is Profile.STRICT
        return check_sizes(
            self.engine if is_strict else _on_main_path(self.engine),
            self.archive,
            samples if is_strict else [sample for sample in samples if self.declares(sample.sizes)],
            accepts=self.declares,
            output_names=self.file.names[1],
            timeout=timeout,
            carries=not is_strict,
        )

    def _check(self, profile: Profile, criteria: Judgement, timeout: float) -> Outcome:
        try:
            request = self._request(profile, criteria, timeout)
            engine = self.engine if profile is Profile.STRICT else _on_main_path(self.engine)
        except Exception as cause:
            return Outcome.from_error(cause, Stage.LOAD)
        outcome = check_parity(engine, request)
        if outcome.status is Status.MISMATCH:
            return self.file.with_author(outcome, on_path(engine, outcome.path, outcome.failed_sizes), request)
        if outcome.status is Status.PASS and profile is Profile.STRICT:
            return self._beyond(outcome, request)
        return self.file.with_hint(outcome, self.engine, "tract")

    def _beyond(self, outcome: Outcome, request: CheckRequest) -> Outcome:
        """Return a pass, or the failure of sizes beyond the declared ones, where the engine may refuse the file."""
        beyond = [sample for sample in self.samples if not self.declares(sample.sizes)]
        if not beyond:
            return outcome
        beyond_outcome = check_sizes(
            self.engine,
            request.archive,
            [request.samples[0], *beyond],
            accepts=self.declares,
            tolerance=request.criteria.level,
            output_names=request.output_names,
            timeout=request.timeout,
        )
        return outcome if beyond_outcome.passed or beyond_outcome.status is Status.WEAK else beyond_outcome

    def declares(self, sizes: Mapping[str, int]) -> bool:
        """Return whether the file has to be right at these sizes."""
        return self.declared.holds(sizes) or sizes == self.samples[0].sizes

    def _request(self, profile: Profile, criteria: Judgement, timeout: float) -> CheckRequest:
        file = self.file
        names = self.export.inputs.names
        request = CheckRequest(self.archive, self.samples, (), criteria, timeout)
        if profile is Profile.STRICT:
            outputs = self.export.options.output_names or file.names[1]
            if len(outputs) != len(request.samples[0].expected):
                raise InterfaceError(f"the file has {len(outputs)} outputs, not {len(request.samples[0].expected)}")
            interface = Interface(
                tuple(Port(*port) for port in zip(names, _dtypes(request.samples[0].inputs), strict=True)),
                tuple(Port(*port) for port in zip(outputs, _dtypes(request.samples[0].expected), strict=True)),
                "the test",
            )
            request = replace(request, output_names=tuple(outputs), interface=interface)
        else:
            inputs = _places("input", names, file.names[0])
            outputs = file.names[1]
            places = _places("output", self.export.options.output_names or outputs, outputs)
            if len(places) != len(request.samples[0].expected):
                raise InterfaceError(f"the file has {len(places)} outputs, not {len(request.samples[0].expected)}")
            samples = [_arranged(sample, inputs, places) for sample in request.samples]
            request = replace(request, samples=samples, output_names=tuple(outputs), carries=True)
        return replace(request, samples=[sample for sample in request.samples if self.declares(sample.sizes)])


def _on_main_path(engine: Any) -> Any:
    """Return an engine that takes its main path alone, without calls in used States."""
    paths: Sequence[EnginePath] = getattr(engine, "paths", ())
    return on_path(engine, paths[0]) if paths else engine


def _dtypes(arrays: Sequence[Any]) -> list[str]:
    return [array.dtype.name for array in arrays]


def _places(kind: str, names: Sequence[str], stated: Sequence[str]) -> list[int]:
    """Return for each port of a file its place in the call: by name, or in order if the file has other names."""
    if set(stated) <= set(names):
        return [names.index(name) for name in stated]
    if len(stated) != len(names):
        raise InterfaceError(f"the file has the {kind}s {', '.join(stated)}, and the call {', '.join(names)}")
    return list(range(len(names)))


def _arranged(sample: Sample, inputs: Sequence[int], outputs: Sequence[int]) -> Sample:
    """Return a sample with its arrays in the order of a file."""
    return replace(
        sample,
        inputs=tuple(sample.inputs[index] for index in inputs),
        expected=tuple(sample.expected[index] for index in outputs),
    )
