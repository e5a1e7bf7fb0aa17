"""NNEF fragments as readable files, one form per range of versions, dtype and batch.

`lstm_step.nnef` is the portable form; variants follow the name after two underscores: `lstm_step__since_0.23.2.nnef` is
the one from that release on, `lstm_step__batch_1.nnef` for a batch that is 1 at export, `lstm_gates__float64.nnef` for
the dtypes in its comment `# dtypes:`; releases in its comment `# not for:` take another form. `${h}`, `${h2}` … are
multiples of a size.
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
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from t2n_core.errors import LowerError
from t2n_core.nnef.dims import Dim
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Fragment


@dataclass(frozen=True, slots=True)
class Form:
    """One file: a fragment for the versions, dtypes and batch it says."""

    text: str
    since: Version | None
    batch: int | None
    dtypes: frozenset[str]
    avoided: SpecifierSet | None = None
    """Releases that get it wrong."""

    def fits(self, g: Emitter, dtype: np.dtype[Any], batch: Dim) -> bool:
        return (
            (self.since is None or (g.spec.target == "tract" and g.spec.version >= self.since))
            and (self.avoided is None or g.spec.version not in self.avoided)
            and (not self.dtypes or dtype.name in self.dtypes)
            and (self.batch is None or self.batch == batch)
        )


@functools.cache
def forms(name: str) -> tuple[Form, ...]:
    """All forms of a fragment, newest first, then those for a dtype, then those for a batch; empty for no file."""
    found = []
    for file in files(__package__).iterdir():
        stem, ending, _ = file.name.rpartition(".nnef")
        base, *variants = stem.split("__")
        if ending and base == name:
            said = dict(variant.split("_") for variant in variants if "_" in variant)
            text = file.read_text("utf-8")
            dtypes = re.search(r"^# dtypes: (.*)$", text, re.MULTILINE)
            avoided = re.search(r"^# not for: (.*)$", text, re.MULTILINE)
            found.append(
                Form(
                    text,
                    Version(said["since"]) if "since" in said else None,
                    int(said["batch"]) if "batch" in said else None,
                    frozenset(dtypes[1].split() if dtypes else ()),
                    SpecifierSet(avoided[1]) if avoided else None,
                )
            )
    return tuple(sorted(found, key=lambda f: (f.since or Version("0"), bool(f.dtypes), bool(f.batch)), reverse=True))


def find_fragment(
    g: Emitter, name: str, dtype: np.dtype[Any], h: int = 0, batch: Dim = 0, words: Mapping[str, str] | None = None
) -> tuple[str, tuple[str, ...]] | None:
    """As add_fragment; None, and nothing added, where no form fits."""
    form = next((f for f in forms(name) if f.fits(g, dtype, batch)), None)
    if form is None:
        return None
    sizes = {"h": h, **{f"h{n}": n * h for n in (2, 3, 4)}}
    lines = [line for line in form.text.splitlines() if not line.startswith("#")]
    text = Template("\n".join(lines)).substitute(sizes, **(words or {}))
    head = re.match(r"fragment (\w+)\((.*?)\) ->", text)
    if head is None:
        raise LowerError(f"the fragment file {name} does not start with `fragment`")
    uses = frozenset(re.findall(r"(\w+)\(", text.partition("{")[2]))
    for used in sorted(uses):
        if forms(used):
            add_fragment(g, used, dtype, h, batch)
    parameters = tuple(p.partition(":")[0].strip() for p in head[2].split(","))
    return g.fragment(Fragment(head[1], text, uses)), parameters


def add_fragment(
    g: Emitter, name: str, dtype: np.dtype[Any], h: int = 0, batch: Dim = 0, words: Mapping[str, str] | None = None
) -> tuple[str, tuple[str, ...]]:
    """Adds the form of a fragment that fits target, dtype and batch best, and the fragments that it uses.

    Returns its name in the graph and the names of its parameters. Raises LowerError where no form fits.
    """
    found = find_fragment(g, name, dtype, h, batch, words)
    if found is None:
        raise g.fail(f"no form of the fragment {name} fits {g.spec} with {dtype}")
    return found
