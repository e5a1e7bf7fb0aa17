"""Private names of PyTorch that the converter uses, each imported on first use.

A name that the installed PyTorch lacks raises TorchVersionError with the name and the release to install.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from t2n_core.errors import TorchVersionError
from t2n_core.torch_graph.compat.releases import TESTED

if TYPE_CHECKING:
    from torch._C import DispatchKey, ScriptObject
    from torch._decomp.decompositions_for_rng import PhiloxStateTracker
    from torch._dispatch.python import enable_python_dispatcher
    from torch._dynamo.source import ConstantSource
    from torch._guards import detect_fake_mode
    from torch._library.custom_ops import CustomOpDef
    from torch._ops import OpOverload, OpOverloadPacket
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, disable_fake_tensor_cache
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.symbolic_shapes import (
        DimDynamic,
        GuardOnDataDependentSymNode,
        ShapeEnv,
        statically_known_true,
    )
    from torch.jit._trace import TracerWarning
    from torch.utils import _pytree as pytree
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.weak import WeakIdKeyDictionary

PRIVATE = {
    "ConstantSource": "torch._dynamo.source",
    "CustomOpDef": "torch._library.custom_ops",
    "DimDynamic": "torch.fx.experimental.symbolic_shapes",
    "DispatchKey": "torch._C",
    "FakeTensor": "torch._subclasses.fake_tensor",
    "FakeTensorMode": "torch._subclasses.fake_tensor",
    "FunctionModifiers": "torch._jit_internal",
    "GuardOnDataDependentSymNode": "torch.fx.experimental.symbolic_shapes",
    "OpOverload": "torch._ops",
    "OpOverloadPacket": "torch._ops",
    "PhiloxStateTracker": "torch._decomp.decompositions_for_rng",
    "ScriptObject": "torch._C",
    "ShapeEnv": "torch.fx.experimental.symbolic_shapes",
    "TracerWarning": "torch.jit._trace",
    "TorchDispatchMode": "torch.utils._python_dispatch",
    "WeakIdKeyDictionary": "torch.utils.weak",
    "_check": "torch",
    "_chunk_cat": "torch",
    "_disable_current_modes": "torch.utils._python_dispatch",
    "_dispatch_get_all_op_names": "torch._C",
    "_inject_new_class": "torch.nn.utils.parametrize",
    "_inject_property": "torch.nn.utils.parametrize",
    "_is_vnni_supported": "torch.cpu",
    "_jit_pass_inline": "torch._C",
    "_pack_padded_sequence": "torch._VF",
    "_pad_packed_sequence": "torch._VF",
    "_shape_as_tensor": "torch",
    "_VariableFunctions": "torch._C",
    "core_aten_decompositions": "torch._decomp",
    "decomposition_table": "torch._decomp",
    "detect_fake_mode": "torch._guards",
    "disable_fake_tensor_cache": "torch._subclasses.fake_tensor",
    "enable_python_dispatcher": "torch._dispatch.python",
    "free_unbacked_symbols": "torch.fx.experimental.symbolic_shapes",
    "is_functorch_wrapped_tensor": "torch._C._functorch",
    "legacy_get_string": "torch.nn._reduction",
    "make_fx": "torch.fx.experimental.proxy_tensor",
    "statically_known_true": "torch.fx.experimental.symbolic_shapes",
}
"""Name -> its module."""
MODULES = {
    "linalg_functions": "torch._C._linalg",
    "neural_functions": "torch._C._nn",
    "pytree": "torch.utils._pytree",
    "special_functions": "torch._C._special",
    "symbolic_config": "torch.fx.experimental._config",
}
"""Name here -> the PyTorch module that it stands for."""


def __getattr__(name: str) -> Any:
    if name in MODULES:
        value: Any = _load(MODULES[name])
    elif name in PRIVATE:
        value = getattr(_load(PRIVATE[name]), name, None)
        if value is None:
            raise missing_name_error(f"{PRIVATE[name]}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def _load(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as cause:
        raise missing_name_error(module) from cause


def missing_name_error(path: str) -> TorchVersionError:
    """Return the error for a name that the installed PyTorch lacks."""
    import torch

    return TorchVersionError(
        f"torch {torch.__version__} has no {path}, which the converter needs", hint=f"pip install torch=={TESTED[-1]}"
    )


__all__ = [
    "ConstantSource",
    "CustomOpDef",
    "DimDynamic",
    "DispatchKey",
    "FakeTensor",
    "FakeTensorMode",
    "GuardOnDataDependentSymNode",
    "OpOverload",
    "OpOverloadPacket",
    "PhiloxStateTracker",
    "ScriptObject",
    "ShapeEnv",
    "TorchDispatchMode",
    "TracerWarning",
    "WeakIdKeyDictionary",
    "detect_fake_mode",
    "disable_fake_tensor_cache",
    "enable_python_dispatcher",
    "make_fx",
    "missing_name_error",
    "pytree",
    "statically_known_true",
]
