"""Find the first wrong node: the first value outside the level that the archive fails.

    found = find_first_wrong_node(result, "close")
    print(found.describe())

Every tensor of the torch graph becomes an output of the archive, and is compared with PyTorch's value. If that changes
what the engine does (it cannot fuse an output), or makes it crash, the graph is cut after one tensor at a time, by
bisection, until the first failing cut is found.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from t2n_core.check.exported.archive import ExportedArchive
from t2n_core.check.exported.parity import check_exported, criteria_for
from t2n_core.check.mismatch.author import author_of, author_text
from t2n_core.engine.paths import EnginePath, on_path
from t2n_core.engine.protocol import EngineReply
from t2n_core.errors import CallsError, InputError, Origin, PiecesError, RowsError, SecondCallError, T2NError
from t2n_core.nnef.archive import write_archive
from t2n_core.nnef.writer import operation_text
from t2n_core.parity.comparison import OutputComparison, compare, compare_outputs
from t2n_core.parity.further_runs.kept_states import REPEATED, last_kept_call
from t2n_core.parity.further_runs.rows import replace_rows
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.parity.stage import Author, Stage, Status
from t2n_core.parity.table import comparison_table, sizes_text
from t2n_core.parity.tolerance import DEFAULT_LEVEL, TractCheckTolerance
from t2n_core.scratch import scratch_folder
from t2n_core.torch_graph.graph.evaluate import evaluate_graph
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchModuleIRGraph

_WITHOUT_NUMPY = frozenset({torch.bfloat16, torch.complex32, torch.complex64, torch.complex128})
_STAGES = ("raw", "declutter", "optimise")
_STAGES_WITHOUT_DECLUTTER = ("raw", "optimise")
_BLAME = {
    "capture": "capture: the captured graph itself computes something else than the model",
    "rounding": "rounding: PyTorch itself, run operator by operator, is as far from the model",
    "graph": "the graph as exported: wrong before the engine changes anything",
    "operator": "an operator of the engine: wrong before the engine changes the graph",
    "engine": "the engine; this version cannot run a graph before its optimiser",
    "declutter": "the engine's declutter pass: the graph as exported is right",
    "optimise": "the engine's optimiser: the graph before it is right",
    "": "the exported graph or the engine; this version cannot run a graph before its optimiser",
}
_WITHOUT_NODE = ("capture", "rounding")


@dataclass(frozen=True, slots=True)
class NodeError:
    """One tensor of the captured graph, as an output of the archive."""

    kind: str
    """The torch operator."""
    origin: Origin | None
    comparison: OutputComparison
    statements: tuple[str, ...] = ()
    """The NNEF operations of the operator."""


@dataclass(frozen=True, slots=True)
class FirstWrongNode:
    """The result of the search; `origin` and `comparison` are None if every node that could be checked is right."""

    required: TractCheckTolerance
    sizes: Mapping[str, int]
    """Sizes of the sample that was run."""
    checked: int
    """Tensors that were compared or cut at."""
    kind: str = ""
    """The torch operator, as `aten::tanh`."""
    origin: Origin | None = None
    comparison: OutputComparison | None = None
    failure: str = ""
    """The engine's message, if it failed instead of answering."""
    statements: tuple[str, ...] = ()
    """The NNEF operations of this operator."""
    stages: Mapping[str, bool] = field(default_factory=dict)
    """Stage of the graph in the engine -> whether its values are right; empty if it runs only optimised graphs."""
    nodes: tuple[NodeError, ...] = ()
    """All tensors in the order of computation; empty if no run outputs all of them."""
    blame: str = ""
    """`capture`, `rounding`, `graph`, `operator`, `engine`, `declutter`, `optimise`, or empty if unknown."""
    author: Author | str | None = None
    """The side whose values of the node are wrong, by the definitions of its operators; a text if these do not decide.

    None if the engine did not answer, or if the graph that ends in the node is right.
    """

    @property
    def has_result(self) -> bool:
        """Return whether a node or a stage is to blame."""
        return bool(self.kind) or self.blame in _WITHOUT_NODE

    def describe(self) -> str:
        """Return the result as text for a terminal."""
        at = f" at {sizes_text([self.sizes])}" if self.sizes else ""
        if not self.has_result:
            return f"no wrong node found{at}: {self.checked} tensors are within `{self.required.value}`, each by itself"
        if self.blame in _WITHOUT_NODE:
            return f"to blame{at}: {_BLAME[self.blame]}"
        where = str(self.origin or self.kind)
        lines = [f"first wrong node{at}: {where if self.kind in where else f'{self.kind} of {where}'}"]
        if self.comparison is not None:
            lines.append(comparison_table([self.comparison]))
        lines += [f"  {line}" for line in (self.failure, *self.statements) if line]
        if self.author is not None:
            lines.append(f"who is wrong: {author_text(self.author)}")
        lines.append(f"to blame: {_BLAME[self.blame]}")
        if self.stages:
            lines.append(
                "  " + ", ".join(f"{stage}: {'right' if ok else 'wrong'}" for stage, ok in self.stages.items())
            )
        return "\n".join(lines)


