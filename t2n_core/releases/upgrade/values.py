"""Outputs of two releases for one file, on each path of the engine and at each sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from t2n_core.check.file import CheckedFile, check_file
from t2n_core.engine.paths import EnginePath, OnPath, is_required, paths_of_release
from t2n_core.engine.protocol import Array, EngineReply
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.outcomes import comparison_outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.parity.sizes import Answers, answers_at_sizes
from t2n_core.releases.boundaries import RIGHT, ending_of

TARGET: Final = "tract"
_SHORT: Final = 10.0
"""Limit in seconds of a job on a path on which releases do not support every graph."""


@dataclass(frozen=True, slots=True)
class Side:
    """The answers of one release on a path."""

    engine: Any
    path: EnginePath
    failure: EngineReply | None
    """The reply of an engine that does not load or optimise the file."""
    outputs: Mapping[Sample, tuple[Array, ...]]
    refused: Mapping[Sample, str]
    """Samples that it does not run, with the reason."""
    facts: Mapping[str, Any]

    @property
    def version(self) -> str:
        return str(self.engine.version)

    def on_path(self, sizes: Mapping[str, int]) -> OnPath:
        """Return the engine on this path, which fixes these sizes if it fixes any."""
        return on_path(self.engine, self.path, sizes)


@dataclass(frozen=True, slots=True)
class PathChange:
    """The difference between two releases on one path of the engine."""

    old: Side
    new: Side
    compared: Outcome | None = None
    """The comparison of the outputs of both releases; None if no sample runs in both."""
    judged: tuple[str, str] = ("", "")
    """The ending of each release at the samples that differ, by the reference of the file; empty if there is none."""

    @property
    def name(self) -> str:
        """Return the name of the path, or both names where the newer release lacks the older one's path."""
        return self.old.path.value if self.old.path is self.new.path else f"{self.old.path}, now {self.new.path}"

    @property
    def required(self) -> bool:
        """Return whether a change on this path counts, as both releases support it in general."""
        return all(is_required(side.path, side.version) for side in (self.old, self.new))

    @property
    def lost(self) -> bool:
        """Return whether the newer release does not load what the older one loads."""
        return self.new.failure is not None and self.old.failure is None

    @property
    def won(self) -> bool:
        """Return whether only the newer release loads it."""
        return self.old.failure is not None and self.new.failure is None

    @property
    def refused(self) -> dict[Sample, str]:
        """Return the samples that only the older release runs, with the reason of the newer one."""
        return {sample: why for sample, why in self.new.refused.items() if sample in self.old.outputs}

    @property
    def taken(self) -> dict[Sample, str]:
        """Return the samples that only the newer release runs, with the reason of the older one."""
        return {sample: why for sample, why in self.old.refused.items() if sample in self.new.outputs}

    @property
    def moved(self) -> bool:
        """Return whether outputs differ beyond the level, and not by rounding that the reference allows both."""
        return self.compared is not None and not self.compared.passed and self.judged != (RIGHT, RIGHT)

    @property
    def is_wrong(self) -> bool:
        """Return whether only the newer release loads it, and is not right."""
        return self.won and self.judged[1] not in ("", RIGHT)

    @property
    def same(self) -> str:
        """Return how a release is called that computes what is expected of it by `find_since`."""
        if RIGHT in self.judged:
            return RIGHT
        return f"as {self.new.version}" if self.won else "unchanged"

    @property
    def differing(self) -> list[Sample]:
        """Return the samples at whose sizes the outputs differ."""
        if self.compared is None or self.compared.passed:
            return []
        return [
            sample
            for sample in self.old.outputs
            if sample in self.new.outputs and sample.sizes in self.compared.failed_sizes
        ]


def on_path(engine: Any, path: EnginePath, sizes: Mapping[str, int]) -> OnPath:
    """Return an engine on a path; only the path of fixed symbols fixes the sizes."""
    return OnPath(engine, path, sizes if path is EnginePath.FIXED_SYMBOLS else {})


def counterpart(path: EnginePath, version: str) -> EnginePath:
    """Return the path that a program takes in another release: the same, or the only one with free sizes."""
    return path if path in paths_of_release(version) else EnginePath.DECLUTTER


