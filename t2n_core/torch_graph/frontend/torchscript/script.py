"""Interpret a TorchScript graph: a scripted or traced model as a module that torch.export can capture.

Every `aten` node calls the PyTorch operator it names; values other than tensors are computed in Python (sizes stay
symbolic, control flow is executed); weights keep their names, and nodes their module and source line.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch.fx import traceback as fx_traceback

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.compat.operators import find_packet
from t2n_core.torch_graph.compat.private import ScriptObject, _jit_pass_inline
from t2n_core.torch_graph.frontend.results import Results
from t2n_core.torch_graph.frontend.torchscript.script_numbers import CALCULATE, OF_TENSORS, as_integer, tensor_of
from t2n_core.torch_graph.naming import ORIGIN, ROOT, without_root

_SCHEMA = re.compile(r"(\w+)::(\w+)(?:\.(\w+))?\(")
_TRACED = re.compile(r"(?P<file>\S[^\n]*?)\((?P<line>\d+)\): (?P<function>\S+)")
_SCRIPTED = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>\S+))?')
_NUMBER = (int, float, torch.SymInt, torch.SymFloat)
_SMALL = 64
"""Elements. Small integer constants are created again from Python numbers, so that capture knows their values."""


class ScriptCall(torch.nn.Module):
    """A method of a ScriptModule as a module of plain operator calls on tensors. The script is not changed."""

    def __init__(
        self,
        script: torch.jit.ScriptModule,
        fn_name: str = "forward",
        arguments: Callable[[Sequence[torch.Tensor]], Sequence[Any]] = tuple,
    ) -> None:
        """Wrap a method of a script; `arguments` turns tensors into the arguments of the method.

        Raises CaptureError for a script of torch.ao's quantised layers, whose weights are packed objects.
        """
        super().__init__()
        self.training = script.training
        graph = getattr(script, fn_name).graph.copy()
        _jit_pass_inline(graph)
        packed = next((node.kind() for node in graph.nodes() if node.kind().startswith("quantized::")), None)
        if packed is not None:
            raise CaptureError(
                "a model of torch.ao's quantised layers cannot be exported from TorchScript",
                op=packed,
                hint='pass the module that it was made from, with capture="trace" if need be',
            )
        self.graph, self.arguments = graph, arguments
        self.top = _Path(script, "")
        self.results = Results()
        self.add_module(ROOT, torch.nn.Module())
        weights: Any = [*script.named_parameters(remove_duplicate=False), *script.named_buffers(remove_duplicate=False)]
        for name, tensor in weights:
            _attach_weight(self.get_submodule(ROOT), without_root(name), tensor)

    def forward(self, *tensors: torch.Tensor) -> tuple[Any, ...]:
        inputs = list(self.graph.inputs())
        values = {v.debugName(): a for v, a in zip(inputs[1:], self.arguments(tensors), strict=True)}
        values[inputs[0].debugName()] = self.top
        with fx_traceback.preserve_node_meta():
            (result,) = _Run(self._weight, values).block(self.graph)
        return self.results.flat(result)

    def _weight(self, path: str) -> Any:
        """Return the parameter or buffer of that name, which capture replaces by its own tensor."""
        attribute: Any = self.get_submodule(ROOT)
        for part in without_root(path).split("."):
            attribute = getattr(attribute, part, None)
        return attribute


class _Path:
    """A module of the script, and its path."""

    def __init__(self, module: Any, path: str) -> None:
        self.module, self.path = module, path

    def attribute(self, name: str, weight: Callable[[str], Any]) -> Any:
        value, path = getattr(self.module, name), f"{self.path}.{name}" if self.path else name
        if isinstance(value, torch.Tensor):
            if value.dim() == 0 and not value.is_floating_point() and not value.is_complex():
                return value.item()  # a setting of the model, whose value must be known
            tensor = weight(path)
            return value if tensor is None else tensor
        return _Path(value, path) if isinstance(value, torch.jit.ScriptModule | ScriptObject) else value


class _Run:
    """One evaluation; `values` maps the graph's names to tensors, numbers, lists and modules."""

    def __init__(self, weight: Callable[[str], Any], values: dict[str, Any]) -> None:
        self.weight, self.values = weight, values

    def block(self, block: Any) -> list[Any]:
        for node in block.nodes():
            with ExitStack() as stack:
                if node.kind().startswith("aten::"):
                    stack.enter_context(fx_traceback.annotate({ORIGIN: origin_of(node)}))
                self._node(node)
        return [self.values[v.debugName()] for v in block.outputs()]

    def _node(self, node: Any) -> None:
        kind = node.kind()
        operands = [self.values[v.debugName()] for v in node.inputs()] if kind not in ("prim::Constant",) else []
        outputs = list(node.outputs())
        if kind in _STRUCTURES:
            results = [_STRUCTURES[kind](self, node, operands)]
        elif kind in ("prim::TupleUnpack", "prim::ListUnpack"):
            results = list(operands[0])
        elif kind == "prim::If":
            chosen = list(node.blocks())[0 if operands[0] else 1]
            results = self.block(chosen)
        elif kind == "prim::Loop":
            results = self._loop(node, operands)
        elif kind == "prim::RaiseException":
            raise CaptureError(
                f"the script raises an exception: {operands[0]}", hint="it does so on the example inputs"
            )
        else:
            results = self._call(node, kind, operands, len(outputs))
        for value, result in zip(outputs, results, strict=True):
            self.values[value.debugName()] = result

    def _loop(self, node: Any, operands: list[Any]) -> list[Any]:
        most, goes_on, carried = operands[0], operands[1], operands[2:]
        (body,) = node.blocks()
        names = [v.debugName() for v in body.inputs()]
        step = 0
        while goes_on and step < most:
            self.values.update(zip(names, [step, *carried], strict=True))
            goes_on, *carried = self.block(body)
            step += 1
        return list(carried)

    def _call(self, node: Any, kind: str, operands: list[Any], count: int) -> list[Any]:
        if any(isinstance(a, _NUMBER) for a in operands) and kind.startswith("aten::"):
            operands = [
                a.item() if type(a) is torch.Tensor and a.dim() == 0 else a for a in operands
            ]  # a number in the trace
        tensors = any(_holds_tensor(a) for a in operands)
        name = kind.removeprefix("aten::").removeprefix("prim::")
        lists = bool(operands) and isinstance(operands[0], list | dict) and name in _OF_LISTS
        if kind == "aten::tensor" and not tensors:
            result: Any = tensor_of(*operands)
        elif kind in OF_TENSORS and tensors:
            result = OF_TENSORS[kind](*operands)
        elif name in CALCULATE and (lists or not tensors):
            result = CALCULATE[name](*operands)
        elif not kind.startswith("prim::"):  # also of other libraries, and modules kept whole
            result = _operator(node.schema(), operands)
        else:
            raise CaptureError(f"the script holds {kind}, which cannot be expressed in a graph")
        if count == 1:
            return [as_integer(result)]
        return [] if count == 0 else list(result)


