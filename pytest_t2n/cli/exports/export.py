"""`t2n export` writes the archive of a model, and checks it.

t2n export package.module:make_model -o model.nnef.tgz --tract 0.23 --dynamic audio:1=T
t2n export model.pt2 -o model.nnef.tgz --tract 0.23
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_t2n.cli.arrays import read_npz
from pytest_t2n.cli.busy import busy
from pytest_t2n.cli.exports.user_module import import_user_module
from pytest_t2n.cli.output import say
from pytest_t2n.cli.parser import LEVEL_HELP
from t2n_core.engine import resolve_engines
from t2n_core.errors import InputError
from t2n_core.nnef.archive import check_archive_name
from t2n_core.nnef.reading.file_kind import SUFFIX
from t2n_core.text import visible

if TYPE_CHECKING:
    from t2n_core.export.result import ExportResult
    from t2n_core.parity.outcome import Outcome

_DYNAMIC = re.compile(r"(?P<name>[^:=]+):(?P<axis>-?\d+)=(?P<symbol>\w+)(?::(?P<low>\d*)(?::(?P<high>\d*))?)?")
_FILES = (".pt2", ".pt", ".pth", ".ts", ".torchscript")


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "model",
        metavar="MODULE:CALLABLE",
        help="a function that returns the model, or the model and its inputs, as a marked test does; a module or its "
        "class; MODULE may be a file, as nets/encoder.py:make. Or a marked test, as tests/test_net.py::test_net, "
        "which keeps the options of its marker; or a file of torch.export.save or torch.jit.save",
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="a .tgz, a .tar or a folder")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--tract", default="latest", metavar="VERSION", help="one version: 0.23, 0.23.8, latest")
    target.add_argument("--target", metavar="NAME", help="a target that an installed package brings, in place of tract")
    target.add_argument("--khronos", action="store_true", help="for the reference tools in place of tract")
    parser.add_argument("--inputs", type=Path, metavar="NPZ", help="example inputs by the names of the parameters")
    parser.add_argument(
        "--dynamic",
        action="append",
        default=[],
        metavar="INPUT:AXIS=NAME",
        help="a free size, as audio:1=T; with bounds audio:1=T:2:512; may be given several times",
    )
    parser.add_argument("--input-names", type=_name_list, metavar="A,B", help="names of the inputs in the archive")
    parser.add_argument("--output-names", type=_name_list, metavar="A,B", help="names of the outputs in the archive")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other option of the export or of the target, as weights=q4_0",
    )
    parser.add_argument("--tolerance", metavar="LEVEL", help=LEVEL_HELP)
    parser.add_argument("--no-check", action="store_true", help="write the archive and prove nothing")
    parser.add_argument("--offline", action="store_true", help="use engines of the cache only")
    parser.add_argument("--json", action="store_true", help="print the result as a line of JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Return 0 for an archive that was written and, by default, checked. Raises T2NError."""
    axes = dynamic_axes(options.dynamic)  # errors are reported before torch is loaded
    more = dict(_option(text) for text in options.option)
    check_archive_name(options.output)
    if options.target is None and not options.khronos:
        resolve_engines(options.tract, offline=options.offline, fetch=False)
    with busy(f"loading {options.model}") as show:
        result, outcome = _export(options, axes, more, show)
        needs_manifest = bool(result.state) or result.target.pulse is not None
        manifest = result.write_manifest() if needs_manifest else None
    if options.json:
        print(json.dumps(_summary(result, outcome, manifest)))
        return 0
    for note in result.notes:
        print(visible(note), file=sys.stderr)
    say(f"{result.archive}: {', '.join(result.input_names)} -> {', '.join(result.output_names)}")
    if str(result.range):
        say(f"holds for {result.range}")
    if result.pulsed is not None:
        say(f"{result.pulsed.archive}: proven pulse by pulse")
    if manifest is not None:
        say(f"{manifest}: {'state' if result.state else 'stream'}, inputs and outputs, for the program that runs it")
    say("not checked" if outcome is None else _check_text(result, outcome))
    return 0


def export_again(model: str, output: Path, release: str, dynamic: Sequence[str], *, offline: bool) -> None:
    """Write the archive of a model as this command does, for a release, and prove nothing. Raises T2NError."""
    parser = argparse.ArgumentParser()
    add_commands(parser)
    words = [model, "-o", str(output), "--tract", release, "--no-check", *(["--offline"] if offline else [])]
    options = parser.parse_args([*words, *(f"--dynamic={text}" for text in dynamic)])
    _export(options, dynamic_axes(options.dynamic), {}, lambda text: None)


def _export(
    options: argparse.Namespace, axes: Any, more: dict[str, Any], show: Callable[[str], None]
) -> tuple[ExportResult, Outcome | None]:
    """Return the export of the model that the options name, and its check if there is one. Raises T2NError."""
    target_name = options.target or ("khronos" if options.khronos else "tract")
    model, args, marked = _model(options.model, target_name, no_check=options.no_check)
    more = {**marked, **more}
    axes = axes or more.get("dynamic_axes")
    more.pop("dynamic_axes", None)
    if options.inputs is not None:
        args = read_npz(options.inputs)
    if args is None and not options.model.endswith(".pt2"):
        raise InputError(
            f"{options.model} gives a model without inputs", hint="return them too, or give --inputs example.npz"
        )
    from t2n_core.export.entry import export_model_to_nnef

    target, of_export = _target(options, axes, more)
    for name in ("input_names", "output_names"):
        if getattr(options, name) is not None:
            of_export[name] = getattr(options, name)
    show(f"exporting {options.model} for {target}")
    result = export_model_to_nnef(model, args, options.output, target, **of_export)
    show(f"proving {options.output} in {target}")
    return result, None if options.no_check else _prove(result)


