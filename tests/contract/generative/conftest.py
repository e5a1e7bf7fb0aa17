"""Makes the libraries of models loadable next to a CPU build of torch, before the tests import them."""

from __future__ import annotations

import conformance.cases.models.libraries  # noqa: F401
