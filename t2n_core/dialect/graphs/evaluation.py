"""Evaluation of archives, from this exporter or any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from t2n_core.dialect.evaluator import Evaluation
from t2n_core.dialect.graphs.budget import MEMORY, check_fragments, check_sizes
from t2n_core.dialect.graphs.externals import External, externals_of
from t2n_core.dialect.graphs.symbols import check_assertions, declared_symbols, solve
from t2n_core.dialect.quantised import on_grid
from t2n_core.dialect.tensors import Tensor
from t2n_core.errors import InputError
from t2n_core.nnef.reading.archive import ArchiveContent, read_archive
from t2n_core.nnef.reading.flat import statement_of


def evaluate(
    archive: str | Path | ArchiveContent,
    inputs: Mapping[str, ArrayLike] | Sequence[ArrayLike],
    *,
    round_to_storage: bool = False,
    results: Sequence[str] | None = None,
    timeout: float | None = None,
    standard: bool = False,
    memory: int = MEMORY,
) -> dict[str, Tensor]:
    """Return the outputs of an archive by name, or the values `results`, as the definitions of its operators say.

    Floats are computed in float64, and with `round_to_storage` rounded to the data type of the tensor after each
    operation. Inputs are arrays by name, or in the order of the graph's inputs. Only values that are read later are
    kept in memory. After `timeout` seconds no further operation begins; none begins at all if the sizes show that these
    values take more than `memory` bytes or their products more time, or if fragments call each other very often. With
    `standard`, NNEF 1.0's definitions apply where tract's differ: the filters of `deconv` have another layout.

    Raises InputError for an archive that cannot be read and inputs that do not fit its shapes, MalformedArchiveError
    for a statement that reads a name or a tensor that is not defined, UndefinedOperatorError for an operator without a
    definition, MeaningError for an operation outside of its domain, BudgetError for memory, time and fragments.
    """
    content = archive if isinstance(archive, ArchiveContent) else read_archive(Path(archive))
    document = content.document
    statements = [statement_of(assignment) for assignment in document.assignments]
    declared = externals_of(document)
    by_name = _by_name(document.inputs, inputs)
    tensors = {name: _input(name, external, by_name[name]) for name, external in declared.items()}
    shapes = {name: (declared[name].shape, tensor.shape) for name, tensor in tensors.items()}
    symbols = solve(shapes)
    check_assertions(document.extensions, symbols)
    tensors.update({name: on_grid(tensors[name], grid) for name, grid in content.grids.items() if name in tensors})
    unsolved = declared_symbols(document.extensions) - symbols.keys()
    options: Any = {
        "grids": content.grids,
        "round_to_storage": round_to_storage,
        "timeout": timeout,
        "standard": standard,
    }
    evaluation = Evaluation(document.fragments, content.tensors, symbols, unsolved=unsolved, **options)
    body = [statement for statement in statements if statement.results[0] not in tensors]
    result_names = document.outputs if results is None else results
    check_fragments(body, document.fragments)
    check_sizes(body, document.fragments, content.tensors, tensors, symbols, result_names, memory, timeout)
    values: dict[str, Any] = dict(tensors)
    return evaluation.run(body, values, result_names)


def sizes_of(content: ArchiveContent, inputs: Mapping[str, ArrayLike] | Sequence[ArrayLike]) -> dict[str, int]:
    """Return the sizes of the symbols in the shapes of an archive's inputs. Raises InputError for other inputs."""
    by_name = _by_name(content.document.inputs, inputs)
    declared = externals_of(content.document)
    return solve({name: (external.shape, np.shape(by_name[name])) for name, external in declared.items()})


def _by_name(names: Sequence[str], inputs: Mapping[str, ArrayLike] | Sequence[ArrayLike]) -> dict[str, ArrayLike]:
    if not isinstance(inputs, Mapping):
        if len(inputs) != len(names):
            raise InputError(f"the graph has {len(names)} inputs, and {len(inputs)} are given")
        return dict(zip(names, inputs, strict=True))
    if set(inputs) != set(names):
        raise InputError(f"the graph has the inputs {', '.join(names)}, and {', '.join(inputs)} are given")
    return dict(inputs)


def _input(name: str, declared: External, value: ArrayLike) -> Tensor:
    array, dtype = np.asarray(value), declared.dtype
    if array.dtype.kind != dtype.kind and not (array.dtype.kind in "iu" and dtype.kind in "iu"):
        raise InputError(f"the input `{name}` is {array.dtype}, and the graph declares {dtype}")
    return Tensor(array.astype(np.float64 if dtype.kind == "f" else dtype), dtype)
