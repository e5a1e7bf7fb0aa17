"""The operators without a definition, with the reason."""

from typing import Final

_IN_NO_RELEASE: Final = "is declared, but no release of tract implements it: the engine refuses a graph that has it"
_ON_ROI_RESAMPLE: Final = "is written with `roi_resample`, which no release implements: loading ends the process"
WITHOUT_MEANING: Final = {
    "avg_roi_align": _ON_ROI_RESAMPLE,
    "avg_roi_pool": _IN_NO_RELEASE,
    "max_roi_align": _ON_ROI_RESAMPLE,
    "max_roi_pool": _IN_NO_RELEASE,
    "roi_resample": _IN_NO_RELEASE,
    "tract_core_load": "reads the session's tensor of a name, which another statement may have written",
    "tract_core_store": "writes the session's tensor of a name, for another statement to read",
    "tract_core_submodel": "runs a model that is a resource of the loading program, not a part of the archive",
    "tract_onnx_multinomial": "draws random numbers",
    "tract_onnx_random": "draws random numbers",
    "tract_resource_get": "reads a resource of the loading program, which no wheel can give",
}
"""The reason follows the name of the operator, as in `tract_onnx_random` draws random numbers."""
