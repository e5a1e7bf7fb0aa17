"""Arguments by their names: NNEF gives tensors by place and the rest by name, and a reducer needs all names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from t2n_core.errors import SpecError
from t2n_core.nnef.reading.document import Assignment, FragmentText
from t2n_core.nnef.signatures import Signature, fragment_signature
from t2n_core.nnef.spec import Spec, TargetName, spec_for

_NEWEST = {"tract": "0.23.9", "khronos": "1.0.5"}


@dataclass(frozen=True, slots=True)
class Signatures:
    """The signatures of the operators of a target version, and of a graph's fragments."""

    spec: Spec
    fragments: Mapping[str, Signature] = field(default_factory=dict)

    @classmethod
    def of(cls, target: TargetName, version: str = "") -> Signatures:
        """Return those of a version; without one, of the newest that is known. Raises SpecError."""
        return cls(spec_for(target, version or _NEWEST[target]))

    @property
    def target(self) -> TargetName:
        return self.spec.target

    def with_fragments(self, fragments: Mapping[str, FragmentText]) -> Signatures:
        return replace(self, fragments={name: fragment_signature(name, one.text) for name, one in fragments.items()})

    def find(self, operator: str) -> Signature | None:
        """Return the signature of an operator or a fragment; None if there is none."""
        if operator in self.fragments:
            return self.fragments[operator]
        try:
            return self.spec.operator(operator)
        except SpecError:
            return None

    def bound(self, given: Assignment) -> Assignment:
        """Return an assignment with all its arguments by name, as far as its operator is known."""
        signature = self.find(given.operator)
        if signature is None:
            return given
        places = [place for place, one in enumerate(given.arguments) if not one.name]
        if len(places) > len(signature.parameters):
            return given
        names = dict(zip(places, (one.name for one in signature.parameters), strict=False))
        arguments = [replace(one, name=names.get(place, one.name)) for place, one in enumerate(given.arguments)]
        return replace(given, arguments=tuple(arguments))

    def positional(self, given: Assignment) -> Assignment:
        """Return an assignment as it is written: leading tensors by place, the rest by name."""
        signature = self.find(given.operator)
        if signature is None:
            return given
        named = {one.name: one for one in given.arguments}
        order = [parameter for parameter in signature.parameters if parameter.name in named]
        leading = True
        arguments = []
        for place, parameter in enumerate(order):
            leading = leading and parameter.is_tensor and signature.parameters[place] is parameter
            arguments.append(replace(named[parameter.name], name="") if leading else named[parameter.name])
        rest = [one for one in given.arguments if signature.parameter(one.name) is None]
        return replace(given, arguments=(*arguments, *rest))

    def problem(self, given: Assignment) -> str:
        """Return what an assignment lacks, '' if nothing; of an operator that the target does not have nothing is
        known."""
        signature = self.find(given.operator)
        if signature is None:
            return ""
        names = {one.name for one in given.arguments}
        missing = [p.name for p in signature.parameters if p.name in signature.missing(dict.fromkeys(names))]
        return f"`{given.operator}` lacks {missing[0]}" if missing else ""


__all__ = ["Signatures"]
