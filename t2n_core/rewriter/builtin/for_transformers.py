"""Rewriters for transformers: code that torch.export refuses or that NNEF cannot express."""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from typing import Any

from torch import Tensor

from t2n_core.errors import CaptureError
from t2n_core.rewriter.builtin.delta_rule import REWRITERS as DELTA_RULES  # noqa: F401  of several modules
from t2n_core.rewriter.builtin.experts import as_one_operator
from t2n_core.rewriter.builtin.marks import builtin_function
from t2n_core.rewriter.context import RewriteContext

MODELS = "transformers.models"


# ------------------------------------------------------------- convolutions that keep their padding in tensors
def _pad(convolution: Any, hidden_states: Tensor) -> Tensor:
    """Pad as the module does, but with stride, kernel and padding as Python numbers instead of tensors."""
    conv = convolution.conv
    stride, kernel = conv.stride[0], (conv.kernel_size[0] - 1) * conv.dilation[0] + 1
    total, length = kernel - stride, hidden_states.shape[-1]
    frames = -((kernel - total - length) // stride)
    extra = frames * stride + kernel - total - length
    sides = (total, extra) if convolution.causal else (total - total // 2, total // 2 + extra)
    padded: Tensor = convolution._pad1d(hidden_states, sides, mode=convolution.pad_mode)
    return padded


@builtin_function(f"{MODELS}.encodec.modeling_encodec:EncodecConv1d.forward")
def encodec_convolution(ctx: RewriteContext, self: Any, hidden_states: Tensor) -> Tensor:
    convolved: Tensor = self.conv(_pad(self, hidden_states))
    return self.norm(convolved) if self.norm_type == "time_group_norm" else convolved


@builtin_function(f"{MODELS}.mimi.modeling_mimi:MimiConv1d.forward")
def mimi_convolution(ctx: RewriteContext, self: Any, hidden_states: Tensor, padding_cache: Any = None) -> Any:
    if padding_cache is not None:
        return ctx.original(self, hidden_states, padding_cache)
    return self.conv(_pad(self, hidden_states))


# ------------------------------------------------------------------------------- experts as a loop in Python
@builtin_function("transformers.integrations.moe:ExpertsInterface.get_interface")
def experts(ctx: RewriteContext, self: Any, experts_implementation: str | None, default: Any) -> Any:
    """Select transformers' implementation that multiplies all rows by all experts, not the loop over chosen ones.

    Experts that are one operator for some target are captured as such.
    """
    is_loop = experts_implementation in (None, "eager")
    chosen = ctx.original(self, "batched_mm" if is_loop else experts_implementation, default)
    return as_one_operator(chosen)


# ------------------------------------------------------------------------------------ attention with global tokens
_windowed: ContextVar[bool] = ContextVar("t2n_windowed_attention", default=False)
"""True while a model without global tokens runs."""


def _without_global_attention(ctx: RewriteContext, self: Any, *args: Any, **kwargs: Any) -> Any:
    """Run the model without global tokens, on which its shapes would depend. Raises CaptureError for a mask."""
    arguments = inspect.signature(ctx.original).bind(self, *args, **kwargs).arguments
    if arguments.get("global_attention_mask") is not None:
        raise CaptureError(
            f"{type(self).__name__} has a global_attention_mask, and the shapes inside depend on its values",
            hint="export the model without it: windowed attention only",
        )
    token = _windowed.set(True)
    try:
        return ctx.original(self, *args, **kwargs)
    finally:
        _windowed.reset(token)


def _windowed_attention(ctx: RewriteContext, self: Any, *args: Any, **kwargs: Any) -> Any:
    """Pass to the layer that no token is global, which the encoder would read from its mask in Python."""
    overrides = {"is_global_attn": False} if _windowed.get() and "is_global_attn" in kwargs else {}
    return ctx.original(self, *args, **{**kwargs, **overrides})


def _chunks(ctx: RewriteContext, hidden_states: Tensor, window_overlap: int, onnx_export: bool = False) -> Any:
    """Split into windows by the library's variant for ONNX, which uses `unfold` instead of strides."""
    return ctx.original(hidden_states, window_overlap, True)


_LONGFORMER, _LED = f"{MODELS}.longformer.modeling_longformer", f"{MODELS}.led.modeling_led"

longformer_model = builtin_function(f"{_LONGFORMER}:LongformerModel.forward")(_without_global_attention)
longformer_attention = builtin_function(f"{_LONGFORMER}:LongformerSelfAttention.forward")(_windowed_attention)
longformer_chunks = builtin_function(f"{_LONGFORMER}:LongformerSelfAttention._chunk")(_chunks)
led_model = builtin_function(f"{_LED}:LEDModel.forward")(_without_global_attention)
led_attention = builtin_function(f"{_LED}:LEDEncoderSelfAttention.forward")(_windowed_attention)
led_chunks = builtin_function(f"{_LED}:LEDEncoderSelfAttention._chunk")(_chunks)
