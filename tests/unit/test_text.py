"""Text of users and engines: kept without lone surrogates, shown without control characters."""

from __future__ import annotations

import pytest

from t2n_core.text import all_storable, all_visible, in_markdown, reason_of, storable, suggestion, text_of, visible


@pytest.mark.parametrize(
    ("text", "kept", "shown"),
    [
        ("plain [x] é 模 🙂\n\ttwo", "plain [x] é 模 🙂\n\ttwo", "plain [x] é 模 🙂\n\ttwo"),
        ("\udcff.bin", r"\udcff.bin", r"\udcff.bin"),
        ("\x1b[31mred\x07\r", "\x1b[31mred\x07\r", r"\x1b[31mred\x07\x0d"),
        ("a\x9b2Jb\x7f", "a\x9b2Jb\x7f", r"a\x9b2Jb\x7f"),
        ("a\u202eb\u2066", "a\u202eb\u2066", r"a\u202eb\u2066"),
    ],
)
def test_texts(text, kept, shown):
    assert (storable(text), visible(text)) == (kept, shown)
    assert all_storable({text: [text, (text, 1)]}) == {kept: [kept, (kept, 1)]}
    assert all_visible({text: [text, (text, None)]}) == {shown: [shown, (shown, None)]}
    kept.encode()


def test_an_object_whose_str_raises_has_a_text():
    class Odd:
        def __str__(self):
            raise RuntimeError("no")

    assert text_of(Odd()) == "<str() of this Odd raises RuntimeError>"
    assert text_of(OSError("\udcff")) == r"\udcff"


def test_the_reason_of_an_error_has_no_number_of_the_system():
    assert reason_of(FileNotFoundError(2, "No such file or directory", "nets")) == "nets: No such file or directory"
    assert reason_of(OSError("no answer")) == "no answer"
    assert reason_of(OSError(28, "No space left on device")) == "[Errno 28] No space left on device"


@pytest.mark.parametrize(
    ("word", "options", "found"),
    [
        ("tolerence", {}, "did you mean `tolerance`?"),
        ("tolerances", {"most": 2}, "did you mean `tolerance` or `tolerant`?"),
        ("x", {}, "known: tolerance, tolerant"),
        ("x", {"otherwise": ""}, ""),
    ],
)
def test_a_suggestion_names_what_is_like_an_unknown_word(word, options, found):
    assert suggestion(word, ("tolerance", "tolerant"), **options) == found


def test_markdown_shows_a_text_as_it_is() -> None:
    assert in_markdown("a_b <img src=x>\n[c](d) | `e` \x9b") == r"a\_b &lt;img src=x> \[c\](d) \| \`e\` \\x9b"
