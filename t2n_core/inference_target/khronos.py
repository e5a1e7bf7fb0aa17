"""The target for the Khronos standard: flat NNEF 1.0, checked by Khronos' own tools."""

from __future__ import annotations

from typing import Any, ClassVar

from t2n_core.engine.khronos import why_no_khronos
from t2n_core.engine.protocol import Engine
from t2n_core.errors import EngineProvisionError
from t2n_core.inference_target.base import STANDARD, InferenceTarget
from t2n_core.level import DEFAULT_LEVEL, TractCheckTolerance
from t2n_core.nnef.spec import Spec, spec_for


class KhronosNNEF(InferenceTarget):
    """The target of archives for the Khronos tools: standard operators only, no extension, fixed sizes.

    Args:
        version: of the standard, `1.0.5`; earlier 1.0.x lack operators, and there is no later one.
        dynamic_axes: refused with the reason: NNEF 1.0 has fixed sizes.
    """

    name: ClassVar[str] = "khronos"

    def __init__(
        self,
        version: str = STANDARD,
        check_io: bool = True,
        *,
        check_io_tolerance: str | TractCheckTolerance = DEFAULT_LEVEL,
        dynamic_axes: Any = None,
    ) -> None:
        super().__init__(version, check_io=check_io, dynamic_axes=dynamic_axes, check_io_tolerance=check_io_tolerance)

    @classmethod
    def latest(cls, **options: Any) -> KhronosNNEF:
        """Return a target for the newest version of the standard."""
        return cls(STANDARD, **options)

    @property
    def spec(self) -> Spec:
        return spec_for("khronos", self.version)

    def engine(self) -> Engine:
        from t2n_core.engine.khronos.engine import KhronosEngine

        if problem := why_no_khronos():
            raise EngineProvisionError(problem)
        return KhronosEngine.shared()
