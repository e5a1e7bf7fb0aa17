"""Extractors of torch.nn's recurrent modules.

Their nodes are the aten operators themselves, so that a net gives the same archive whether it is used as a module, as
an aten call or as a functional call. The module's own forward handles default states, unbatched inputs and packed
sequences. A subclass with its own `convert_to_nnef` keeps the module as one node, which that method writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn
from torch.nn.utils.rnn import PackedSequence

from t2n_core.errors import RegistryError
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.op.custom_extractors.base import ModuleInfoExtractor
from t2n_core.torch_graph.custom_ops.module_calls import ModuleCall

_OF_A_NODE = ("ordered_args", "declare_outputs", "_call_original_mod_with_args")
"""Methods that are called for a module that is one node."""


class _RecurrentExtractor(ModuleInfoExtractor):
    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Raises RegistryError for an override that would never be called."""
        unused = [name for name in _OF_A_NODE if getattr(cls, name) is not getattr(ModuleInfoExtractor, name)]
        if cls._writes_node() and "KIND" not in vars(cls):
            cls.KIND = ""
        elif unused and not cls._writes_node():
            raise RegistryError(
                f"{cls.__qualname__} overrides {unused[0]}, which is called for a module that is one node; the node of "
                f"{cls.__mro__[1].__name__} is the operator {cls.KIND}",
                hint="override convert_to_nnef too, which writes the node",
            )
        super().__init_subclass__(**kwargs)

    @classmethod
    def _writes_node(cls) -> bool:
        """Return whether a subclass writes the module as one node, by its own `convert_to_nnef`."""
        return cls.convert_to_nnef is not _RecurrentExtractor.convert_to_nnef

    @property
    def runs_forward(self) -> bool:
        return self._writes_node() and super().runs_forward

    def convert_to_nnef(
        self, g: Emitter, module: Any, inputs: Sequence[Value], params: Mapping[str, Value]
    ) -> Sequence[Value] | Value:
        """Write the node of a subclass, which overrides this method. Raises LowerError."""
        raise g.fail(
            f"{type(self).__name__} calls the convert_to_nnef of the extractor of {self.MODULE_CLASS.__name__}, which "
            "has none: the nodes of PyTorch's recurrent modules are operators with rules",
            hint="write the whole node in the override, or leave the override out",
        )

    def generate_in_torch_graph(self, call: ModuleCall, *args: Any, **kwargs: Any) -> Any:
        """Run the module's own forward, without its check of states passed with a packed sequence.

        The check converts the batch to a Python number, which would fix a dynamic batch. The operator checks it as
        well.
        """
        if self._writes_node():
            return super().generate_in_torch_graph(call, *args, **kwargs)
        if not any(isinstance(argument, PackedSequence) for argument in (*args, *kwargs.values())):
            return call.forward(*args, **kwargs)
        attributes = vars(call.module)
        attributes["check_forward_args"] = lambda *_: None
        try:
            return call.forward(*args, **kwargs)
        finally:
            del attributes["check_forward_args"]


class LSTMExtractor(_RecurrentExtractor):
    MODULE_CLASS = nn.LSTM
    KIND = "aten::lstm.input"


class GRUExtractor(_RecurrentExtractor):
    MODULE_CLASS = nn.GRU
    KIND = "aten::gru.input"


class RNNExtractor(_RecurrentExtractor):
    MODULE_CLASS = nn.RNN
    KIND = "aten::rnn_tanh.input"


class LSTMCellExtractor(_RecurrentExtractor):
    MODULE_CLASS = nn.LSTMCell
    KIND = "aten::lstm_cell"


class GRUCellExtractor(_RecurrentExtractor):
    MODULE_CLASS = nn.GRUCell
    KIND = "aten::gru_cell"


class RNNCellExtractor(_RecurrentExtractor):
    MODULE_CLASS = nn.RNNCell
    KIND = "aten::rnn_tanh_cell"
