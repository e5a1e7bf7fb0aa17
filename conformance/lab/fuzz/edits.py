"""Smaller programs: a step is bypassed, and its readers read one of its operands instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from conformance.lab.fuzz.program import Input, Program, Step


def rename_variables(text: str, names: Mapping[str, str]) -> str:
    """Return the expression with variables replaced by others, or by numbers."""
    if not names:
        return text
    return re.sub(rf"\b({'|'.join(names)})\b", lambda match: names[match[0]], text)


def operands(program: Program, step: Step) -> list[str]:
    """Return the values that may replace a step: values of its kind that it reads; for a size, small numbers too."""
    sizes = {value.name for value in program.steps if value.is_size}
    tensors = {value.name for value in (*program.steps, *program.inputs) if isinstance(value, Input) or value.is_tensor}
    defined = sizes | tensors
    read = sorted(step.reads & defined)
    if step.is_condition:
        return ["True", "False"]
    if step.is_size:
        return [name for name in read if name in sizes] + ["1", "2", "4"]
    return [name for name in read if name in tensors]


def bypass_step(program: Program, step: Step, operand: str) -> Program:
    """Without the step; `operand` is read in its place."""
    steps = tuple(
        replace(s, text=rename_variables(s.text, {step.name: operand})) for s in program.steps if s.name != step.name
    )
    outputs = tuple(dict.fromkeys(operand if name == step.name else name for name in program.outputs))
    return replace(program, steps=steps, outputs=outputs)


def without(program: Program, step: Step) -> Iterator[Program]:
    """Yield the programs without a step; the last one also gives up every output that needs it."""
    for operand in operands(program, step):
        yield bypass_step(program, step, operand)
    lost = {step.name}
    for other in program.steps:
        if other.reads & lost:
            lost.add(other.name)
    remaining = [other.name for other in program.steps if other.name not in lost and other.is_tensor]
    outputs = [name for name in program.outputs if name not in lost] or remaining[-1:]
    if outputs:
        yield replace(program, outputs=tuple(outputs))


def renumber_steps(program: Program) -> Program:
    """Return the steps named in their order, without gaps."""
    names = {step.name: f"{step.name[0]}{index}" for index, step in enumerate(program.steps)}
    steps = tuple(replace(s, name=names[s.name], text=rename_variables(s.text, names)) for s in program.steps)
    return replace(program, steps=steps, outputs=tuple(names.get(name, name) for name in program.outputs))
