"""pytest plugin; see `pytest_t2n.plugin`. Importing it costs nothing."""

from t2n_core import __version__

__all__ = ["__version__"]
