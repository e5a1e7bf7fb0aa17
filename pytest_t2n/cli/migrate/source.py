"""Uses of torch-to-nnef in a Python file, and the edits that need nobody's judgement, by exact positions."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pytest_t2n.cli.migrate.table import OLD, Move, defined_as, is_module, keywords, move_of
from t2n_core.errors import InputError

_NAME = re.compile(rf"{OLD}(\.\w+)*")
_KNOWN = (OLD, "t2n_core")


class Edit(NamedTuple):
    """A span of the file's UTF-8 bytes, and its replacement."""

    start: int
    end: int
    text: str


class Finding(NamedTuple):
    """One use of torch-to-nnef."""

    start: int
    name: str
    advice: str
    by_hand: bool


@dataclass
class Source:
    """A parsed file. Raises InputError with the line if it cannot be parsed."""

    file: str
    raw: bytes
    findings: list[Finding] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)

    def __post_init__(self) -> None:
        try:
            self.encoding = tokenize.detect_encoding(io.BytesIO(self.raw).readline)[0]
            text = self.raw.decode(self.encoding)
            self._tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError) as exc:
            line = f":{exc.lineno}" if isinstance(exc, SyntaxError) and exc.lineno else ""
            message = exc.msg if isinstance(exc, SyntaxError) else str(exc)
            raise InputError(f"{self.file}{line} cannot be parsed: {message}") from None
        self._bytes = text.encode()
        lines = self._bytes.split(b"\n")
        self._starts = [0]
        for source_line in lines:
            self._starts.append(self._starts[-1] + len(source_line) + 1)
        self._bound: dict[str, str] = {}  # local name -> dotted name
        self._plain: dict[str, list[ast.alias]] = {}  # local name -> the parts of `import …` that bind it
        self._modules: dict[str, list[str]] = {}  # local name -> modules that its rewritten uses need
        self._kept: set[str] = set()
        nodes = list(ast.walk(self._tree))
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        for node in imports:
            self._bind(node)
        if any(name.split(".")[0] in _KNOWN for name in self._bound.values()) or OLD.encode() in self._bytes:
            self._stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
            self._stored |= {node.arg for node in nodes if isinstance(node, ast.arg)}
            self._visit(self._tree)
            for statement in imports:
                self._change_import(statement)
        self.findings.sort()

    def edited(self) -> bytes:
        """Return the file with all edits. Raises InputError if it could not be parsed then."""
        text = self._bytes
        for edit in reversed(self._merge()):
            text = text[: edit.start] + edit.text.encode() + text[edit.end :]
        done = text.decode().encode(self.encoding)
        Source(self.file, done)
        return done

    def line_of(self, finding: Finding, *, edited: bool) -> int:
        """Return the line of a finding, in the file as it is or as it is after the edits."""
        line = self._bytes[: finding.start].count(b"\n") + 1
        for edit in self._merge() if edited else ():
            if edit.end <= finding.start:
                line += edit.text.count("\n") - self._bytes[edit.start : edit.end].count(b"\n")
        return line

    def _merge(self) -> list[Edit]:
        merged_edits: list[Edit] = []
        for edit in sorted(set(self.edits)):
            if merged_edits and edit.start < merged_edits[-1].end:  # two arguments that are left out share a comma
                edit = Edit(merged_edits[-1].start, max(merged_edits[-1].end, edit.end), merged_edits.pop().text)
            merged_edits.append(edit)
        return merged_edits

    def _span(self, node: ast.expr | ast.stmt | ast.alias | ast.keyword) -> tuple[int, int]:
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def _find(self, node: ast.expr | ast.stmt | ast.alias | ast.keyword, name: str, advice: str, hand: bool) -> None:
        self.findings.append(Finding(self._span(node)[0], name, advice, hand))

    def _bind(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                local = alias.asname or alias.name.split(".")[0]
                dotted = alias.name if alias.asname else local
                if dotted.split(".")[0] == OLD:
                    self._plain.setdefault(local, []).append(alias)
            elif node.level:
                continue
            else:
                local, dotted = alias.asname or alias.name, f"{node.module}.{alias.name}"
            if dotted.split(".")[0] in _KNOWN:
                self._bound[local] = dotted

    def _dotted_name(self, node: ast.expr) -> tuple[str, str]:
        """Return the local name that an expression begins with, and its dotted name; empty for others."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._bound:
            return "", ""
        return node.id, ".".join([self._bound[node.id], *reversed(parts)])

    def _visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.Call):
            self._visit_call(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAME.fullmatch(node.value):
            self._find(node, node.value, "a name of torch-to-nnef in a text", True)
        if isinstance(node, ast.Attribute | ast.Name):
            local, dotted = self._dotted_name(node)
            if dotted:
                self._visit_use(node, local, dotted)
                return
        for child in ast.iter_child_nodes(node):
            self._visit(child)

    def _visit_use(self, node: ast.expr, local: str, dotted: str) -> None:
        bound, old = self._bound[local], defined_as(dotted)
        if not old.startswith(f"{OLD}.") or (dotted == bound and local not in self._plain):
            return
        move = move_of(old)
        if move.old == defined_as(bound):
            return  # the import has the advice
        if not dotted.startswith(f"{OLD}.") and (move.change == "import" or move.old.endswith(".*")):
            return  # a name that has moved already
        while isinstance(node, ast.Attribute) and defined_as(self._dotted_name(node)[1]) != move.old:
            if defined_as(self._dotted_name(node.value)[1]) == defined_as(bound):
                break
            node = node.value
        start, end = self._span(node)
        is_sure = local in self._plain and local not in self._stored
        if move.change != "import" or not is_sure or self._bytes[start:end] != ast.unparse(node).encode():
            self._find(node, dotted, move.advice, True)
            self._kept.add(local)
            return
        self._find(node, dotted, move.advice, False)
        self.edits.append(Edit(start, end, move.new))
        self._modules.setdefault(local, []).append(move.new.rpartition(".")[0])

    def _visit_call(self, node: ast.Call) -> None:
        dotted = self._dotted_name(node.func)[1]
        for keyword in node.keywords if dotted else ():
            name = f"{defined_as(dotted)}({keyword.arg}=)"
            move = keywords().get(name)
            if move is not None and move.change != "same":
                edit = self._without(keyword) if move.change == "drop" else None
                self._find(keyword, f"{keyword.arg}=", move.advice, edit is None)
                if edit is not None:
                    self.edits.append(edit)

    def _without(self, keyword: ast.keyword) -> Edit | None:
        """Return the edit that leaves an argument out, with one comma; None where its place is not sure."""
        start, end = self._span(keyword)
        if not self._bytes[start:end].startswith(f"{keyword.arg}".encode()):  # in an f-string, before Python 3.12
            return None
        before = self._bytes[:start].rstrip()
        if before.endswith(b","):
            return Edit(len(before) - 1, end, "")
        after = re.compile(rb"\s*,\s*|").match(self._bytes, end)
        return Edit(start, after.end(), "") if after is not None and before.endswith(b"(") else None

    def _change_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == OLD:
                    self._change_plain(alias, [other.name for other in node.names if other is not alias])
        elif not node.level and (node.module or "").split(".")[0] == OLD:
            self._change_from(node)

    def _change_plain(self, alias: ast.alias, others: Sequence[str]) -> None:
        """Change one part of `import …`, whose `others` are imported as well."""
        local = alias.asname or alias.name.split(".")[0]
        is_first = self._plain[local][0] is alias
        modules = list(dict.fromkeys(self._modules.get(local, []) if is_first else [])) or ["t2n_core"]
        start, end = self._span(alias)
        if local not in self._kept and not alias.asname and set(modules) <= set(others):
            self._find(alias, alias.name, "leave it out", False)
            after = re.compile(rb"\s*,\s*").match(self._bytes, end)
            before = len(self._bytes[:start].rstrip().removesuffix(b",").rstrip())
            self.edits.append(Edit(start, after.end(), "") if after else Edit(before, end, ""))
            return
        if local in self._kept:
            self._find(alias, alias.name, "leave it out when the uses below are changed", True)
            modules = [self._bytes[start:end].decode(), *modules] if self._modules.get(local) else []
        else:
            self._find(alias, alias.name, f"write `{', '.join(modules)}`", False)
        if modules:
            self.edits.append(Edit(start, end, ", ".join(modules)))

    def _change_from(self, node: ast.ImportFrom) -> None:
        homes: dict[str, list[tuple[ast.alias, str]]] = {}
        by_hand: list[ast.alias] = []
        for alias, move in self._moves(node):
            if move is not None and move.change == "import":
                module, _, last = move.new.rpartition(".")
                local = alias.asname or alias.name
                homes.setdefault(module, []).append((alias, last if last == local else f"{last} as {local}"))
            else:
                by_hand.append(alias)
                advice = "import each name from its new module" if move is None else move.advice
                self._find(alias, f"{node.module}.{alias.name}", advice, True)
        start, end = self._span(node)
        text = self._bytes[start:end]
        opening = re.compile(rb"from\s+([\w.]+)").match(text)
        is_whole = len(homes) == 1 and not by_hand
        by_hand_too = opening is None or (not is_whole and b"#" in text)  # a statement in parts would lose its comments
        for module, texts in homes.items():
            for alias, new in texts:
                name = f"{node.module}.{alias.name}"
                self._find(alias, name, f"write `from {module} import {new}`", by_hand_too)
                if is_whole:
                    self.edits.append(Edit(*self._span(alias), new))
        if not homes or opening is None or by_hand_too:
            return
        if is_whole:
            self.edits.append(Edit(start + opening.start(1), start + opening.end(1), next(iter(homes))))
            return
        remaining = [f"{alias.name} as {alias.asname}" if alias.asname else alias.name for alias in by_hand]
        parts = {**{module: [new for _, new in texts] for module, texts in homes.items()}, str(node.module): remaining}
        lines = [f"from {module} import {', '.join(names)}" for module, names in parts.items() if names]
        indent = self._bytes[self._starts[node.lineno - 1] : start].decode()
        self.edits.append(Edit(start, end, ("; " if indent.strip() else f"\n{indent}").join(lines)))

    def _moves(self, node: ast.ImportFrom) -> Iterator[tuple[ast.alias, Move | None]]:
        for alias in node.names:
            dotted = f"{node.module}.{alias.name}"
            yield alias, None if alias.name == "*" or is_module(dotted) else move_of(dotted)
