"""The pages of definitions: an index of all operators, and a page for each family, made of the docstrings."""

from __future__ import annotations

import importlib
import inspect
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from conformance.lab.pages.tables import table
from t2n_core.dialect.operators import functions
from t2n_core.dialect.operators import operators as definitions
from t2n_core.dialect.without_meaning import WITHOUT_MEANING
from tools.definitions.parts import definition_text, errata_text, example_text, first_line, releases_of, signature_text

STATEMENTS: Final = "statements"
"""The family of the operators that need more than their arguments."""
INDEX: Final = "index"
_MEANING: Final = "t2n_core.dialect.meaning"
_GROUPS: Final = {"standard": "The NNEF standard", "tract": "Of tract's registries", "onnx": "Of tract_onnx"}


def families() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return the operators of each family by the module that defines them, in its order."""
    families: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, definition in functions().items():
        module = definition.function.__module__
        families[module.rpartition(".")[2]][module].append(name)
    families[STATEMENTS][f"t2n_core.dialect.{STATEMENTS}"] = [name for name in definitions() if name not in functions()]
    return dict(sorted(families.items()))


def pages() -> dict[str, str]:
    """Return the text of each page by its name: `index`, and one for each family."""
    of_family = families()
    texts = {family: _page(family, modules) for family, modules in of_family.items()}
    return {INDEX: _index(of_family), **texts}


def _page(family: str, modules: Mapping[str, Sequence[str]]) -> str:
    parts = [f"# {family.capitalize()}"]
    for module, names in modules.items():
        about = first_line(importlib.import_module(module))
        group = _GROUPS.get(module.removeprefix(f"{_MEANING}.").partition(".")[0])
        parts.append(f"**{group}.** {about}" if group else about)
        parts += [_section(name) for name in names]
    return "\n\n".join(parts) + "\n"


def _section(name: str) -> str:
    """Return the section of one operator: signature, definition, releases, errata and an example."""
    parts = [f"## `{name}`", signature_text(name), definition_text(definitions()[name])]
    parts += [f"Releases: {releases_of(name)}.", errata_text(name), example_text(name)]
    return "\n\n".join(part for part in parts if part)


def _index(of_family: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    places = {name: family for family, modules in of_family.items() for names in modules.values() for name in names}
    rows = []
    for name in sorted(places):
        link = f"[`{name}`]({places[name]}.md#{name})"
        about = inspect.cleandoc(definitions()[name]).partition("\n")[0]
        rows.append((link, places[name], releases_of(name), about.replace("*", "\\*").replace("<", "&lt;")))
    without = table(("operator", "why"), sorted((f"`{name}`", reason) for name, reason in WITHOUT_MEANING.items()))
    return f"""# Definitions of the operators

What each of the {len(places)} operators of tract's NNEF computes: the docstrings of the functions in
[`t2n_core.dialect`](../../api/dialect.md). Each page also has the releases with the operator, what they are known to do
otherwise, and the smallest case of the operator's suite, with results that are computed in float64.

{table(("operator", "family", "releases", "definition"), rows)}

## Without a definition

{without}
"""
