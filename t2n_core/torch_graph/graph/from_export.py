"""Read the program of torch.export into a graph: look up inputs and weights, read operators, check outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

from t2n_core.errors import CaptureError
from t2n_core.nnef.sizes.dims import Dim
from t2n_core.torch_graph import naming
from t2n_core.torch_graph.constraints.dynamic_axes import SymbolTable
from t2n_core.torch_graph.frontend.results import dtype_of, is_output
from t2n_core.torch_graph.graph.fx_nodes import NodeReader
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchModuleIRGraph
from t2n_core.torch_graph.graph.multiples import slice_input
from t2n_core.torch_graph.graph.writes import changes_nothing, is_never_read

_WEIGHTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
_WRITTEN = {OutputKind.BUFFER_MUTATION: "buffer", OutputKind.PARAMETER_MUTATION: "parameter"}


def build_graph(
    program: torch.export.ExportedProgram,
    input_names: Sequence[str],
    table: SymbolTable,
    forms: Mapping[str, Dim] | None = None,
) -> TorchModuleIRGraph:
    """Return the graph of a program, with the symbols in `forms` replaced by these expressions.

    Raises CaptureError for what is not supported in a graph: written buffers, calls of other libraries.
    """
    reader = NodeReader(table)
    inputs, weights = _placeholders(program, reader, input_names)
    if forms:
        table.write_as(forms)
        _slice_inputs(reader)
    graph = TorchModuleIRGraph(inputs=inputs, outputs=[], op_nodes=reader.ops, weights=weights, table=table)
    for node in program.graph.nodes:
        if node.op == "call_function":
            reader.read(node)
        elif node.op == "get_attr":
            reader.env[node.name] = _attribute(program, node)
        elif node.op == "output":
            graph.outputs = _outputs(program, reader, input_names)
    return graph


def user_fakes(program: torch.export.ExportedProgram) -> list[torch.Tensor]:
    """Return the fake tensors of the inputs of a program."""
    input_names = set(program.graph_signature.user_inputs)
    return [
        n.meta["val"]
        for n in program.graph.nodes
        if n.op == "placeholder" and n.name in input_names and isinstance(n.meta.get("val"), torch.Tensor)
    ]


def _placeholders(
    program: torch.export.ExportedProgram, reader: NodeReader, input_names: Sequence[str]
) -> tuple[list[TensorVariable], list[TensorVariable]]:
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    names = iter(input_names)
    inputs: list[TensorVariable] = []
    weights: list[TensorVariable] = []
    shared: dict[tuple[Any, ...], TensorVariable] = {}
    for name, data in program.state_dict.items():
        if isinstance(data, torch.Tensor) and memory_key(data) not in shared:
            shared[memory_key(data)] = _constant(name, data, None)
    weights += shared.values()
    for spec in program.graph_signature.input_specs:
        if isinstance(spec.arg, ConstantArgument):
            reader.env[spec.arg.name] = spec.arg.value
            continue
        node = nodes[spec.arg.name]
        if spec.kind in _WEIGHTS:
            data = _weight(program, str(spec.target))
            # a tied weight is one tensor under two names; so is a weight reached around the module's attributes
            variable = shared.get(memory_key(data))
            if variable is None or data.numel() == 0:
                variable = shared[memory_key(data)] = _constant(str(spec.target), data, node)
                weights.append(variable)
            variable.fake = variable.fake if variable.fake is not None else node.meta.get("val")
            reader.env[node.name] = variable
        elif spec.kind is InputKind.USER_INPUT and isinstance(node.meta.get("val"), torch.Tensor):
            variable = reader.env[node.name] = reader.variable(next(names), node.meta["val"])
            inputs.append(variable)
        else:
            raise CaptureError(f"an input of kind {spec.kind.name} ({spec.arg.name}) cannot be exported")
    return inputs, weights


def _slice_inputs(reader: NodeReader) -> None:
    for name, variable in reader.env.items():
        if isinstance(variable, TensorVariable) and variable.data is None and variable.fake is not None:
            steps = slice_input(variable, tuple(reader.table.dim(size) for size in variable.fake.shape))
            reader.ops += steps
            reader.env[name] = steps[-1].outputs[0] if steps else variable


def memory_key(data: torch.Tensor) -> tuple[Any, ...]:
    """Return a key that is equal for two tensors that read the same memory in the same way."""
    return (data.untyped_storage().data_ptr(), data.storage_offset(), data.dtype, data.shape, data.stride())


def _weight(program: torch.export.ExportedProgram, name: str) -> torch.Tensor:
    value: Any = program.state_dict[name] if name in program.state_dict else program.constants[name]
    if not isinstance(value, torch.Tensor):
        raise CaptureError(f"the model's constant `{name}` is a {type(value).__name__}, not a tensor")
    return value.resolve_conj().resolve_neg()  # a lazy view has elements of the opposite sign in memory


def _constant(name: str, data: torch.Tensor, node: torch.fx.Node | None) -> TensorVariable:
    name, fake = naming.without_root(name), None if node is None else node.meta.get("val")
    return TensorVariable(name, data.detach(), label=name, fake=fake)


def _attribute(program: torch.export.ExportedProgram, node: torch.fx.Node) -> TensorVariable:
    value: Any = program.graph_module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    if isinstance(value, torch.Tensor):
        return _constant(str(node.target), value, node)
    raise CaptureError(
        f"the model holds a subgraph ({node.target}): control flow operators are not supported",
        origin=naming.origin_of(str(node.target), node.meta),
    )


def _outputs(
    program: torch.export.ExportedProgram, reader: NodeReader, input_names: Sequence[str]
) -> list[TensorVariable]:
    outputs: list[TensorVariable] = []
    for spec in program.graph_signature.output_specs:
        if spec.kind in _WRITTEN and (is_never_read(program, spec) or changes_nothing(program, spec)):
            continue
        if spec.kind in _WRITTEN:
            name = naming.without_root(str(spec.target))
            raise CaptureError(
                f"the model writes its {_WRITTEN[spec.kind]} `{name}` while it runs; an exported graph has no state",
                hint="call model.eval() if it is a training statistic, else return the new value instead",
            )
        if spec.kind is OutputKind.USER_INPUT_MUTATION:
            user_names = dict(zip(program.graph_signature.user_inputs, input_names, strict=False))
            name = user_names.get(str(spec.target), str(spec.target))
            raise CaptureError(
                f"the model writes into its input `{name}`; an exported graph cannot",
                hint=f"write into a copy, {name} = {name}.clone(), or inplace=False; return a state as an output",
            )
        if spec.kind is not OutputKind.USER_OUTPUT:
            continue
        output = spec.arg.value if isinstance(spec.arg, ConstantArgument) else reader.env[spec.arg.name]
        if isinstance(output, TensorVariable):
            outputs.append(output)
        elif is_output(output):
            outputs.append(reader.number(f"result_{len(outputs)}", output, dtype_of(output)))
    if not outputs:
        raise CaptureError("the model returns no tensor")
    return outputs
