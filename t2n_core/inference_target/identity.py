"""The properties of `dump_identity_properties`: user, host, operating system, date and versions of an export."""

from __future__ import annotations

import getpass
import platform
import sys
from datetime import UTC, datetime
from importlib import metadata


def identity_properties() -> dict[str, str]:
    """Return user, host, operating system, date and versions of this export, as properties of an archive."""
    return {
        "export_user": _user(),
        "export_host": platform.node(),
        "export_os": platform.platform(),
        "export_date": datetime.now(UTC).isoformat(timespec="seconds"),
        "export_python": platform.python_version(),
        "export_torch": metadata.version("torch"),
        "export_t2n": str(sys.modules["t2n_core"].__version__),
    }


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without an entry for its user
        return "unknown"
