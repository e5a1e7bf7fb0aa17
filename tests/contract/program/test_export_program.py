"""Programs of several archives: what is written, what is compared, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from conformance.cases.several_archives.recognisers import ctc
from conformance.cases.several_archives.transducers import rnnt
from t2n_core import KhronosNNEF, TractNNEF
from t2n_core.errors import InputError, ParityError
from t2n_core.program import Part, Program, export_program, let, run
from tests.releases import NEWEST

TARGET = TractNNEF(NEWEST)
UNCHECKED = TractNNEF(NEWEST, check_io=False)


def two_parts(**changed: Any) -> Program:
    """Return a program of two linear layers."""
    torch.manual_seed(3)
    first, second = nn.Linear(4, 6).eval(), nn.Linear(6, 3).eval()
    axes = {"dynamic_axes": {"input": {0: "B"}}, "output_names": ["output"]}
    defaults: dict[str, Any] = {
        "parts": {
            "first": Part(first, {"input": torch.randn(2, 4)}, axes),
            "second": Part(second, {"input": torch.randn(5, 6)}, axes),
        },
        "statements": [run("first", {"input": "x"}, {"output": "h"}), run("second", {"input": "h"}, {"output": "y"})],
        "outputs": ["y"],
        "reference": lambda x: second(first(x)),
        "examples": [{"x": torch.randn(3, 4)}, {"x": torch.randn(7, 4)}],
    }
    return Program(**{**defaults, **changed})


def test_a_program_is_a_folder_of_archives(tmp_path: Path) -> None:
    torch.manual_seed(0)
    result = export_program(rnnt(), TARGET, tmp_path / "rnnt")
    assert sorted(file.name for file in (tmp_path / "rnnt").iterdir()) == [
        "driver.py", "encoder.nnef.tgz", "joint.nnef.tgz", "predictor.nnef.tgz", "program.json",
    ]  # fmt: skip
    assert not list(tmp_path.glob(".*")), "scratch is left"
    assert result.proof is not None
    assert result.proof.passed
    assert result.calls["encoder"] == 3
    assert result.calls["joint"] > 9 + 14 + 23
    manifest = json.loads((tmp_path / "rnnt" / "program.json").read_text())
    assert manifest["parts"]["encoder"]["sizes"] == "T >= 1"
    assert manifest["parts"]["encoder"]["inputs"] == {"features": ["1", "T", "5"]}
    assert "calls: encoder 3, predictor" in result.proof.describe()


def test_the_driver_runs_a_program_by_itself(tmp_path: Path) -> None:
    """It gives PyTorch's tokens, and imports neither this package nor torch."""
    torch.manual_seed(1)
    program = ctc()
    export_program(program, UNCHECKED, tmp_path / "ctc")
    example = program.examples[1]
    np.savez(tmp_path / "inputs.npz", features=example["features"].numpy())
    script = f"""
import sys
sys.path.insert(0, {str(tmp_path / "ctc")!r})
import driver, json, numpy
from pathlib import Path
folder = Path({str(tmp_path / "ctc")!r})
program = json.loads((folder / "program.json").read_text())
assert driver.__file__.startswith(str(folder))
weights = numpy.load({str(tmp_path / "inputs.npz")!r})
calls = []
def call(name, inputs):
    calls.append(name)
    return {{"encoded": -inputs["features"]}}
print(driver.run_program(program, dict(weights), call)["tokens"].tolist(), calls)
assert "torch" not in sys.modules and "t2n_core" not in sys.modules
"""
    process = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    frames = -example["features"][0].numpy()
    best = frames.argmax(-1)
    expected = [int(token) for index, token in enumerate(best) if token and (index == 0 or best[index - 1] != token)]
    assert process.stdout.strip() == f"{expected} ['encoder']"