def _operator(schema: str, operands: list[Any]) -> Any:
    """Call the torch operator of a schema; numbers may be passed for tensors."""
    match = _SCHEMA.match(schema)
    if match is None:
        raise CaptureError(f"`{schema}` is not the schema of an operator")
    namespace, name, overload = match.groups()
    packet: Any = find_packet(f"{namespace}::{name}")
    if packet is None:
        raise CaptureError(f"PyTorch {torch.__version__} has no operator {namespace}::{name}, which the script calls")
    operator = getattr(packet, overload or "default")
    arguments = operator._schema.arguments
    if name == "_convolution":
        return _convolution(*operands)
    operands = [
        _as_tensors(g) if str(a.type) == "List[Tensor]" else g for a, g in zip(arguments, operands, strict=True)
    ]
    args = [g for a, g in zip(arguments, operands, strict=True) if not a.kwarg_only]
    kwargs = {a.name: g for a, g in zip(arguments, operands, strict=True) if a.kwarg_only}
    numbers = any(
        str(a.type) == "Tensor" and not isinstance(g, torch.Tensor) and g is not None
        for a, g in zip(arguments, operands, strict=True)
    )
    return (packet if numbers else operator)(*args, **kwargs)


def _as_tensors(items: Any) -> list[Any]:
    return [i if isinstance(i, torch.Tensor) or i is None else torch.scalar_tensor(i, dtype=torch.int64) for i in items]


