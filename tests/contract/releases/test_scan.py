"""What real libraries answer about their names, against the tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version

from t2n_core.engine import ResolvedEngine
from t2n_core.engine.tract.transforms.table import KNOWN, ROUND_TRIP
from t2n_core.errors import EngineLoadError
from t2n_core.nnef.spec import spec_for
from t2n_core.releases.scan.contents import ask, read_contents
from tests.releases import NEWEST, OLDEST, on_each_line


@pytest.mark.parametrize("release", on_each_line(OLDEST, NEWEST))
def test_names_that_a_release_has(release: str, resolved_engine: Callable[[str], ResolvedEngine]) -> None:
    library = resolved_engine(release).library
    operators = ask(library, "operator", ["conv", "tract_core_gather", "tract_core_nothing", "tract_core_erf", "tanh"])
    assert operators["tract_core_gather"] == {"registry": "tract_core"}
    assert operators["conv"] == operators["tanh"] | {"registry": "tract_nnef"}
    assert (
        operators["tract_core_erf"] == {}
    )  # a call without arguments ends the process, and the next name is asked for
    assert "tract_core_nothing" not in operators
    (arguments,) = ask(library, "arguments", ["tract_core_gather"]).values()
    assert arguments["arguments"][:3] == [["input", "tensor"], ["indices", "tensor"], ["axis", "integer"]]
    assert ask(library, "function", ["tract_version", "tract_nothing"]) == {"tract_version": {}}


def test_transforms_and_runtimes(resolved_engine: Callable[[str], ResolvedEngine]) -> None:
    library = resolved_engine(NEWEST).library
    assert ask(library, "transform", ["set_symbols", "nothing", "conv_nhwc"]).keys() == {"set_symbols", "conv_nhwc"}
    assert ask(library, "runtime", ["cuda", "nothing"]).keys() == {"cuda"}


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "tract.so").write_bytes(b"no library")
    with pytest.raises(EngineLoadError, match="cannot be asked for its names"):
        ask(tmp_path / "tract.so", "function", ["tract_version"])


@pytest.mark.nightly
@pytest.mark.parametrize("release", on_each_line(NEWEST))
def test_a_library_holds_what_the_tables_state(release: str, resolved_engine: Callable[[str], ResolvedEngine]) -> None:
    spec, version = spec_for("tract", release), Version(release)
    contents = read_contents(release, resolved_engine(release).library, spec.names(), ["set_symbols", "patch"])
    assert contents.operators.keys() == set(spec.names())
    for name, operator in contents.operators.items():
        signature = spec.operator(name)
        assert operator.registry in ("", signature.registry), name
        others = set(operator.arguments) - {parameter.name for parameter in signature.parameters}
        assert others <= ({"groups"} if name == "tract_core_qconv" else set()), name  # declared as `group`
    if version >= Version("0.23"):
        expected = {name for name, entry in KNOWN.items() if version in entry.releases} - {ROUND_TRIP}
        assert set(contents.transforms) == expected
