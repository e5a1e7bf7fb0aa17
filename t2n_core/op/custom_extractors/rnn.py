"""Extractors of torch.nn's recurrent modules.

Their nodes are the aten operators themselves, so that a net gives the same archive whether it is used as a module, as
an aten call or as a functional call. The module's own forward handles default states, unbatched inputs and packed
sequences.
"""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.nn.utils.rnn import PackedSequence

from t2n_core.op.custom_extractors.base import ModuleInfoExtractor
from t2n_core.torch_graph.custom_ops.module_calls import ModuleCall


class _RecurrentExtractor(ModuleInfoExtractor):
    def generate_in_torch_graph(self, call: ModuleCall, *args: Any, **kwargs: Any) -> Any:
        """Run the module's own forward, without its check of states passed with a packed sequence.

        The check converts the batch to a Python number, which would fix a dynamic batch. The operator checks it as
        well.
        """
        if not any(isinstance(given, PackedSequence) for given in (*args, *kwargs.values())):
            return call.forward(*args, **kwargs)
        own = vars(call.module)
        own["check_forward_args"] = lambda *_: None
        try:
            return call.forward(*args, **kwargs)
        finally:
            del own["check_forward_args"]


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
