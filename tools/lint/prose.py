"""Docstrings, messages and pages in the field's words, and names of functions that say what they do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.lint.tree import CODE, PACKAGES, Finding, Source, Tree

INSTEAD = {
    "behind": "after, beyond, trailing",
    "comput(e|ed|es|ing) of": "computed from",
    "every query a key": "no query without a key, no fully masked row",
    "gravest": "worst",
    "in the manner of": "like",
    "inside of": "inside",
    "is said": "is stated, is declared",
    "said of": "stated about, declared for",
    "(has )?no form": "not supported, cannot be expressed",
    "nothing shows": "cannot prove",
    "(other|right|same|wrong) numbers": "other values, wrong values",
    "on right inputs": "with right inputs",
    "somebody": "someone",
    "stand-ins?": "override, custom operator",
    "told": "reported, given",
    "twins?": "copy",
    "(which|that) else": "otherwise",
    "whole numbers?": "integer",
}
"""Word, as a regular expression -> what to write instead.

The list grows by words that have no hits left; it never has exceptions for a single line.
"""
WORDS = re.compile(rf"\b({'|'.join(INSTEAD)})\b".replace(" ", r"\s+"), re.IGNORECASE)
LONE_PARTICIPLES = frozenset(
    "built chosen compared computed counted cut drawn found given held kept known left lost made merged moved named "
    "passed said seen shown taken told unchanged wanted written".split()
)
"""What a function is not named after: verbs and nouns state what it does or returns."""
VAGUE_NAMES = frozenset(
    "asked found given held how kept known meant named one own place said taken told wanted what whole".split()
)
"""What a variable is not named: participles and pronouns say nothing about the thing."""
OPENING = re.compile(
    r"(What|Whether|Those|Of|That|Who|Which|Whose|Where|Behind"
    r"|Into|Between|From|With|Without|By|In|On|At|For|After|Before|Only|Also|Like|Both|Its|It|Nothing|Why|Under|Above)\b"
)
"""How a docstring does not open: with a relative clause without its noun, or a phrase in place of a sentence."""


def words_of_the_field(tree: Tree) -> Iterator[Finding]:
    """Yield each word of docstrings, messages and pages that has a better one."""
    for source in (*tree.pages(), *tree.python(*PACKAGES, "conformance", "tools")):
        if source.name == "tools/lint/prose.py":
            continue
        for line, text in _prose(source):
            for hit in WORDS.finditer(text):
                word = re.sub(r"\s+", " ", hit[0])
                better = next(after for before, after in INSTEAD.items() if re.fullmatch(before, word, re.IGNORECASE))
                yield source.finding(line + text.count("\n", 0, hit.start()), f"`{word}`: write {better}")


_NETS = re.compile(r"`(?:\w+\[)?(?:timm|torchaudio|torchvision|transformers)-[\w-]+\]?`")
"""Names of architectures, which other libraries chose, and of their tests."""


def _prose(source: Source) -> Iterator[tuple[int, str]]:
    """Yield line and text of a page, or of each text with a space in a file of code: docstrings and messages."""
    if source.path.suffix == ".md":
        yield 1, _NETS.sub("``", source.text)
        return
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def names_of_functions(tree: Tree) -> Iterator[Finding]:
    """Yield each function, but properties, that is named by a participle alone."""
    for source in tree.python(*PACKAGES):
        for node in source.nodes:
            if not isinstance(node, ast.FunctionDef) or node.name.strip("_") not in LONE_PARTICIPLES:
                continue
            if not any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
                yield source.finding(node.lineno, f"`{node.name}`: a verb or a noun says what it does or returns")


def names_of_variables(tree: Tree) -> Iterator[Finding]:
    """Yield each variable, but fields and parameters, whose name says nothing about its value."""
    for source in tree.python(*CODE):
        parameters = {node.arg for node in source.nodes if isinstance(node, ast.arg)}
        bodies = [node.body for node in source.nodes if isinstance(node, ast.ClassDef)]
        fields = {id(line.target) for body in bodies for line in body if isinstance(line, ast.AnnAssign)}
        stored = [node for node in source.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        for node in stored:
            if node.id in VAGUE_NAMES - parameters and id(node) not in fields:
                yield source.finding(node.lineno, f"`{node.id}`: name the thing")


def openings_of_docstrings(tree: Tree) -> Iterator[Finding]:
    """Yield each docstring that does not open with a sentence."""
    for source in tree.python(*PACKAGES):
        for node in source.nodes:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                text = node.value.value
                if isinstance(text, str) and (opening := OPENING.match(text.strip())):
                    yield source.finding(node.lineno, f"a docstring opens with a sentence, not with `{opening[0]}`")