def test_a_wrong_archive_is_found_with_its_call(tmp_path: Path) -> None:
    result = export_program(two_parts(), UNCHECKED, tmp_path / "right")
    torch.manual_seed(9)
    other = nn.Linear(6, 3).eval()
    parts = {**two_parts().parts}
    parts["second"] = replace(parts["second"], module=other)
    wrong = export_program(
        two_parts(parts=parts, reference=lambda x: other(parts["first"].module(x))), UNCHECKED, tmp_path / "wrong"
    )
    result.parts["second"].archive = wrong.parts["second"].archive
    outcome = result.check_whole()
    assert not outcome.passed
    assert "y of the program differs on example 0: first in call 1 of second" in outcome.describe()
    assert result.check_program().part == "second"
    with pytest.raises(ParityError):
        result.assert_program()


def test_wrong_statements_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    """The modules themselves give something else than the reference."""
    negated = [
        run("first", {"input": "x"}, {"output": "h"}),
        let(h=["sub", 0.0, "h"]),
        run("second", {"input": "h"}, {"output": "y"}),
    ]
    with pytest.raises(InputError, match="the program differs from its reference on example 0, with PyTorch's modules"):
        export_program(two_parts(statements=negated), TARGET, tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            ["slice", "h", 1, 0, 5],
            r"call 1 of second: its input input is float32\['B', '6'\], and the program passes float32\[3, 5\]",
        ),
        (["cast", "h", {"text": "float64"}], r"passes float64\[3, 6\]"),
        (["reshape", "h", {"list": [3, 6, 1]}], r"passes float32\[3, 6, 1\]"),
        (["slice", "h", 0, 0, 0], "call 1 of second has sizes outside the range of its archive, B >= 1: B=0"),
        (["reshape", "h", {"list": [7, 7]}], "a statement of the program fails: ValueError: cannot reshape"),
    ],
)
def test_values_that_do_not_fit_an_archive(value: Any, message: str, tmp_path: Path) -> None:
    statements = [run("first", {"input": "x"}, {"output": "h"}), run("second", {"input": value}, {"output": "y"})]
    with pytest.raises(InputError, match=message):
        export_program(two_parts(statements=statements), TARGET, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_an_archive_that_no_example_runs(tmp_path: Path) -> None:
    first = run("first", {"input": "x"}, {"output": "h"})
    second = run("second", {"input": "h"}, {"output": "y"})
    statements = [first, let(y="h"), {"if": ["less", ["size", "x", 0], 2], "then": [second]}]
    program = two_parts(statements=statements, reference=lambda x: two_parts().parts["first"].module(x))
    with pytest.raises(InputError, match="no example runs second"):
        export_program(program, TARGET, tmp_path / "out")


def test_outputs_that_prove_little_are_weak(tmp_path: Path) -> None:
    examples = [{"x": torch.zeros(3, 4)}, {"x": torch.zeros(3, 4)}]
    same = export_program(two_parts(examples=examples), TARGET, tmp_path / "same")
    assert same.proof is not None
    assert same.proof.outcome.status == "weak"
    assert "y is the same for all examples" in same.proof.describe()
    single = export_program(two_parts(examples=[{"x": torch.randn(3, 4)}]), TARGET, tmp_path / "one")
    assert single.proof is not None
    assert "there is only one example" in single.proof.describe()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"examples": []}, "a program needs archives, outputs and examples"),
        ({"examples": [{"x": torch.ones(1)}, {"z": torch.ones(1)}]}, "examples have different inputs: x, and z"),
        ({"reference": lambda x: (x, x)}, "the reference returned 2 results for 1 outputs"),
        ({"reference": lambda x: {"z": x}}, "the reference returned no y"),
    ],
)
def test_programs_that_cannot_be_checked(changed: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        export_program(two_parts(**changed), TARGET, tmp_path / "out")


def test_only_tract_runs_programs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not support programs"):
        export_program(two_parts(), KhronosNNEF(), tmp_path / "out")  # type: ignore[arg-type]
