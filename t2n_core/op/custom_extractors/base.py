"""Extractors, which keep a module whole: for modules whose expansion is poor, or that cannot be captured at all.

    class SquareExtractor(ModuleInfoExtractor):
        MODULE_CLASS = Square

        def convert_to_nnef(self, g, module, inputs, params):
            return [g.mul(inputs[0], inputs[0])]

Defining the class registers it. It also handles subclasses of MODULE_CLASS, unless they have their own forward.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch

from t2n_core.errors import ExtractorWarning, RegistryError
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.op.registry import op
from t2n_core.torch_graph.compat.private import pytree
from t2n_core.torch_graph.custom_ops.module_calls import (
    MODULE_CALL,
    ModuleCall,
    WholeCall,
    extractors,
    registered_extractor,
)
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchOp


def _note(text: str) -> None:
    warnings.warn(ExtractorWarning(text), stacklevel=3)


class ModuleInfoExtractor:
    """Base class of all extractors; registration creates one object per class."""

    MODULE_CLASS: ClassVar[Any] = None
    """The class of modules that is kept whole; None for a base class of other extractors."""
    KIND: ClassVar[str] = ""
    """Kind of the node in the torch graph; `t2n_capture::module_call.` and the name of the class if empty."""
    _replaced: ClassVar[ModuleInfoExtractor | None] = None
    """The extractor whose place this one took."""
    _registered: ClassVar[dict[type[torch.nn.Module], Any]] = extractors

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if vars(cls).get("MODULE_CLASS") is None:
            return  # a base class of other extractors
        if not (isinstance(cls.MODULE_CLASS, type) and issubclass(cls.MODULE_CLASS, torch.nn.Module)):
            raise RegistryError(f"{cls.__qualname__}.MODULE_CLASS={cls.MODULE_CLASS!r} is not a class of modules")
        existing = ModuleInfoExtractor._registered.get(cls.MODULE_CLASS)
        if existing is not None and type(existing).__qualname__ != cls.__qualname__:
            _note(
                f"{cls.__qualname__} takes the place of {type(existing).__qualname__}, "
                f"the extractor of {cls.MODULE_CLASS.__name__}"
            )
        cls._replaced = existing
        ModuleInfoExtractor._registered[cls.MODULE_CLASS] = cls()

    @classmethod
    def get_by_module(cls, module: torch.nn.Module) -> ModuleInfoExtractor | None:
        """Return the extractor of the nearest registered base of the module's class.

        None if there is none, or if a class between the two has its own forward: that one must be captured.
        """
        return registered_extractor(module)  # type: ignore[return-value]

    @classmethod
    def get_by_kind(cls, kind: str) -> ModuleInfoExtractor:
        """Return the extractor whose nodes have that kind; of several, the one registered last.

        Raises RegistryError if there is none.
        """
        extractors = [e for e in cls._registered.values() if e.kind == kind]
        if not extractors:
            raise RegistryError(f"no extractor has nodes of the kind {kind}")
        return extractors[-1]  # type: ignore[no-any-return]

    @property
    def kind(self) -> str:
        """Return the kind of its nodes in the torch graph."""
        return self.KIND or f"{MODULE_CALL}.{type(self).__name__}"

    @classmethod
    def unregister(cls) -> None:
        """Unregister this extractor; the one whose place it took is back. Does nothing if not registered."""
        if type(cls._registered.get(cls.MODULE_CLASS)) is cls:
            del cls._registered[cls.MODULE_CLASS]
            if cls._replaced is not None:
                cls._registered[cls.MODULE_CLASS] = cls._replaced

    @property
    def runs_forward(self) -> bool:
        """Return whether the outputs are declared by the module's own forward."""
        return type(self).declare_outputs is ModuleInfoExtractor.declare_outputs

    def declare_outputs(self, module: Any, *args: Any, **kwargs: Any) -> Any:
        """Return tensors of the right shapes and dtypes for these inputs; their elements do not matter.

        Runs the class's forward on fake tensors unless overridden; where that reads values, the outputs come from a
        run of the example, at its sizes alone. Override it where a dynamic axis would be fixed:
        `return args[0].new_empty(*args[0].shape[:-1], module.width)`.
        """
        return self._call_original_mod_with_args(module, *args, **kwargs)

    def _call_original_mod_with_args(self, module: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the results of the module's own forward, for a class whose forward takes its arguments otherwise."""
        return type(module).forward(module, *args, **kwargs)

    def generate_in_torch_graph(self, call: ModuleCall, *args: Any, **kwargs: Any) -> Any:
        """Run instead of the module's forward during capture: one node with the declared outputs."""
        return call.as_one_node(*args, **kwargs)

    def ordered_args(self, torch_graph: TorchOp) -> Sequence[TensorVariable]:
        """Return `torch_graph.inputs`, the tensors among forward's arguments, in the order of `convert_to_nnef`.

        That is the order of forward's parameters, also where a caller passes them otherwise, unless overridden.
        """
        return torch_graph.inputs

    def convert_to_nnef(
        self, g: Emitter, module: Any, inputs: Sequence[Value], params: Mapping[str, Value]
    ) -> Sequence[Value] | Value:
        """Write the node and return a value for each declared output.

        `inputs` are the tensors among forward's arguments, `params` the weights by their names in the module. Arguments
        that are not tensors are passed as keywords where a call does not use their default. An override may have the
        arguments of torch-to-nnef in their place, by their names: `node`, the TorchOp; `name_to_tensor`, the values of
        its `inputs` by name; `null_ref`, None; `torch_graph`; `inference_target`.
        """
        raise g.fail(f"{type(self).__name__} has no convert_to_nnef")

    def write_node(
        self,
        g: Emitter,
        call: ModuleCall,
        node: WholeCall,
        inputs: list[Value],
        params: Mapping[str, Value],
        given: Mapping[str, Any],
    ) -> Sequence[Value] | Value:
        """Write a node of the torch graph, as a rule does for an operator.

        `given` are what a `convert_to_nnef` with the arguments of torch-to-nnef declares by name. Raises LowerError for
        an argument that `convert_to_nnef` does not take.
        """
        others = _other_arguments(g, call, node, inputs)
        parameters = inspect.signature(self.convert_to_nnef).parameters
        unknown = [
            n for n in others if n not in parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        ]
        if unknown:
            raise g.fail(
                f"{type(self).__name__}.convert_to_nnef does not take the argument {unknown[0]}={others[unknown[0]]!r}",
                hint=f"add a parameter `{unknown[0]}` with the default of the module's forward",
            )
        inputs = self._order_inputs(g, given["node"], inputs)
        if "name_to_tensor" not in parameters:
            return self.convert_to_nnef(g, call.module, inputs, params, **others)
        arguments = {"g": g, "module": call.module, "inputs": inputs, "params": params, "null_ref": None, **given}
        results: Any = self.convert_to_nnef(
            **{name: arguments[name] for name in parameters if name in arguments}, **others
        )
        values = [results] if isinstance(results, Value) else results
        if not isinstance(values, list | tuple) or not values or not all(isinstance(value, Value) for value in values):
            raise g.fail(
                f"{type(self).__name__}.convert_to_nnef returns {results!r}, not the values of its outputs",
                hint="write operators by methods of g, such as `g.mul(x, x)`, and return what they return",
            )
        return results  # type: ignore[no-any-return]

    def _order_inputs(self, g: Emitter, node: TorchOp, inputs: list[Value]) -> list[Value]:
        """Return the inputs in the order of `ordered_args`. Raises LowerError if it does not return each once."""
        variables = node.arguments["inputs"]
        ordered = list(self.ordered_args(replace(node, arguments={"inputs": variables})))
        if sorted(map(id, ordered)) != sorted(map(id, variables)):
            raise g.fail(
                f"{type(self).__name__}.ordered_args returns other tensors than the inputs",
                hint="return each of `torch_graph.inputs` once",
            )
        values = {id(variable): value for variable, value in zip(variables, inputs, strict=True)}
        return [values[id(variable)] for variable in ordered]


def _other_arguments(g: Emitter, call: ModuleCall, node: WholeCall, inputs: list[Value]) -> dict[str, Any]:
    """Return the arguments without tensors that differ from forward's defaults."""
    args, kwargs = node.arguments_with(inputs)
    signature = inspect.signature(call.forward)
    others: dict[str, Any] = {}
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        parameter = signature.parameters[name]
        pairs = value.items() if parameter.kind is parameter.VAR_KEYWORD else [(name, value)]
        for key, argument in pairs:
            leaves = pytree.tree_leaves(argument)
            plain = [leaf for leaf in leaves if not isinstance(leaf, Value)]
            if len(plain) != len(leaves) and any(leaf is not None for leaf in plain):
                raise g.fail(f"the argument `{key}` of a whole module mixes tensors with other things: {plain}")
            default = None if parameter.default is parameter.empty else parameter.default
            if len(plain) == len(leaves) and argument != default:
                others[key] = argument
    return others


@op(MODULE_CALL)
def module_call(
    g: Emitter,
    inputs: list[Value],
    params: list[Value],
    key: Any,
    node: Any,
    name_to_tensor: Mapping[str, Value],
    torch_graph: Any,
    inference_target: Any,
) -> list[Value]:
    of_call = {"node": node, "name_to_tensor": name_to_tensor, "torch_graph": torch_graph}
    written = key.writer.write(g, key, inputs, params, {**of_call, "inference_target": inference_target})
    return [written] if isinstance(written, Value) else list(written)
