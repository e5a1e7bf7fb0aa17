"""Suite `sizes`: patterns of sizes, each traced at three, and right at 0 to 70, 128 and 257 or refused there.

A cell passes if its archive, loaded once, computes PyTorch's values at every size of its range, and beyond it either
those or an error of the engine; see `t2n_core.parity.sizes`. What PyTorch itself does not run is no size of a pattern.
"""

from __future__ import annotations

from typing import Any

import pytest

from conformance.cases.sizes.patterns import NETS
from conformance.checks.sizes import SECONDS_TO_RUN, check_result, export_of

CELLS = [
    pytest.param(name, sizes, id=f"{name}-{'x'.join(map(str, sizes.values()))}")
    for name, net in NETS.items()
    for sizes in net.traced
]


@pytest.mark.filterwarnings("ignore:the archive holds only")  # the record says it
@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize(("name", "sizes"), CELLS)
def test_sizes(name: str, sizes: dict[str, int], nnef_export: Any) -> None:
    result = nnef_export(export_of(name, tuple(sizes.values())))
    result.note(check_result(result, name, sizes, SECONDS_TO_RUN)).raise_for_failure()
