"""The pages of definitions that the site gets: every operator is on one, with its errata and an example."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest

from conformance.dialect.known import KNOWN
from t2n_core.dialect import operators
from t2n_core.dialect.cases import operators as with_cases
from t2n_core.dialect.without_meaning import WITHOUT_MEANING
from t2n_core.nnef.tract.quirks.hazards import HAZARDS
from t2n_core.nnef.tract.quirks.table import QUIRKS
from tools.definitions import pages
from tools.definitions.parts import array_text, definition_text, releases_of


@cache
def of_site() -> dict[str, str]:
    return pages.pages()


def sections() -> dict[str, str]:
    """Return the text below the heading of each operator."""
    text = "\n".join(text for name, text in of_site().items() if name != pages.INDEX)
    parts = re.split(r"^## `(\w+)`$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_operator_with_a_definition_is_on_one_page() -> None:
    text = "\n".join(of_site().values())
    headings = Counter(re.findall(r"^## `(\w+)`$", text, re.MULTILINE))
    assert headings == dict.fromkeys(operators(), 1)


def test_a_section_has_signature_definition_releases_and_an_example() -> None:
    for name, text in sections().items():
        summary = operators()[name].strip().splitlines()[0]
        plain = text.replace("\\*", "*").replace("&lt;", "<")
        assert text.startswith(f"\n\n```text\n{name}(\n"), name
        assert summary in plain, name
        assert "\n- Source: " in text or ". Source: " in text, name
        assert "\nReleases: " in text, name
        assert (f"= {name}" in text) == (name in with_cases()), name


def test_a_section_has_what_is_known_of_the_operator() -> None:
    texts = sections()
    for erratum in (*HAZARDS, *QUIRKS, *KNOWN):
        for name in erratum.operators:
            if name in texts:
                assert erratum.reason.replace("|", "\\|") in texts[name], name


def test_the_index_links_to_every_operator() -> None:
    index = of_site()[pages.INDEX]
    for name, family, anchor in re.findall(r"\[`(\w+)`\]\((\w+)\.md#(\w+)\)", index):
        assert anchor == name
        assert f"## `{name}`\n" in of_site()[family]
    assert f"`{next(iter(WITHOUT_MEANING))}`" in index
    assert len(re.findall(r"\.md#", index)) == len(operators())


@pytest.mark.parametrize(
    ("name", "releases"),
    [
        ("add", "NNEF 1.0, every release of tract"),
        ("tract_core_silu", "tract 0.23.0 and later"),
        ("sample", "NNEF 1.0"),
    ],
)
def test_releases(name: str, releases: str) -> None:
    assert releases_of(name) == releases


def test_a_definition_is_a_summary_and_a_list() -> None:
    text = definition_text("Return x * y.\n\nFormula (axis 1): a < b. Shapes: those of `a * b`.\n    Source: none.")
    assert text == "Return x \\* y.\n\n- Formula (axis 1): a &lt; b.\n- Shapes: those of `a * b`.\n- Source: none."


def test_a_large_array_is_shown_by_its_ends() -> None:
    assert array_text(np.array([[1.5, np.nan]], np.float32)) == "float32[1, 2] [[1.5, nan]]"
    assert array_text(np.arange(13)) == "int64[13] [0, 1, …, 11, 12]"
