"""The page of what differs from the documents is that of the tests."""

from __future__ import annotations

from tools.document_items import DOCUMENTS, PAGE, TESTS, items_of, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m tools.document_items"


def test_each_file_of_a_document_is_on_the_page() -> None:
    files = {
        path.stem.removeprefix("test_")
        for path in TESTS.glob("test_*.py")
        if not path.stem.startswith(("test_snippets", "test_page"))
    }
    assert files == {name for names in DOCUMENTS.values() for name in names}


def test_items_that_differ_have_reasons() -> None:
    for names in DOCUMENTS.values():
        for name in names:
            total, differing = items_of(TESTS / f"test_{name}.py")
            assert total > len(differing)
            assert all(len(reason.split()) >= 3 for reason in differing.values())
