"""The operators whose result no function of their arguments gives, with the reason."""

from typing import Final

WITHOUT_MEANING: Final = {
    "tract_core_load": "reads the session's tensor of a name, which another statement may have written",
    "tract_core_store": "writes the session's tensor of a name, for another statement to read",
    "tract_core_submodel": "runs a model that is a resource of the loading program, not a part of the archive",
    "tract_onnx_multinomial": "draws random numbers",
    "tract_onnx_random": "draws random numbers",
    "tract_resource_get": "reads a resource of the loading program, which no wheel can give",
}
"""An evaluation of such an operator ends with its reason."""