def find_first_wrong_node(
    result: ExportedArchive,
    tolerance: str | TractCheckTolerance | Judgement | None = None,
    *,
    timeout: float = 60.0,
    outcome: Outcome | None = None,
) -> FirstWrongNode:
    """Return the first node of an exported model whose value fails.

    `timeout` is in seconds for each run of the engine, `outcome` is the check's if it has already run. Raises
    InputError if the archive passes, and the T2NError of an archive that fails before the engine runs.
    """
    if outcome is None:
        outcome = check_exported(result, criteria_for(result, tolerance), timeout=timeout)
    if outcome.passed or outcome.required is None:
        raise InputError("the archive passes: there is no wrong node")
    if outcome.stage not in (Stage.LOAD, Stage.OPTIMISE, Stage.RUN, Stage.COMPARE):
        outcome.raise_for_failure()
    samples = result.samples
    failed = [sample for sample in samples if dict(sample.sizes) in [dict(sizes) for sizes in outcome.failed_sizes]]
    if not failed and outcome.status is Status.MISMATCH:
        failed = list(samples)
    sample = (failed or list(samples))[0]
    error = "" if outcome.error is None else outcome.error.error_class
    if error in (PiecesError.__name__, CallsError.__name__):
        raise InputError(
            "the failure shows only in pieces of a sequence or calls in a row, for which nodes cannot be searched"
        )
    rows = replace_rows(samples) if error == RowsError.__name__ else None
    if rows is not None:  # each node is compared with PyTorch on the rows with the failure
        sizes = samples[rows.sample].sizes
        (inputs,) = map(tuple, rows.batches)
        sample = Sample(inputs, result.reference.answer(inputs, result.stored), sizes, "other rows")
    again = error == SecondCallError.__name__
    return first_wrong_of(result, outcome.required, sample, timeout, in_second_call=again, path=outcome.path)


def first_wrong_of(
    result: ExportedArchive,
    level: TractCheckTolerance,
    sample: Sample,
    timeout: float = 60.0,
    *,
    in_second_call: bool = False,
    path: str = "",
) -> FirstWrongNode:
    """Return the first node whose value fails on one sample, or in its second call in one State.

    `timeout` is in seconds for each run of the engine, `path` the path through it, by default the main one.
    """
    options = {"calls": REPEATED} if in_second_call else {}
    return _Search(result, level, sample, timeout, options, path).run()


