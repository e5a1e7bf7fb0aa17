"""NNEF fragments as readable files, one form per range of versions.

`lstm.nnef` is the portable form, `lstm__since_0.23.2.nnef` the one from that release on, `lstm__float64.nnef` one for a
dtype. A comment `# gates:` gives the
order of the gates in the weights' rows, `# dtypes:` the dtypes that a form is for; `${h}`, `${h2}` … are multiples of a
size.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np
from packaging.version import Version

from t2n_core.errors import LowerError
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Fragment

_SINCE = "since_"


@dataclass(frozen=True, slots=True)
class Form:
    """One file: a fragment for the versions and dtypes it says."""

    text: str
    since: Version | None
    gates: tuple[str, ...]
    dtypes: frozenset[str]


@functools.cache
def forms(name: str) -> tuple[Form, ...]:
    """All forms of a fragment, newest first, those for a dtype before the general one. Raises KeyError for no file."""
    found = []
    for file in files(__package__).iterdir():
        stem, ending, _ = file.name.rpartition(".nnef")
        base, _, variant = stem.partition("__")
        since = variant.removeprefix(_SINCE) if variant.startswith(_SINCE) else ""
        if ending and base == name:
            text = file.read_text("utf-8")
            found.append(
                Form(
                    text, Version(since) if since else None, _header(text, "gates"), frozenset(_header(text, "dtypes"))
                )
            )
    if not found:
        raise KeyError(f"no fragment {name}")
    return tuple(sorted(found, key=lambda f: (f.since or Version("0"), bool(f.dtypes)), reverse=True))


def _header(text: str, word: str) -> tuple[str, ...]:
    line = re.search(rf"^# {word}: (.*)$", text, re.MULTILINE)
    return tuple(line[1].split()) if line else ()


def add_fragment(
    g: Emitter, name: str, dtype: np.dtype[Any], h: int = 0, words: Mapping[str, str] | None = None
) -> tuple[str, tuple[str, ...]]:
    """Adds the newest form of a fragment that fits target and dtype; returns its name in the graph and its gates."""
    for form in forms(name):
        fits = form.since is None or (g.spec.target == "tract" and g.spec.version >= form.since)
        if fits and (not form.dtypes or dtype.name in form.dtypes):
            sizes = {"h": h, **{f"h{n}": n * h for n in (2, 3, 4)}}
            lines = [line for line in form.text.splitlines() if not line.startswith("#")]
            text = Template("\n".join(lines)).substitute(sizes, **(words or {}))
            head = re.match(r"fragment (\w+)", text)
            if head is None:
                raise LowerError(f"the fragment file {name} does not start with `fragment`")
            uses = frozenset(re.findall(r"(\w+)\(", text.partition("{")[2]))
            return g.fragment(Fragment(head[1], text, uses)), form.gates
    raise g.fail(f"no form of the fragment {name} fits {g.spec} with {dtype}")
