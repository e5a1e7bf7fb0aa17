"""Layer 8: the console command `t2n`."""

from __future__ import annotations

from pytest_t2n.cli.command import main

__all__ = ["main"]
