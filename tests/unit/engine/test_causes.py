"""Chains of causes as tract writes them, and as a person reads them."""

from __future__ import annotations

import pytest

from t2n_core.engine.causes import deepest_first

GRAPH = "extension tract_assert T >= 1;\\n" * 100


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("no input", "no input"),
        ("", ""),
        ("opening file\n\nCaused by:\n    no such file", "no such file\n  in: opening file"),
        (
            "opening file\n\nCaused by:\n    0: loading\n    1: parsing\n       two lines\n    2: Tag",
            "Tag\n  in: parsing two lines\n  in: loading\n  in: opening file",
        ),
        ("[ERROR tract] translating\nCaused by:\n    no such thing", "no such thing\n  in: [ERROR tract] translating"),
        (
            "T is 0, outside of the range\nrun\n\nCaused by:\n    0: eval\n    1: No possible scenario",
            "T is 0, outside of the range\nrun\n\nCaused by:\n    0: eval\n    1: No possible scenario",
        ),
    ],
)
def test_the_deepest_cause_is_first(message: str, shown: str) -> None:
    assert deepest_first(message) == shown


def test_a_graph_in_a_message_is_cut() -> None:
    shown = deepest_first(f'opening\n\nCaused by:\n    0: loading\n    1: Error {{ input: "{GRAPH}", code: Tag }}')
    assert shown.startswith('Error { input: "extension tract_assert T >= 1;')
    assert shown.endswith('more characters)", code: Tag }\n  in: loading\n  in: opening')
    assert len(shown) < 300
    between = f'"a" {"long " * 40}"b"'
    assert deepest_first(between) == between  # what stands between two quotations is none
    assert len(deepest_first("x" * 5000)) < 1000


def test_a_long_path_is_kept_whole() -> None:
    path = f"/{'folder/' * 40}model.nnef.tgz"
    message = deepest_first(f'opening file "{path}"\n\nCaused by:\n    No definition for operator')
    assert message == f'No definition for operator\n  in: opening file "{path}"'
