"""The operator tables against real engines.

Every name of the table resolves, with the registry that the table states, and no other name does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from t2n_core.engine.pool import TractRunner
from t2n_core.nnef.spec import Spec, spec_data, spec_for
from tests.releases import LINES

"""The newest release of each minor line, as far as the tables go."""
NAMES = sorted(spec_data("tract.json")["operators"])
REGISTRIES = {"0.19": [], "0.20": ["tract_extra"]}
LATER = ["tract_extra", "tract_transformers"]


def registries(spec: Spec, name: str) -> list[str]:
    """The one that the table names, or all that the version has for a name that should not resolve."""
    if name in set(spec.names()):
        return [spec.operator(name).registry]
    line = f"{spec.version.major}.{spec.version.minor}"
    return ["tract_core", "tract_onnx", "tract_pulse", *REGISTRIES.get(line, LATER)]


@pytest.mark.parametrize("version", LINES)
def test_names_resolve_as_claimed(version: str, tract_engine: Callable[[str], TractRunner], tmp_path: Path) -> None:
    spec, engine = spec_for("tract", version), tract_engine(version)
    claimed = set(spec.names())
    wrong = []
    for name in NAMES:
        declared = "".join(f"extension tract_registry {r};\n" for r in registries(spec, name) if r != "tract_nnef")
        text = f"version 1.0;\n{declared}\ngraph g() -> (y)\n{{\n  y = {name}();\n}}\n"
        (tmp_path / "graph.nnef").write_text(text)
        reply = engine.run(tmp_path, [])
        assert "Registry not found" not in reply.message
        resolved = f'No definition for operator Identifier("{name}")' not in reply.message
        if resolved != (name in claimed):
            wrong.append(f"{name}: {'resolves' if resolved else 'does not resolve'} ({reply.message[-200:]})")
    assert wrong == []
    assert 100 < len(claimed) < len(NAMES)
