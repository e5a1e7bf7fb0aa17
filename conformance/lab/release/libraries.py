"""Report what a release of PyTorch or transformers changes for the converter: new and removed names.

    python -m conformance.lab.release.libraries names -o before.json    # in the previous release's environment
    python -m conformance.lab.release.libraries compare before.json     # in the new release's environment
    python -m conformance.lab.release.libraries family qwen4 --tract latest

Names are the overloads of PyTorch's operators, its decompositions and the private names of `compat`, and the language
models of transformers' registry. A removed operator's rule is named with it. `family` makes a language
model small by its configuration, exports it with a dynamic batch and length, and reports the outcome.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import conformance.cases.models.libraries  # noqa: F401
from conformance.lab.command import add_tract, command_parser
from conformance.lab.rows import write_results

Names = Mapping[str, list[str]]
"""Kind -> names, sorted; of a library, its release."""


def main(arguments: list[str] | None = None) -> int:
    parser = command_parser("conformance.lab.release.libraries", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    names = commands.add_parser("names", help="write the names of the installed releases")
    names.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    compare = commands.add_parser("compare", help="print what is new and gone since a file of names")
    compare.add_argument("before", type=Path, metavar="FILE")
    family = commands.add_parser("family", help="print how language models of the registry end")
    family.add_argument("names", nargs="+", metavar="NAME")
    add_tract(family, "latest")
    options = parser.parse_args(arguments)
    if options.command == "names":
        write_results(options.output, installed_names())
    elif options.command == "compare":
        before = json.loads(options.before.read_text("utf-8"))
        print("\n".join(describe_names(before, installed_names(), operators_with_rules())))
    else:
        for name in options.names:
            print(f"- `{name}`: {end_of_family(name, options.tract)}", flush=True)
    return 0


def installed_names() -> dict[str, list[str]]:
    """Return the names of the installed releases of PyTorch and transformers."""
    import torch
    from torch._decomp import decomposition_table
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    from t2n_core.torch_graph.compat.private import PRIVATE

    operators = torch._C._dispatch_get_all_op_names()
    private = (f"{module}.{name}" for name, module in PRIVATE.items() if _has(module, name))
    return {
        "torch": [torch.__version__],
        "transformers": [importlib.metadata.version("transformers")],
        "operators": sorted(name for name in operators if name.startswith(("aten::", "quantized::", "prims::"))),
        "decompositions": sorted(map(str, decomposition_table)),
        "private names": sorted(private),
        "language models": sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES),
    }


def _has(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name)
    except ImportError:
        return False


def operators_with_rules() -> frozenset[str]:
    """Return the operators that the converter has rules for."""
    from t2n_core.op.registry import load_default

    return frozenset(rule.key for rule in load_default())


def describe_names(before: Names, now: Names, ruled: frozenset[str]) -> Iterator[str]:
    """Yield the lines about names that are new and gone."""
    for library in ("torch", "transformers"):
        yield f"{library} {now[library][0]} in comparison with {before[library][0]}"
    for kind in (kind for kind in now if kind not in ("torch", "transformers")):
        new, gone = (sorted(set(a) - set(b)) for a, b in ((now[kind], before[kind]), (before[kind], now[kind])))
        yield f"\n## {kind.capitalize()}\n"
        yield f"{len(new)} new, {len(gone)} gone\n"
        yield from (f"- gone: `{name}`{_rule(name, ruled)}" for name in gone)
        yield from (f"- new: `{name}`{_rule(name, ruled)}" for name in new)


def _rule(name: str, ruled: frozenset[str]) -> str:
    return ", which has a rule" if {name, name.partition(".")[0]} & ruled else ""


def end_of_family(name: str, tract: str) -> str:
    """Return how a language model of the registry ends: its outcome, or the error."""
    import torch

    from conformance.cases.models.transformers.registry import case_of_family
    from t2n_core import ModelExport, TractNNEF
    from t2n_core.engine import resolve_engines

    torch.set_num_threads(1)
    try:
        case = case_of_family(name)
        model, inputs = case.build(0)
        export = ModelExport(model, inputs, dynamic_axes=case.dynamic_axes)
        (engine,) = resolve_engines(tract)
        with tempfile.TemporaryDirectory() as folder:
            outcome = export.to(
                TractNNEF(engine.version, check_io=False), Path(folder) / "model.nnef.tar"
            ).check_parity()
        return f"{outcome.status} in tract {engine.version}"
    except Exception as error:  # of any library: the report names it
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


if __name__ == "__main__":
    sys.exit(main())
