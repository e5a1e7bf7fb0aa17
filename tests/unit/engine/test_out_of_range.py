"""An engine's refusal of a size, in words that name the size and the range."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from t2n_core.engine.protocol import EngineReply
from t2n_core.engine.tract.out_of_range import explain

GRAPH = """version 1.0;

extension tract_symbol B;
extension tract_assert range: B > 0;
extension tract_assert range: T <= 16;
extension tract_assert range_again: T <= 16;

{properties}graph network(x, i) -> (y)
{{
  x = external(shape = [B, T, 4]);
  i = tract_core_external(shape = [T], datum_type = "i64");
  y = mul(x, 2.0);
}}
"""
SAID = """fragment tract_core_properties() -> (properties: (string, tensor<scalar>)[])
{
  properties = [("t2n_sizes", "B >= 1, T \\% 2 == 0")];
}
"""
BATCHES = [(np.zeros((b, t, 4), np.float32), np.zeros(t, np.int64)) for b, t in ((2, 5), (2, 20), (0, 5))]


def folder(tmp_path: Path, properties: str = "") -> Path:
    (tmp_path / "graph.nnef").write_text(GRAPH.format(properties=properties))
    return tmp_path


@pytest.mark.parametrize("message", ["No possible scenario", 'Evaluating #1 "sizes_out_of_range_slice_3" Slice'])
def test_the_size_and_the_range_are_named(message: str, tmp_path: Path) -> None:
    reply = EngineReply("error", "run", message, outputs=((),))
    explanation = explain(reply, folder(tmp_path), BATCHES).message
    assert explanation.startswith(
        "B = 2, T = 20 are outside of the range that this archive holds for: B >= 1, T <= 16\n"
    )
    assert explanation.endswith(message)


def test_the_properties_say_the_range(tmp_path: Path) -> None:
    reply = EngineReply("ok", "run", outputs=((), (), ()), refused={2: "No possible scenario", 1: "something else"})
    explanation = explain(reply, folder(tmp_path, SAID), BATCHES)
    assert explanation.refused[1] == "something else"
    range_message = "B = 0, T = 5 are outside of the range that this archive holds for: B >= 1, T % 2 == 0"
    assert explanation.refused[2] == f"{range_message}\nNo possible scenario"


def test_other_errors_stay_as_they_are(tmp_path: Path) -> None:
    reply = EngineReply("error", "run", "Undetermined symbol")
    assert explain(reply, tmp_path / "absent", BATCHES) is reply
    lost = EngineReply("error", "run", "No possible scenario")
    assert explain(lost, tmp_path / "absent", BATCHES) is lost
