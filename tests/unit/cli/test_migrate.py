"""`t2n migrate` finds what a file uses of torch-to-nnef, and changes what needs nobody's judgement."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import t2n_core.errors
from pytest_t2n.cli.command import main
from pytest_t2n.cli.migrate.table import defined_as, move_of, moves


def migrated(tmp_path: Path, text: str, *options: str) -> tuple[int, str]:
    """Return the exit status, and the text of a file after the command."""
    path = tmp_path / "old.py"
    path.write_bytes(text.encode())
    return main(["migrate", *options, str(path)]), path.read_bytes().decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from torch_to_nnef import TractNNEF  # é\n", "from t2n_core import TractNNEF  # é\n"),
        (
            "from torch_to_nnef.export import (\n    export_model_to_nnef as e,  # why\n)\n",
            "from t2n_core import (\n    export_model_to_nnef as e,  # why\n)\n",
        ),
        (
            "from torch_to_nnef.exceptions import T2NErrorInvalidArgument\n",
            "from t2n_core.errors import InputError as T2NErrorInvalidArgument\n",
        ),
        (
            "if x:\n    from torch_to_nnef import TractNNEF, SemanticVersion\n",
            "if x:\n    from t2n_core import TractNNEF\n    from t2n_core.inference_target import SemanticVersion\n",
        ),
        (
            "x = 1; from torch_to_nnef import TractNNEF, SemanticVersion\n",
            "x = 1; from t2n_core import TractNNEF; from t2n_core.inference_target import SemanticVersion\n",
        ),
        (
            "import torch_to_nnef, t2n_core\nt2n_core, torch_to_nnef.__version__\n",
            "import t2n_core\nt2n_core, t2n_core.__version__\n",
        ),
        ("import os, t2n_core, torch_to_nnef\ntorch_to_nnef.TractNNEF\n", "import os, t2n_core\nt2n_core.TractNNEF\n"),
        ("from torch_to_nnef import __version__\n", "from t2n_core import __version__\n"),
        (
            "import os, torch_to_nnef\r\n'é', torch_to_nnef.TractNNEF.latest()\r\n",
            "import os, t2n_core\r\n'é', t2n_core.TractNNEF.latest()\r\n",
        ),
        (
            "import torch_to_nnef.exceptions as e\ntry: f()\nexcept e.T2NErrorTract: pass\n",
            "import t2n_core.errors\ntry: f()\nexcept t2n_core.errors.EngineError: pass\n",
        ),
        (
            "from torch_to_nnef import export_model_to_nnef as f\nf(m, a, log_level=1, auto_harden_jit=True)\n",
            "from t2n_core import export_model_to_nnef as f\nf(m, a)\n",
        ),
        (
            "from torch_to_nnef import export_model_to_nnef as f\nf(\n    log_level=1,\n    model=m,\n)\n",
            "from t2n_core import export_model_to_nnef as f\nf(\n    model=m,\n)\n",
        ),
        ("import torch  # torch_to_nnef is not used\n", "import torch  # torch_to_nnef is not used\n"),
    ],
)
def test_write_changes_imports_and_keeps_the_rest(
    before: str, after: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert migrated(tmp_path, before) == (0, before)
    report = capsys.readouterr().out
    assert "0 to change by hand" in report
    assert migrated(tmp_path, before, "--write") == (0, after)
    assert ("\n-" in capsys.readouterr().out) is (before != after)
    assert migrated(tmp_path, after, "--write") == (0, after)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("from torch_to_nnef import *\n", 1, "import each name from its new module"),
        ("from torch_to_nnef import VERSION\n", 1, "write `t2n_core.__version__`"),
        ("from torch_to_nnef import (\n    TractNNEF,  # a\n    VERSION,\n)\n", 2, "from t2n_core import"),
        ("import torch_to_nnef\nprint(torch_to_nnef.VERSION)\n", 2, "write `t2n_core.__version__`"),
        ("import torch_to_nnef\ntorch_to_nnef = 1\ntorch_to_nnef.TractNNEF\n", 3, "write `t2n_core.TractNNEF`"),
        (
            "from torch_to_nnef import export\nexport.export_model_to_nnef()\n",
            2,
            "write `t2n_core.export_model_to_nnef`",
        ),
        ("from torch_to_nnef import export_model_to_nnef as f\nf(allow_same_io_names=True)\n", 2, "different names"),
        ("patch('torch_to_nnef.export.f')\n", 1, "a name of torch-to-nnef in a text"),
        ("from torch_to_nnef.op.aten.math import div\n", 1, '@op("aten::name")'),
        ("from torch_to_nnef.made_up import thing\n", 1, "no counterpart"),
    ],
)
def test_a_person_gets_the_line_and_the_advice(
    text: str, line: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, after = migrated(tmp_path, text)
    assert (status, after) == (1, text)
    out = capsys.readouterr().out
    assert any(f"old.py:{line}: " in output_line and message in output_line for output_line in out.splitlines()), out
    status, after = migrated(tmp_path, text, "--write")
    assert status == 1
    assert message in capsys.readouterr().out
    compile(after, "old.py", "exec")


def test_lines_are_those_of_the_file_as_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "from torch_to_nnef import TractNNEF, SemanticVersion, VERSION\nuse('torch_to_nnef.export')\n"
    status, after = migrated(tmp_path, text, "--write")
    assert status == 1
    (line,) = [number for number, source_line in enumerate(after.splitlines(), 1) if source_line.startswith("use")]
    assert line == 4
    assert f"old.py:{line}: torch_to_nnef.export: a name of" in capsys.readouterr().out


def test_an_f_string_is_left_to_a_person_or_changed_whole(tmp_path: Path) -> None:
    _, after = migrated(tmp_path, 'import torch_to_nnef\nx = f"é {torch_to_nnef.TractNNEF} {1}"\n', "--write")
    assert after.splitlines()[1] in ('x = f"é {torch_to_nnef.TractNNEF} {1}"', 'x = f"é {t2n_core.TractNNEF} {1}"')


@pytest.mark.parametrize("text", ["x = (\n", "x = 1\n  y = 2\n", "x = '\0'\n", "# coding: nothing\n"])
def test_a_file_that_cannot_be_parsed_is_an_error(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = tmp_path / "good.py"
    good.write_text("from torch_to_nnef import TractNNEF\n", "utf-8")
    (tmp_path / "bad.py").write_text(text, "utf-8")
    assert main(["migrate", "--write", str(good), str(tmp_path / "bad.py")]) == 1
    assert "bad.py" in capsys.readouterr().err
    assert "torch_to_nnef" in good.read_text("utf-8")


def test_a_missing_file_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", str(tmp_path / "none.py")]) == 1
    assert "none.py cannot be read" in capsys.readouterr().err


def test_torch_is_never_imported(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("from torch_to_nnef import TractNNEF\n", "utf-8")
    script = f"import sys\nfrom pytest_t2n.cli import main\nmain(['migrate', {str(tmp_path / 'old.py')!r}])\n"
    script += "print(sorted({'torch', 'torch_to_nnef', 't2n_core.export'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.endswith("[]\n")


def test_each_new_name_exists() -> None:
    names = {move.new: move.new.rpartition(".") for move in moves() if move.new.startswith("t2n_core.")}
    assert [new for new, (module, _, name) in names.items() if not hasattr(import_module(module), name)] == []
    assert names


def test_new_names_are_public() -> None:
    names = {move.new.removeprefix("t2n_core.") for move in moves() if move.new.startswith("t2n_core.")}
    assert {name for name in names if "." not in name} <= {*t2n_core.__all__, "__version__"}


def test_errors_are_errors_of_this_package() -> None:
    errors = [move.new.rpartition(".")[2] for move in moves() if move.old.startswith("torch_to_nnef.exceptions.")]
    assert errors
    assert all(issubclass(getattr(t2n_core.errors, name), t2n_core.errors.T2NError) for name in errors)


def test_each_line_of_the_table_is_well_formed() -> None:
    without_note = {"same", "import", "rename", "rename value"}
    assert {move.change for move in moves()} == without_note | {"drop", "drop value", "error", "person"}
    olds = [move.old for move in moves() if move.kind != "option"]
    assert len(olds) == len(set(olds))
    for move in moves():
        assert move.change in without_note or move.note, move


def test_a_name_is_found_in_each_module_that_exports_it() -> None:
    for name in ("TractNNEF", "inference_target.TractNNEF", "inference_target.tract.TractNNEF"):
        assert move_of(f"torch_to_nnef.{name}.x").new == "t2n_core.TractNNEF"
    assert defined_as("t2n_core.TractNNEF.latest") == "torch_to_nnef.inference_target.tract.TractNNEF.latest"
