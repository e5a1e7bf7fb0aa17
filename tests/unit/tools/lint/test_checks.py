"""Each check of the sources finds what it is about, with its line, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.releases import NEWEST
from tools.lint.__main__ import CHECKS, main
from tools.lint.imports import circles_of_imports
from tools.lint.layout import lists_of_own_names, small_files, small_folders
from tools.lint.places import (
    comparisons_of_versions,
    kernels_for_meta,
    names_of_pytorch,
    names_of_the_newest_release,
)
from tools.lint.prose import names_of_functions, names_of_variables, openings_of_docstrings, words_of_the_field
from tools.lint.tree import Finding, Tree

Check = Callable[[Tree], Iterator[Finding]]
CODE = "t2n_core/a.py"
TEXT = '"""Begin.\n\n    Behind it, whole\n    numbers.\n    """\n'
FOUND: dict[str, tuple[Check, str, str, list[int]]] = {
    "words of a docstring": (words_of_the_field, CODE, f'told = {{"told": 1}}\n\n\ndef f():\n    {TEXT}', [7, 7]),
    "words of a page": (words_of_the_field, "docs/a.md", "It is right.\nOther numbers.\n", [2]),
    "names": (names_of_functions, CODE, "def _told(): ...\ndef told_twice(): ...\n", [1]),
    "names of properties": (names_of_functions, CODE, "class A:\n    @property\n    def kept(self): ...\n", []),
    "variables": (names_of_variables, CODE, "found = 1\nrows = [one for\none in rows]\n", [1, 3]),
    "fields and parameters": (names_of_variables, CODE, "class A:\n    own: int\ndef f(given):\n    given = 1\n", []),
    "openings": (openings_of_docstrings, CODE, '"""Return."""\n\n\ndef f():\n    """What it does."""\n', [5]),
    "a list of own names": (lists_of_own_names, CODE, "def f(): ...\n__all__ = ['f']", [2]),
    "a list of names of others": (lists_of_own_names, CODE, "from a import f\n__all__ = ['f']", []),
    "no list": (lists_of_own_names, CODE, "from a import g\ndef f(): ...", []),
    "a long file": (small_files, CODE, "x = 1\n" * 401, [401]),
    "a file": (small_files, CODE, "x = 1\n" * 400, []),
    "a version": (comparisons_of_versions, CODE, "1 < n\nspec.version >= Version('0.21')\nversion in known\n", [2]),
    "versions of engines": (comparisons_of_versions, "t2n_core/engine/a.py", "version < other\n", []),
    "a kernel": (kernels_for_meta, CODE, "library.impl('f', run, 'CPU')\nlibrary.impl('f', shapes, 'Meta')", [2]),
    "an operator by name": (names_of_pytorch, CODE, "\ntorch.ops.aten.cholesky(x)", [2, 2]),
    "an operator by getattr": (names_of_pytorch, CODE, "getattr(torch.ops.aten, name)", [1, 1]),
    "a private module": (names_of_pytorch, CODE, "from torch._ops import OpOverload", [1]),
    "a private name": (names_of_pytorch, CODE, "from torch.utils import _pytree", [1]),
    "an experiment": (names_of_pytorch, CODE, "from torch.fx.experimental.symbolic_shapes import ShapeEnv", [1]),
    "a private attribute": (names_of_pytorch, CODE, "torch._C.DispatchKey", [1, 1]),
    "an own operator": (names_of_pytorch, CODE, "torch.ops.t2n_loops.solve(x)", []),
    "public names": (names_of_pytorch, CODE, "torch.__version__\ntorch.linalg.inv(x)", []),
    "the newest release": (names_of_the_newest_release, CODE, f"'{NEWEST}'\n'{NEWEST}0'\n# {NEWEST}.\n", [1, 3]),
    "what it brought": (names_of_the_newest_release, "t2n_core/nnef/tract/a.py", f"since = '{NEWEST}'", []),
    "a command": (names_of_the_newest_release, "docs/a.md", f"{NEWEST}\n```sh\nt2n {NEWEST}\n```\n{NEWEST}\n", [3]),
    "an output": (names_of_the_newest_release, "docs/a.md", f"```text\ntract {NEWEST}\n```\n", []),
    "names in compat": (names_of_pytorch, "t2n_core/torch_graph/compat/a.py", "torch._C.DispatchKey", []),
}


def tree(root: Path, files: dict[str, str]) -> Tree:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Tree(root)


@pytest.mark.parametrize("name", FOUND)
def test_a_check_finds_what_it_is_about(name: str, tmp_path: Path) -> None:
    check, file, text, lines = FOUND[name]
    findings = list(check(tree(tmp_path, {file: text})))
    assert [(finding.file, finding.line) for finding in findings] == [(file, line) for line in lines]


@pytest.mark.parametrize(
    "back",
    [
        "from t2n_core.b import thing",
        "from t2n_core import b",
        "import t2n_core.b",
        "if TYPE_CHECKING:\n    from t2n_core.b import Thing",
        "def late():\n    from t2n_core.b import thing",
    ],
)
def test_each_form_of_an_import_closes_a_circle(back: str, tmp_path: Path) -> None:
    files = {"t2n_core/__init__.py": "", "t2n_core/b.py": "from t2n_core.c import other", "t2n_core/c.py": back}
    (finding,) = circles_of_imports(tree(tmp_path, files))
    assert {"t2n_core.b", "t2n_core.c"} <= set(finding.message.split())
    assert not list(circles_of_imports(tree(tmp_path, {**files, "t2n_core/c.py": ""})))


def test_a_folder_with_too_many_files_is_named(tmp_path: Path) -> None:
    files = {f"{folder}/{n}.{kind}": "" for folder, kind in (("tests/a", "py"), ("docs/b", "md")) for n in range(15)}
    assert not list(small_folders(tree(tmp_path, files)))
    more = {"tests/a/x.py": "", "docs/b/x.md": "", "tests/a/__init__.py": "", "docs/c/x.md": ""}
    assert [finding.file for finding in small_folders(tree(tmp_path, more))] == ["tests/a", "docs/b"]


def test_the_program_prints_each_finding_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree(tmp_path, {"t2n_core/a.py": '"""Whether."""\n', "pytest_t2n/b.py": "def told(): ...\n"})
    assert main(tmp_path) == 1
    assert [line.rpartition(": ")[0] for line in capsys.readouterr().out.splitlines()] == [
        "pytest_t2n/b.py:1: `told`",
        "t2n_core/a.py:1",
    ]
    assert main(tmp_path / "none") == 0
    assert len(CHECKS) == 12
