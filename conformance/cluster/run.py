"""One run of a bundle on the hosts."""

from __future__ import annotations

import time
from pathlib import Path

from conformance.cluster.hosts import Hosts
from t2n_core.engine.provision.store import default_cache_dir


class Run:
    """One run on the hosts, which can be begun again."""

    def __init__(self, hosts: Hosts, bundle: Path, report: Path, engines: str) -> None:
        self._hosts, self._report = hosts, report
        select = ["--tract", engines, "--offline", "--cache-dir", str(default_cache_dir())]
        far = ["--dask", hosts.address, "--dask-insecure", "--report", str(report)]
        self._words = ["matrix", "run", "--bundle", str(bundle), *select, *far]

    def start(self, *more: str) -> None:
        """Start the client."""
        self._process = self._hosts.client([*self._words, *more])

    def after(self, cells: int) -> None:
        """Wait until so many cells are recorded, or the run has ended."""
        path = self._report / "matrix.jsonl"
        while self._process.poll() is None:
            if path.exists() and path.read_bytes().count(b'"type":"cell"') >= cells:
                return
            time.sleep(0.05)

    def end(self, seconds: float = 600.0) -> int:
        """Wait for the end, and return the exit status."""
        return self._process.wait(seconds)


__all__ = ["Run"]