def compare_values(
    file: CheckedFile, request: CheckRequest, old: Any, new: Any, paths: Sequence[EnginePath]
) -> Iterator[PathChange]:
    """Yield the difference of two engines on each of the paths that the older one has, at the samples of a request.

    The path of fixed symbols is taken only by samples that have sizes. Where outputs differ, each release is judged by
    the expected outputs of the samples, if they have some.
    """
    for path in paths:
        samples = [sample for sample in request.samples if sample.sizes or path is not EnginePath.FIXED_SYMBOLS]
        if path not in paths_of_release(str(old.version)) or not samples:
            continue
        counts = all(is_required(path, str(engine.version)) for engine in (old, new))
        timeout = request.timeout if counts else min(request.timeout, _SHORT)
        path_request = replace(request, samples=samples, timeout=timeout)
        before, after = (_side(engine, counterpart(path, str(engine.version)), path_request) for engine in (old, new))
        change = PathChange(before, after, _comparison(before, after, path_request))
        if all(len(sample.expected) == len(request.output_names) for sample in samples):
            change = replace(change, judged=_judged(file, change, request))
        yield change


def _judged(file: CheckedFile, change: PathChange, request: CheckRequest) -> tuple[str, str]:
    """Return how both releases end where their outputs differ, or how the newer one does if only that loads."""
    if change.won and change.new.outputs:
        return "", judged_ending(file, change.new, replace(request, samples=list(change.new.outputs)))
    if not change.differing:
        return "", ""
    narrow_request = replace(request, samples=change.differing)
    return judged_ending(file, change.old, narrow_request), judged_ending(file, change.new, narrow_request)


def judged_ending(file: CheckedFile, side: Side, request: CheckRequest) -> str:
    """Return how a check of the samples against the file's reference ends in a release, the first that is not right."""
    endings = []
    for sizes, samples in _groups(side.path, request.samples):
        outcome = check_file(file, side.on_path(sizes), TARGET, replace(request, samples=samples))
        endings.append(ending_of(outcome))
    return next((ending for ending in endings if ending != RIGHT), RIGHT)


def _groups(path: EnginePath, samples: Sequence[Sample]) -> Iterator[tuple[Mapping[str, int], list[Sample]]]:
    """Yield the samples of one job, with the sizes that are fixed in it."""
    if path is not EnginePath.FIXED_SYMBOLS:
        yield {}, list(samples)
        return
    groups: dict[tuple[tuple[str, int], ...], list[Sample]] = {}
    for sample in samples:
        groups.setdefault(tuple(sorted(sample.sizes.items())), []).append(sample)
    for sizes, group in groups.items():
        yield dict(sizes), group


def _side(engine: Any, path: EnginePath, request: CheckRequest) -> Side:
    outputs: dict[Sample, tuple[Array, ...]] = {}
    refused: dict[Sample, str] = {}
    failure: EngineReply | None = None
    facts: Mapping[str, Any] = {}
    for sizes, samples in _groups(path, request.samples):
        answers = answers_at_sizes(on_path(engine, path, sizes), request.archive, samples, request.timeout)
        facts = facts or (answers.first.facts if answers.first is not None else {})
        outputs.update(answers.ran)
        refused.update(_refusals(answers, samples))
        if answers.failure is not None and answers.failure.status == "timeout":
            break  # other sizes would take as long
    if not outputs and answers.failure is not None:  # the graph itself is refused, not some sizes
        failure, refused = answers.failure, {}
    return Side(engine, path, failure, outputs, refused, facts)


def _refusals(answers: Answers, samples: Sequence[Sample]) -> dict[Sample, str]:
    """Return the samples that did not run, with the reason."""
    if answers.failure is not None:
        return dict.fromkeys(samples, answers.failure.message)
    died = {sample: f"{reply.status}: {reply.message}" for sample, reply in answers.died}
    return {**dict(answers.refused), **died}


def _comparison(old: Side, new: Side, request: CheckRequest) -> Outcome | None:
    """Return the comparison of the newer release's outputs with the older one's; None if no sample runs in both."""
    both = [sample for sample in request.samples if sample in old.outputs and sample in new.outputs]
    if not both:
        return None
    earlier = [replace(sample, expected=old.outputs[sample]) for sample in both]
    reply = EngineReply("ok", "run", outputs=tuple(new.outputs[sample] for sample in both))
    common = {"engine": f"{TARGET} {new.version}", "required": request.criteria.required}
    comparison_request = replace(request, samples=earlier, reference=f"{TARGET} {old.version}")
    return comparison_outcome(reply, comparison_request, common)
