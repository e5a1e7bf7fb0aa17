"""Binding of arguments to names: NNEF passes tensors by position and the rest by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from t2n_core.errors import SpecError
from t2n_core.nnef.reading.document import Assignment, FragmentText
from t2n_core.nnef.signatures import Signature, fragment_signature
from t2n_core.nnef.spec import Spec, TargetName, newest_spec, spec_for


@dataclass(frozen=True, slots=True)
class Signatures:
    """The signatures of the operators of a target version, and of a graph's fragments."""

    spec: Spec
    fragments: Mapping[str, Signature] = field(default_factory=dict)

    @classmethod
    def of(cls, target: TargetName, version: str = "") -> Signatures:
        """Return the signatures of a version, by default the newest known one. Raises SpecError."""
        return cls(spec_for(target, version) if version else newest_spec(target))

    @property
    def target(self) -> TargetName:
        return self.spec.target

    def with_fragments(self, fragments: Mapping[str, FragmentText]) -> Signatures:
        return replace(
            self, fragments={name: fragment_signature(name, fragment.text) for name, fragment in fragments.items()}
        )

    def find(self, operator: str) -> Signature | None:
        """Return the signature of an operator or a fragment; None if there is none."""
        if operator in self.fragments:
            return self.fragments[operator]
        try:
            return self.spec.operator(operator)
        except SpecError:
            return None

    def bind(self, assignment: Assignment) -> Assignment:
        """Return an assignment with all its arguments by name, if its operator is known."""
        signature = self.find(assignment.operator)
        if signature is None:
            return assignment
        places = [index for index, argument in enumerate(assignment.arguments) if not argument.name]
        if len(places) > len(signature.parameters):
            return assignment
        names = dict(zip(places, (parameter.name for parameter in signature.parameters), strict=False))
        arguments = [
            replace(argument, name=names.get(index, argument.name))
            for index, argument in enumerate(assignment.arguments)
        ]
        return replace(assignment, arguments=tuple(arguments))

    def positional(self, assignment: Assignment) -> Assignment:
        """Return an assignment as it is written: leading tensors by position, the rest by name."""
        signature = self.find(assignment.operator)
        if signature is None:
            return assignment
        by_name = {argument.name: argument for argument in assignment.arguments}
        order = [parameter for parameter in signature.parameters if parameter.name in by_name]
        leading = True
        arguments = []
        for index, parameter in enumerate(order):
            leading = leading and parameter.is_tensor and signature.parameters[index] is parameter
            arguments.append(replace(by_name[parameter.name], name="") if leading else by_name[parameter.name])
        rest = [argument for argument in assignment.arguments if signature.parameter(argument.name) is None]
        return replace(assignment, arguments=(*arguments, *rest))

    def problem(self, assignment: Assignment) -> str:
        """Return what an assignment lacks, '' if nothing or if the target does not have its operator."""
        signature = self.find(assignment.operator)
        if signature is None:
            return ""
        names = {argument.name for argument in assignment.arguments}
        missing = [p.name for p in signature.parameters if p.name in signature.missing(dict.fromkeys(names))]
        return f"`{assignment.operator}` lacks {missing[0]}" if missing else ""
