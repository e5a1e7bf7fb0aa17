"""What is imported is declared, with a lowest version that is tested, and the small form does without torch."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.releases import NEWEST

ROOT = Path(__file__).parents[3]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DISTRIBUTIONS = {
    "xdist": "pytest-xdist",
    "_pytest": "pytest",
    "pytest_benchmark": "pytest-benchmark",
    "nnef_tools": "nnef-tools",
}
"""Imported name -> its distribution, where that has another name."""
OF_THE_USER = {"hypothesis", "tract", "torch_to_nnef"}
"""What is imported only for an object of it that a user hands in, in a product that runs `program/driver.py`, or in the
environment of another exporter."""


def declared() -> dict[str, Requirement]:
    """Return the requirements of all forms by name."""
    lines = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
    return {
        requirement.name: requirement for requirement in map(Requirement, lines) if requirement.name != PROJECT["name"]
    }


def imported() -> Iterator[tuple[str, str]]:
    """Yield each package of others that a file imports."""
    for package in ("t2n_core", "pytest_t2n"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
                for name in {name.partition(".")[0] for name in names}:
                    if name not in {*sys.stdlib_module_names, "t2n_core", "pytest_t2n"}:
                        yield name, path.relative_to(ROOT).as_posix()


def test_every_import_is_declared() -> None:
    imports = {DISTRIBUTIONS.get(name, name): file for name, file in imported() if name not in OF_THE_USER}
    assert {name: file for name, file in imports.items() if name not in declared()} == {}
    called_otherwise = {"pip", "onnxscript"}  # run as a program, and imported by torch.onnx
    assert set(declared()) - set(imports) == called_otherwise


def test_only_the_engine_of_khronos_imports_its_tools() -> None:
    files = {file for name, file in imported() if name in ("nnef", "nnef_tools")}
    assert {Path(file).parent.as_posix() for file in files} == {"t2n_core/engine/khronos"}


def test_the_lowest_versions_are_those_that_are_declared() -> None:
    text = (ROOT / "constraints-lowest.txt").read_text("utf-8")
    pins = dict(re.findall(r"^([\w-]+)==(\S+)$", text, re.MULTILINE))
    lowest = {
        name: next(s.version for s in requirement.specifier if s.operator == ">=")
        for name, requirement in declared().items()
    }
    padded = {name: f"{version}.0" if version.count(".") == 1 else version for name, version in lowest.items()}
    assert pins == {name: pins[name] if pins[name] == lowest[name] else padded[name] for name in lowest}


def test_the_tested_versions_fit_what_is_declared() -> None:
    text = (ROOT / "constraints.txt").read_text("utf-8")
    pins = dict(re.findall(r"^([\w-]+)==(\S+)$", text, re.MULTILINE))
    assert [name for name, requirement in declared().items() if not requirement.specifier.contains(pins[name])] == []


WITHOUT = "import sys\nfor name in {names}: sys.modules[name] = None\n"


CALL = "from t2n_core import export_model_to_nnef\nexport_model_to_nnef(None, None, 'm.tgz', None)"
LOAD = "from pathlib import Path\nfrom t2n_core.generative.load import load_model\nload_model(Path('.'))"


@pytest.mark.parametrize(
    ("missing", "code", "message"),
    [
        (["torch"], "import t2n_core\nt2n_core.ModelExport", "needs torch: pip install 'pytest-t2n[torch]'"),
        (
            ["torch"],
            "from t2n_core.generative import export_generative",
            "needs torch: pip install 'pytest-t2n[torch]'",
        ),
        (["torch"], CALL, "t2n_core.export_model_to_nnef needs torch: pip install 'pytest-t2n[torch]'"),
        (["transformers"], LOAD, "needs transformers: pip install 'pytest-t2n[llm]'"),
        (["sympy"], "from t2n_core import TractNNEF", "needs sympy: pip install 'pytest-t2n[upstream]'"),
    ],
)
def test_the_missing_package_is_named_with_its_command(missing: list[str], code: str, message: str) -> None:
    done = run(WITHOUT.format(names=missing) + code)
    assert done.returncode == 1
    assert message in done.stderr.splitlines()[-1]


def test_importing_the_export_imports_no_torch() -> None:
    done = run("import sys\nfrom t2n_core import export_model_to_nnef\nprint('torch' in sys.modules)")
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("torch", "export net.py:make -o net.nnef.tgz --offline"),
        ("torch", "export-tensors weights.pt -o weights.tgz"),
        ("torch", "export-llm . -o llm --random --offline"),
        ("transformers", "export-llm . -o llm --random --offline"),
        ("onnx", "check net.onnx --tract 0.23"),
        ("onnxruntime", "check net.onnx --tract 0.23"),
        ("onnx", "convert net.onnx -o net.nnef.tgz --tract 0.23"),
    ],
)
def test_a_command_without_its_package_is_one_sentence(package: str, command: str, tmp_path: Path) -> None:
    for name, text in (("net.py", "def make(): ..."), ("weights.pt", ""), ("config.json", "{}"), ("net.onnx", "")):
        (tmp_path / name).write_text(text)
    program = (
        f"import os; os.chdir({str(tmp_path)!r})\nfrom pytest_t2n.cli import main\nsys.exit(main({command.split()}))"
    )
    done = run(WITHOUT.format(names=[package]) + program)
    assert done.returncode == 1
    assert re.fullmatch(rf"error: .+ needs {package}: pip install 'pytest-t2n\[\w+\]'\n", done.stderr)


def test_the_small_form_judges_without_the_packages_of_exports() -> None:
    names = ["torch", "sympy", "mpmath", "nnef", "nnef_tools"]
    modules = (
        "pytest_t2n.cli.matrix, pytest_t2n.cli.run, pytest_t2n.run.bundles, t2n_core.parity.check, t2n_core.engine"
    )
    done = run(WITHOUT.format(names=names) + f"import {modules}")
    assert done.stderr == ""


SOFT = """version 1.0;
graph network(x) -> (y)
{
  x = external(shape = [2, 5]);
  a = mul(x, 1000.0);
  y = softplus(a);
}
"""
"""Wrong in every release."""


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        (f"reduce soft --engine {NEWEST} -o small", 0, "mismatch at compare, of `softplus`"),
        (f"bundle soft --engine {NEWEST} --format tract -o case", 0, f"in tract {NEWEST}: mismatch at compare"),
        (f"profile soft --engine {NEWEST} --seconds 0.1", 0, "softplus"),
        ("bundle . --format matrix -o bundle", 0, "soft: 6 sets of inputs, outputs by the definitions"),
        (f"upgrade soft --from 0.21.19 --to {NEWEST} --no-times", 0, f"soft, tract 0.21.19 to {NEWEST}: safe"),
        (f"bisect-releases soft --bad {NEWEST}", 0, "no boundary: the outcome is the same in all of them"),
    ],
)
def test_archives_are_analysed_without_torch(command: str, status: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "soft").mkdir()
    (tmp_path / "soft" / "graph.nnef").write_text(SOFT)
    program = (
        f"import os; os.chdir({str(tmp_path)!r})\nfrom pytest_t2n.cli import main\n"
        f"sys.exit(main([*{command.split()}, '--offline']))"
    )
    done = run(WITHOUT.format(names=["torch", "nnef", "nnef_tools"]) + program)
    errors = [line for line in done.stderr.splitlines() if not line.startswith("soft: tract 0.")]  # slow: progress
    assert (done.returncode, errors) == (status, [])
    assert message in done.stdout
    refused = run(WITHOUT.format(names=["torch", "sympy", "mpmath"]) + program)
    assert refused.returncode == 1
    assert refused.stderr == f"error: t2n {command.split()[0]} needs sympy: pip install 'pytest-t2n[upstream]'\n"


DIALECT = """
import numpy as np
from t2n_core import dialect
(case, *_) = dialect.cases("conv")
values = dialect.evaluate(case.write(Path(sys.argv[1])), case.inputs())
outside = {name.partition(".")[0] for name, module in sys.modules.items() if module} - set(sys.stdlib_module_names)
print(len(values), sorted(name for name in outside if not name.startswith(("_", "cython"))))
"""


def test_the_dialect_needs_numpy_alone(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\nfrom pathlib import Path\n{DIALECT}", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    small = "'msgspec', 'numpy', 'packaging', 't2n_core', 'typing_extensions'"
    assert done.stdout == f"1 [{small}]\n", done.stderr


def test_khronos_without_its_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_t2n.config.engines import select_engines
    from pytest_t2n.config.settings import Settings
    from t2n_core.engine import khronos
    from t2n_core.errors import InputError

    monkeypatch.setattr(khronos, "find_spec", lambda name: None if name.startswith("nnef") else name)
    message = r"--t2n-khronos: the Khronos tools need nnef, nnef_tools: pip install 'pytest-t2n\[khronos\]'"
    with pytest.raises(InputError, match=message):
        select_engines(Settings(khronos=True))


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Return what Python says to a program in a process of its own."""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
