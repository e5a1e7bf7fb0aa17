"""The comparison of language models: which tokens count as right, and what the tables say of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.lab.machine import describe_machine
from conformance.lab.measure.language_models.decoding import compare_tokens, one_by_one
from conformance.lab.measure.language_models.tables import markdown

ROWS = [np.array([0.0, 1.0, 2.0]), np.array([5.0, 0.0, 0.0]), np.array([0.0, 9.0, 0.0])]


def test_tokens_count_up_to_the_first_wrong_one() -> None:
    wanted = np.stack([ROWS[0], ROWS[1] + 0.5, ROWS[2] + 100])
    assert compare_tokens([2, 0, 1], ROWS, [2, 0, 1], np.stack(ROWS)) == {"right": 3, "of": 3, "largest_error": 0.0}
    found = compare_tokens([2, 0, 1], ROWS, [2, 1, 1], wanted)
    assert found == {"right": 1, "of": 3, "largest_error": 0.5}, "what follows a wrong token is another text"


def test_a_prompt_can_go_in_token_by_token() -> None:
    fed = []

    def step(ids: Any) -> Any:
        fed.append(ids.tolist())
        return ids

    assert one_by_one(step)(np.array([[4, 5, 6]])).tolist() == [[6]]
    assert fed == [[[4]], [[5]], [[6]]]
    assert one_by_one(step, always=False)(np.array([[4, 5]])).tolist() == [[4, 5]]


def test_the_tables_show_what_is_wrong_and_what_failed() -> None:
    written = {"cpu_seconds": 2.0, "process_seconds": 5.0, "peak_bytes": 3e6}
    figures = {"token_ms": [2.0, 4.0], "prompt_ms": [10.0, 10.0], "of": 8, "largest_error": 1e-6}
    models: dict[str, Any] = {
        "one": {
            "weights_bytes": 4_000_000,
            "exports": {"ours": written, "peer": written},
            "tokens": {
                "ours": {**figures, "right": 8},
                "peer": {**figures, "token_ms": [4.0, 8.0], "right": 0, "one_by_one": {"right": 5}},
                "steps": {**figures, "token_ms": [1.0, 2.0], "right": 8},
                "torch": {**figures, "right": 8},
                "different_tokens": 7,
            },
        },
        "two": {
            "weights_bytes": 4_000_000,
            "exports": {"ours": written, "peer": {"error": "no a|b"}},
            "tokens": {"error": "it died"},
        },
    }
    tokens, speed, exports = markdown({"machine": describe_machine(), "models": models}).split("\n\n")[1:]
    one, two = tokens.splitlines()[2:]
    assert "| 8 of 8 | 1.0e-06 | 0 of 8, first wrong at step 0; 5 with the prompt token by token |" in one
    assert "| it died |  | no a/b |  |" in two
    one, two = speed.splitlines()[2:]
    assert one == "| one | 500 | 250 | 500 | 0.50 x | 0.25 x | 0.50 x | 10.0 | 10.0 | 10.0 | 1.00 x |"
    assert two == "| two | - | - | - | - | - | - | - | - | - | - |"
    assert exports.splitlines()[3] == "| two | 4 | 2.0 | - | 5.0 | - | 3 | - |"