def _prove(result: ExportResult) -> Outcome:
    """Run an archive in its engine, and return the outcome; remove a failing archive. Raises T2NError."""
    from t2n_core.nnef.archive import remove_archive

    try:
        return result.assert_parity()
    except Exception:
        remove_archive(result.archive)
        if result.pulsed is not None:
            remove_archive(result.pulsed.archive)
        raise


def _check_text(result: ExportResult, outcome: Outcome) -> str:
    where = f"{result.target} at `{result.own_level}`"
    text = f"proven in {where}" if outcome.error is None else f"passes in {where}, and {outcome.error.message}"
    return "; ".join([text, *outcome.notes])


def _summary(result: ExportResult, outcome: Outcome | None, manifest: Path | None) -> dict[str, Any]:
    return {
        "archive": str(result.archive),
        "manifest": None if manifest is None else str(manifest),
        "pulsed": None if result.pulsed is None else str(result.pulsed.archive),
        "inputs": list(result.input_names),
        "outputs": list(result.output_names),
        "range": str(result.range),
        "notes": list(result.notes),
        "check": None if outcome is None else {"engine": str(result.target), **outcome.to_dict()},
    }


def dynamic_axes(texts: Sequence[str]) -> dict[str, dict[int, Any]] | None:
    """Return the axes that `audio:1=T` and `audio:1=T:2:512` name; None for none. Raises InputError."""
    axes: dict[str, dict[int, Any]] = {}
    for text in texts:
        match = _DYNAMIC.fullmatch(text)
        if match is None:
            raise InputError(f"--dynamic={text}: this is not INPUT:AXIS=NAME", hint="as audio:1=T, or audio:1=T:2:512")
        low, high = (int(match[end]) if match[end] else None for end in ("low", "high"))
        size: Any = match["symbol"]
        if low is not None or high is not None:
            from torch.export import Dim

            size = Dim(match["symbol"], min=low, max=high)
        axes.setdefault(match["name"], {})[int(match["axis"])] = size
    return axes or None


def _target(options: argparse.Namespace, axes: Any, more: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the target with its options, and the export's options."""
    from t2n_core.export.assertion import split_options
    from t2n_core.export.options import ExportOptions
    from t2n_core.inference_target import target_class

    name = options.target or ("khronos" if options.khronos else "tract")
    kind: Any = target_class(name)
    of_target, of_export = split_options(kind, more)
    ExportOptions.of(of_export)  # reports a wrong name before an engine is downloaded
    if options.tolerance is not None:
        of_target["check_io_tolerance"] = options.tolerance
    if name == "tract":
        of_target = {"version": options.tract, "offline": options.offline, **of_target}
    return kind(dynamic_axes=axes, check_io=False, **of_target), of_export


def _model(text: str, target: str, *, no_check: bool) -> tuple[Any, Any, dict[str, Any]]:
    """Return a model, its inputs or None, and the options that markers of the test set. Raises InputError."""
    if text.endswith(_FILES):
        return Path(text), None, {}
    module_name, name = _names(text)
    if not module_name and text.endswith(SUFFIX):
        raise InputError(f"{text} is an ONNX model, which is not exported", hint=f"t2n convert {text} -o ARCHIVE")
    if not module_name or not name:
        raise InputError(f"{text} is neither MODULE:CALLABLE nor a file", hint=f"files end in {', '.join(_FILES)}")
    owners = [import_user_module(module_name)]
    for part in name.split("."):
        if not hasattr(owners[-1], part):
            raise InputError(f"{module_name} has no `{name}`")
        owners.append(getattr(owners[-1], part))
    subject = owners[-1]
    import torch

    if isinstance(subject, torch.nn.Module) or not callable(subject):
        returned, marked = subject, {}
    else:
        from pytest_t2n.cli.exports.marked import options_of_marks

        is_method = len(owners) > 2 and inspect.isclass(owners[-2]) and inspect.isfunction(subject)
        make = getattr(owners[-2](), name.rpartition(".")[2]) if is_method else subject
        returned, marked = _call(text, make), options_of_marks(owners, target, no_check=no_check)
    if isinstance(returned, tuple | list) and len(returned) == 2:
        return returned[0], returned[1], marked
    return returned, None, marked


def _names(text: str) -> tuple[str, str]:
    """Return the module and the dotted name of `MODULE:CALLABLE` or of a test's node id. Raises InputError."""
    module_name, is_node_id, name = text.partition("::")
    if not is_node_id:
        module_name, _, name = text.rpartition(":")
        return module_name, name
    if name.endswith("]"):
        test = text.partition("[")[0]
        raise InputError(
            f"{text} is one cell of a test",
            hint=f"name the test, {test}, and the release with --tract; a function without arguments stands for a test "
            "with parameters",
        )
    return module_name, name.replace("::", ".")


def _call(text: str, make: Any) -> Any:
    needed = [
        parameter.name
        for parameter in inspect.signature(make).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    if needed:
        raise InputError(
            f"{text} needs arguments: {', '.join(needed)}", hint="write a function without any that calls it"
        )
    return make()


def _option(text: str) -> tuple[str, Any]:
    """Return name and value of `name=value`; a value is a Python literal if possible, otherwise a text."""
    name, separator, value = text.partition("=")
    if not separator or not name.isidentifier():
        raise InputError(f"--option={text}: this is not NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def _name_list(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
