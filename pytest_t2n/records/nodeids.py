"""Node ids of tests: the engine at their end, the case of a cell, and its names for patterns."""

from __future__ import annotations

OWN_EXPORTER = "t2n"
"""The name of this package's own exporter, which node ids and records leave out."""


def engine_id(target: str, label: str, exporter: str = "") -> str:
    """Return the end of the node ids of an engine: `tract-0.21.19`, `tract-0.23.8-no-fma`, `khronos`.

    Another exporter than this package's stands before it: `torch-onnx-tract-0.21.19`.
    """
    engine = target if target == "khronos" else f"{target}-{label.replace(' ', '-')}"
    return f"{exporter}-{engine}" if exporter else engine


def qualified_target(target: str, exporter: str) -> str:
    """Return the target, after the exporter if it is not this package's: `torch-onnx tract`."""
    return f"{exporter} {target}" if exporter else target


def case_id(nodeid: str, engine_id: str) -> str:
    """Return the node id without its engine: `test_x.py::test_y[a]` of `test_x.py::test_y[a-tract-0.21.19]`."""
    head, separator, tail = nodeid.rpartition(engine_id)
    if not separator or not head.endswith(("-", "[")):
        return nodeid
    if head.endswith("[") and tail.startswith("]"):
        return head[:-1] + tail[1:]
    return (head[:-1] + tail) if head.endswith("-") else head + tail.removeprefix("-")


def names_of(case: str) -> tuple[str, ...]:
    """Return the names of a case: `tests/test_a.py::test_b[c]`, `test_a.py::test_b[c]`, `test_b[c]`."""
    path, separator, test = case.partition("::")
    return (case, f"{path.rpartition('/')[2]}::{test}", test) if separator else (case,)


def suite_names(nodeid: str) -> set[str]:
    """Return the names of a test's suite: the names of the test without its parameters."""
    return {name.partition("[")[0] for name in names_of(nodeid)}
