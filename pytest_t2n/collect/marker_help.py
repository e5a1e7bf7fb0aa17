"""The lines about the markers that `pytest --markers` shows."""

from __future__ import annotations

from pytest_t2n.collect.generating import GENERATING
from pytest_t2n.collect.markers import FILE_ARGUMENTS, OWN_ARGUMENTS, PROGRAM_ARGUMENTS
from pytest_t2n.collect.names import FILE, GENERATE, MARKER, PROGRAM
from t2n_core.export.options import marker_options

_PAGES = "https://pytest-t2n.github.io/pytest-t2n/reference/options.html"


def marker_help() -> str:
    """Return the line that `pytest --markers` shows."""
    names = sorted({*OWN_ARGUMENTS, *marker_options()} - {"target"})
    return (
        f'{MARKER}(target="tract", **options): the test returns (model, inputs); the model is exported to NNEF and '
        "must have the same outputs in every selected engine. target: tract, khronos, a target of yours or a list. "
        f"Options: {', '.join(names)}, and those of the target; {_PAGES} describes them."
    )


def generate_help() -> str:
    """Return the line of `nnef_generate` that `pytest --markers` shows."""
    return (
        f'{GENERATE}(target="tract", **options): the test returns (model, prompt), or only the model; the model is '
        "exported with its state and must generate the same tokens in every selected engine of tract. "
        f"Options: {', '.join(GENERATING)}, and those of {MARKER}; {_PAGES} describes them."
    )


def program_help() -> str:
    """Return the line of `nnef_program` that `pytest --markers` shows."""
    return (
        f'{PROGRAM}(target="tract", **options): the test returns a `t2n_core.program.Program` of several models, which '
        "must give what its reference gives in every selected engine of tract. "
        f"Options: {', '.join(PROGRAM_ARGUMENTS)}; {_PAGES} describes them."
    )


def file_help() -> str:
    """Return the line of `nnef_file` that `pytest --markers` shows."""
    return (
        f'{FILE}("model.onnx", **options): the ONNX model or the NNEF archive must give the same outputs in every '
        "selected engine of tract as onnxruntime, or as the definitions of its operators. The test returns nothing, "
        f"inputs, or a PyTorch module and its inputs. Options: {', '.join(FILE_ARGUMENTS)}; {_PAGES} describes them."
    )