def _convolution(
    input: torch.Tensor, weight: torch.Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, *_: Any,
) -> Any:  # fmt: skip
    """Compute a convolution of a trace, which has one operator for all, by the operator that torch.export uses."""
    rank = weight.dim() - 2
    if transposed:
        last: Any = getattr(torch, f"conv_transpose{rank}d")
        return last(input, weight, bias, stride, padding, output_padding, groups, dilation)
    plain: Any = getattr(torch, f"conv{rank}d")
    return plain(input, weight, bias, stride, padding, dilation, groups)


def _constant(run: _Run, node: Any, operands: list[Any]) -> Any:
    if not node.hasAttribute("value"):
        return None
    value = node.output().toIValue()
    if isinstance(value, torch.Tensor) and not value.is_floating_point() and value.numel() <= _SMALL:
        return value.item() if value.dim() == 0 else torch.tensor(value.tolist(), dtype=value.dtype)
    return value


def _attribute(run: _Run, node: Any, operands: list[Any]) -> Any:
    return operands[0].attribute(node.s("name"), run.weight)


_STRUCTURES: dict[str, Callable[[_Run, Any, list[Any]], Any]] = {
    "prim::Constant": _constant,
    "prim::GetAttr": _attribute,
    "prim::ListConstruct": lambda run, node, operands: list(operands),
    "prim::TupleConstruct": lambda run, node, operands: tuple(operands),
    "prim::DictConstruct": lambda run, node, operands: dict(zip(operands[::2], operands[1::2], strict=True)),
    "prim::TupleIndex": lambda run, node, operands: operands[0][operands[1]],
    "prim::NumToTensor": lambda run, node, operands: operands[0],
    "prim::unchecked_cast": lambda run, node, operands: operands[0],
    "prim::Uninitialized": lambda run, node, operands: None,
    "prim::Print": lambda run, node, operands: None,
    "aten::Size": lambda run, node, operands: operands[0],
}
_OF_LISTS = frozenset(
    "append _set_item __getitem__ len slice list copy keys values items get extend insert pop reverse clear add".split()
)


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_holds_tensor(v) for v in value)
    return isinstance(value, torch.Tensor)


@functools.cache
def _line(file: str, number: int) -> str:
    import linecache

    return linecache.getline(file, number).strip()


def origin_of(node: Any) -> tuple[str, str]:
    """Return the module path and source line of a node."""
    text = node.sourceRange()
    traced = list(_TRACED.finditer(text))
    frames: Sequence[re.Match[str]] = traced or list(_SCRIPTED.finditer(text))[::-1]
    user_frames = [f for f in frames if "/torch/" not in f["file"]]
    source = ""
    if frames:
        frame = (user_frames or frames)[0]
        function = f" in {frame['function']}" if frame["function"] else ""
        code = _line(frame["file"], int(frame["line"]))
        source = f"{frame['file']}:{frame['line']}{function}" + (f": `{code}`" if code else "")
    scope = node.scopeName().split("/")[-1]
    return without_root(scope.removeprefix("__module").removeprefix(".")), source


def _attach_weight(root: torch.nn.Module, name: str, tensor: torch.Tensor) -> None:
    *path, last = name.split(".")
    for part in path:
        if part not in root._modules:
            root.add_module(part, torch.nn.Module())
        root = root._modules[part]  # type: ignore[assignment]
    if isinstance(tensor, torch.nn.Parameter):
        root.register_parameter(last, tensor)
    else:
        root.register_buffer(last, tensor)
