"""Plans of precision: what fits, what is refused, and the text of a plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2n_core.errors import InputError
from t2n_core.nnef.options.precision import PlanEntry, PrecisionPlan

TEXT = """
[[float16]]
modules = ["body.*"]
operators = ["*"]

[[float32]]
modules = ["body.norm", ""]
operators = ["clamp_*", "div"]
reason = "epsilon \\"1e-12\\""
"""


def read(text: str, folder: Path) -> PrecisionPlan:
    path = folder / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return PrecisionPlan.read(path)


@pytest.mark.parametrize("default", ["float16", "float32"])
def test_the_first_entry_that_fits_decides(default: str, tmp_path: Path) -> None:
    """Those of float32 are asked first: they are exceptions."""
    plan = read(f'default = "{default}"\n{TEXT}', tmp_path)
    assert plan.of("body.norm", "clamp_min") == "float32"
    assert plan.of("", "div") == "float32"
    assert plan.of("body.norm", "linear") == "float16"
    assert plan.of("head", "clamp_min") == default


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    entries = PlanEntry("float32", ("a.b", "*"), ("div",), 'of "1"'), PlanEntry("float16")
    plan = PrecisionPlan("float16", entries, "float32")
    text = plan.toml(["found today", "in 3 runs"])
    assert text.startswith("# found today\n# in 3 runs\n")
    assert read(text, tmp_path) == plan
    assert read("", tmp_path) == PrecisionPlan()


WRONG = {
    'default = "bfloat16"': "no default = 'bfloat16'",
    'accumulation = "int8"': "no accumulation = 'int8'",
    "[[float64]]": "no `float64`",
    '[[float32]]\nmodule = ["a"]': r"\[\[float32\]\] of a plan has no",
    '[[float32]]\nmodules = "a"': "modules = 'a' of an entry .* is not a list of patterns",
    "default": "is not a precision plan",
}


@pytest.mark.parametrize("text", list(WRONG))
def test_other_words_are_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=WRONG[text]):
        read(text, tmp_path)
    with pytest.raises(InputError, match="is not a precision plan"):
        PrecisionPlan.read(tmp_path / "none.toml")
