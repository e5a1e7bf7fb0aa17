"""Makes the libraries of models loadable next to a CPU build of torch, for programs that a starter starts."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import conformance.cases.models.libraries  # noqa: F401

sys.path.pop()
