"""NNEF fragments as readable files, one variant per range of versions, dtype and batch.

Each kind of net has a folder. `lstm_step.nnef` is the portable variant; the conditions of others follow the name after
two underscores: `lstm_step__since_0.23.2.nnef` is used from that release on, `lstm_step__batch_1.nnef` for a batch of 1
at export.
Comments in a file restrict it further: `# dtypes:` lists its dtypes, `# largest state: 384` is the largest state (batch
times size), `# not for:` lists releases that compute it wrongly. `${h}`, `${h2}` … are multiples of a size.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template
from typing import Any

import numpy as np

from t2n_core.errors import LowerError
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Fragment
from t2n_core.nnef.releases import ALL_RELEASES, Releases
from t2n_core.nnef.sizes.dims import Dim


@dataclass(frozen=True, slots=True)
class Variant:
    """One file: a fragment, and the versions, dtypes and batch that it is for."""

    text: str
    releases: Releases
    batch: int | None
    dtypes: frozenset[str]
    largest_state: int | None = None
    broken_in: Releases | None = None
    """Releases that compute it wrongly."""

    def fits(self, g: Emitter, dtype: np.dtype[Any], h: int, batch: Dim) -> bool:
        return (
            (self.releases == ALL_RELEASES or (g.spec.target == "tract" and g.spec.version in self.releases))
            and (self.broken_in is None or g.spec.version not in self.broken_in)
            and (not self.dtypes or dtype.name in self.dtypes)
            and (self.batch is None or self.batch == batch)
            and (self.largest_state is None or (isinstance(batch, int) and batch * h <= self.largest_state))
        )


def fragment_files() -> Iterator[Traversable]:
    """Yield the files of all fragments; each kind of net has a folder."""
    for folder in files(__package__).iterdir():
        if folder.is_dir():
            yield from folder.iterdir()


@functools.cache
def variants_of(name: str) -> tuple[Variant, ...]:
    """Return the variants of a fragment, newest first, then those for a dtype and for a batch; empty without a file."""
    variants = []
    for file in fragment_files():
        stem, ending, _ = file.name.rpartition(".nnef")
        base, *conditions = stem.split("__")
        if ending and base == name:
            stated = dict(condition.split("_") for condition in conditions if "_" in condition)
            text = file.read_text("utf-8")
            comments = dict(re.findall(r"^# (dtypes|largest state|not for): (.*)$", text, re.MULTILINE))
            variants.append(
                Variant(
                    text,
                    Releases.of(stated.get("since")),
                    int(stated["batch"]) if "batch" in stated else None,
                    frozenset(comments.get("dtypes", "").split()),
                    int(comments["largest state"]) if "largest state" in comments else None,
                    Releases.parse(comments["not for"]) if "not for" in comments else None,
                )
            )
    return tuple(sorted(variants, key=lambda f: (f.releases.rank, bool(f.dtypes), bool(f.batch)), reverse=True))


def find_fragment(
    g: Emitter,
    name: str,
    dtype: np.dtype[Any],
    h: int = 0,
    batch: Dim = 0,
    substitutions: Mapping[str, str] | None = None,
) -> tuple[str, tuple[str, ...]] | None:
    """Add a fragment as `add_fragment` does; add nothing and return None if no variant applies."""
    variant = next((f for f in variants_of(name) if f.fits(g, dtype, h, batch)), None)
    if variant is None:
        return None
    sizes = {"h": h, **{f"h{n}": n * h for n in (2, 3, 4)}}
    lines = [line for line in variant.text.splitlines() if not line.startswith("#")]
    text = Template("\n".join(lines)).substitute(sizes, **(substitutions or {}))
    head = re.match(r"fragment (\w+)\((.*?)\) ->", text)
    if head is None:
        raise LowerError(f"the fragment file {name} does not start with `fragment`")
    for used in sorted(_uses(text)):
        if variants_of(used):
            name_in_graph, _ = add_fragment(g, used, dtype, h, batch)
            text = re.sub(rf"\b{used}\(", f"{name_in_graph}(", text)
    parameters = tuple(p.partition(":")[0].strip() for p in head[2].split(","))
    return _add_under_free_name(g, head[1], text), parameters


def _uses(text: str) -> frozenset[str]:
    """Return the names of the operators and fragments that the body of a fragment calls."""
    return frozenset(re.findall(r"(\w+)\(", text.partition("{")[2]))


def _add_under_free_name(g: Emitter, name: str, text: str) -> str:
    """Add a fragment and return its name, numbered if another variant has it: nets may differ in dtype or batch."""
    free, number = name, 1
    while True:
        renamed = text.replace(f"fragment {name}(", f"fragment {free}(", 1)
        fragment = g.graph.fragments.get(free)
        if fragment is None or fragment.text == renamed:
            return g.fragment(Fragment(free, renamed, _uses(renamed)))
        number += 1
        free = f"{name}_{number}"


def add_fragment(
    g: Emitter,
    name: str,
    dtype: np.dtype[Any],
    h: int = 0,
    batch: Dim = 0,
    substitutions: Mapping[str, str] | None = None,
) -> tuple[str, tuple[str, ...]]:
    """Add the variant of a fragment that fits target, dtype and batch best, and the fragments that it uses.

    Return its name in the graph and the names of its parameters. Raises LowerError if no variant applies.
    """
    variant = find_fragment(g, name, dtype, h, batch, substitutions)
    if variant is None:
        raise g.fail(f"no variant of the fragment {name} supports {g.spec} with {dtype}")
    return variant