class _Search:
    def __init__(
        self,
        result: ExportedArchive,
        level: TractCheckTolerance,
        sample: Sample,
        timeout: float,
        options: Mapping[str, Any],
        path: str,
    ) -> None:
        self.result, self.level, self.sample, self.timeout = result, level, sample, timeout
        self.path, self.engine = path, on_path(result.target.engine(), path, [sample.sizes])
        self.options = options
        self.graph = result.lowering.simplified()
        tensors = [torch.from_numpy(np.array(array)) for array in sample.inputs]
        self.expected = evaluate_graph(self.graph, tensors, self._sizes())
        self.shown: tuple[NodeError, ...] = ()
        self.nodes = [variable for variable in self._read() if self.expected(variable) is not None]

    def _sizes(self) -> Mapping[str, int]:
        return self.sample.sizes or self.result.captured.symbols

    def _read(self) -> list[TensorVariable]:
        """Return the results with a user, in the order of computation: only these can surely be lowered."""
        read = {id(v) for op in self.graph.op_nodes for v in op.inputs} | {id(v) for v in self.graph.outputs}
        inputs = {id(v) for v in self.graph.inputs}
        results = [o for op in self.graph.op_nodes for o in op.outputs if o is not None and o.data is None]
        return [o for o in results if id(o) in read and id(o) not in inputs and o.dtype not in _WITHOUT_NUMPY]

    def run(self) -> FirstWrongNode:
        empty = FirstWrongNode(self.level, self.sample.sizes, len(self.nodes))
        if self._capture_is_outside(self.level):
            wider = max(self.level, DEFAULT_LEVEL, key=lambda level: level.rank)
            return replace(empty, blame="capture" if self._capture_is_outside(wider) else "rounding")
        position = self._first_shown_wrong()
        if position is None:
            position = self._first_cut_wrong()
        empty = replace(empty, nodes=self.shown)
        if position is None:
            return empty
        variable = self.nodes[position]
        reply, comparison = self._run_cut(variable)
        op = variable.producer
        assert op is not None
        stages = self._stages(variable)
        author = self._author(variable) if reply.status == "ok" else None
        return replace(
            empty,
            kind=op.kind,
            origin=op.origin,
            comparison=comparison if comparison is not None else None,
            failure="" if reply.status == "ok" else f"{reply.status} at stage `{reply.stage}`: {reply.message}",
            statements=self._statements(variable),
            stages=stages,
            blame="graph" if reply.status != "ok" and not stages else _blame(stages, author),
            author=author,
        )

    def _capture_is_outside(self, level: TractCheckTolerance) -> bool:
        """Return whether the captured graph's own values are outside `level` of the model's values.

        False if some output could not be computed from the graph.
        """
        values = [self.expected(v) for v in self.graph.outputs]
        arrays = [v.numpy() for v in values if v is not None]
        if len(arrays) < len(values):
            return False
        return not all(o.passed for o in compare_outputs(self.sample.expected, arrays, criteria=Judgement(level)))

    def _first_shown_wrong(self) -> int | None:
        """Return the position of the first wrong node, from one run that outputs all nodes.

        None if such a graph cannot be written or does not run, or if all nodes are right.
        """
        try:
            reply = self._run(self.nodes)
        except T2NError:
            return None
        if reply.status != "ok" or not reply.outputs:
            return None
        self.shown = tuple(map(self._node_error, self.nodes, reply.outputs[0]))
        return next((position for position, node in enumerate(self.shown) if not node.comparison.passed), None)

    def _node_error(self, variable: TensorVariable, got: Any) -> NodeError:
        op = variable.producer
        compared, statements = self._compare(variable, got), self._statements(variable)
        return NodeError(op.kind if op else "", op.origin if op else None, compared, statements)

    def _first_cut_wrong(self) -> int | None:
        """Return the position of the first wrong node by bisection, as if all nodes after it were wrong too.

        None if the last node is right.
        """
        low, high = 0, len(self.nodes) - 1
        if high < 0 or self._cut_is_right(high):
            return None
        while low < high:
            middle = (low + high) // 2
            if self._cut_is_right(middle):
                low = middle + 1
            else:
                high = middle
        return low

    def _cut_is_right(self, position: int) -> bool:
        """Return whether a node is right as the only output, or cannot be written as an output."""
        try:
            _, comparison = self._run_cut(self.nodes[position])
        except T2NError:
            return True
        return comparison is not None and comparison.passed

    def _run_cut(self, variable: TensorVariable, **options: Any) -> tuple[EngineReply, OutputComparison | None]:
        reply = self._run([variable], **options)
        if reply.status != "ok" or not reply.outputs:
            return reply, None
        return reply, self._compare(variable, reply.outputs[0][0])

    def _compare(self, variable: TensorVariable, got: Any) -> OutputComparison:
        expected = self.expected(variable)
        assert expected is not None
        return compare(expected.numpy(), got, name=variable.name, criteria=Judgement(self.level))

    def _run(self, shown: Sequence[TensorVariable], **options: Any) -> EngineReply:
        """Run the part of the graph that leads to these values. Raises T2NError if it cannot be written."""
        options = {**self.options, **options}
        with self._archive_of(shown) as archive:
            return last_kept_call(self.engine.run(archive, [self.sample.inputs], timeout=self.timeout, **options))

    def _author(self, variable: TensorVariable) -> Author | str | None:
        """Return the author of a wrong value, by the definitions of the operators of the graph that ends there."""
        expected = self.expected(variable)
        assert expected is not None
        sample = replace(self.sample, expected=(expected.numpy(),))
        with self._archive_of([variable]) as archive:
            request = CheckRequest(archive, [sample], [variable.name], Judgement(self.level), self.timeout)
            return author_of(self.engine, request, sample, in_second_call=bool(self.options))

    @contextmanager
    def _archive_of(self, shown: Sequence[TensorVariable]) -> Iterator[Path]:
        """Write the part of the graph that leads to these values. Raises T2NError if it cannot be written."""
        target = self.result.target
        cut = TorchModuleIRGraph(
            inputs=self.graph.inputs,
            outputs=list(shown),
            op_nodes=self.graph.op_nodes,
            weights=self.graph.weights,
            table=self.graph.table,
        )
        cut.op_nodes = cut.used_ops()
        names = [f"shown_{i}" for i in range(len(shown))]
        with scratch_folder() as folder:
            graph = self.result.lowering.write(cut, names)
            yield write_archive(graph, folder / "cut", spec=target.spec)

    def _stages(self, variable: TensorVariable) -> dict[str, bool]:
        if not getattr(self.engine, "runs_stages", False):
            return {}
        verdicts = {}
        for stage in _STAGES if self.path != EnginePath.OPTIMISE_ONLY else _STAGES_WITHOUT_DECLUTTER:
            _, comparison = self._run_cut(variable, stage=stage)
            verdicts[stage] = comparison is not None and comparison.passed
        return verdicts

    def _statements(self, variable: TensorVariable) -> tuple[str, ...]:
        origin = variable.producer.origin if variable.producer else None
        return () if origin is None else self._by_origin.get(origin, ())

    @functools.cached_property
    def _by_origin(self) -> Mapping[Origin, tuple[str, ...]]:
        spec = self.result.target.spec
        texts: dict[Origin, tuple[str, ...]] = {}
        for operation in self.result.graph.operations:
            if operation.origin is not None and operation.name in self._result_names:
                texts[operation.origin] = (
                    *texts.get(operation.origin, ()),
                    operation_text(operation, spec.operator(operation.name)),
                )
        return texts

    @functools.cached_property
    def _result_names(self) -> frozenset[str]:
        return frozenset(self.result.target.spec.names())


def _blame(stages: Mapping[str, bool], author: Author | str | None) -> str:
    wrong = [stage for stage in _STAGES if stage in stages and not stages[stage]]
    if wrong and wrong[0] != "raw":
        return wrong[0]
    if author is Author.ENGINE:
        return "operator" if wrong else "engine"
    return "graph" if wrong or author is Author.EXPORTER else ""
