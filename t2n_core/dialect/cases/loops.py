"""Cases of loops, whose body is a fragment."""

from __future__ import annotations

from typing import Any, Final

from t2n_core.dialect.cases.case import Case
from t2n_core.dialect.cases.draw import Draw
from t2n_core.dialect.cases.recipes import recipe

_BODIES: Final = {
    "sum": "new = add(old, chunk);\n    row = mul(new, 0.5);",
    "decay": "scaled = mul(old, w);\n    new = add(scaled, chunk);\n    row = tanh(new);",
    "larger": "new = max(old, chunk);\n    row = sub(new, chunk);",
}


def _fragment(name: str, has_whole: bool) -> str:
    extra_parameter = ", w: tensor<scalar>" if has_whole else ""
    head = f"fragment {name}( chunk: tensor<scalar>, old: tensor<scalar>{extra_parameter} )"
    return f"{head}\n-> ( new: tensor<scalar>, row: tensor<scalar> )\n{{\n    {_BODIES[name]}\n}}\n"


@recipe("tract_core_scan")
def _scan(draw: Draw) -> Case:
    name = draw.turn(sorted(_BODIES))
    chunk = draw.turn([1, -1, 1, 2, 1, -2])
    shape = draw.shape(draw.integer(2, 3), 1, 5)
    axis = draw.integer(0, len(shape) - 1)
    count = draw.integer(1, 5)
    state = [*shape[:axis], abs(chunk), *shape[axis + 1 :]]
    shape[axis] = count * abs(chunk)
    outputs: list[Any] = [("row", "full", axis, chunk), ("new", "last", axis, 1)]
    if draw.number % 5 == 4:
        outputs = outputs[: draw.integer(1, 2)]
    has_whole = name == "decay"
    arguments: dict[str, Any] = {
        "body": name,
        "scan": [("chunk", draw.floats(shape), axis, chunk)],
        "full": [("w", draw.floats([1] * len(shape)))] if has_whole else [],
        "state": [("old", draw.floats(state), "new")],
        "output": outputs,
        "skip": 0,
    }
    dynamic = {"scan": axis} if draw.number % 4 == 3 and abs(chunk) == 1 else {}
    return Case(draw.op, arguments, dynamic=dynamic, fragments=_fragment(name, has_whole))
