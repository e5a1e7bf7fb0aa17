"""Differences in behaviour between the supported releases of PyTorch, each with its releases."""

from __future__ import annotations

from typing import Final

import torch
from packaging.version import Version

from t2n_core.nnef.releases import Releases

_INSTALLED = Version(Version(torch.__version__).base_version)

QUANTIZE_ROUNDS_FIRST: Final = _INSTALLED in Releases.of(since="2.14")
"""True if `torch.quantize_per_tensor` rounds x / scale and then adds the zero point; older releases round the sum."""
