"""One run of a bundle on the hosts."""

from __future__ import annotations

import time
from pathlib import Path

from conformance.lab.plant.cluster.hosts import Hosts
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

    @property
    def is_running(self) -> bool:
        """Return whether the client runs."""
        return self._process.poll() is None

    @property
    def is_concluded(self) -> bool:
        """Return whether the last line says that the run came to its end."""
        return self._text.rstrip(b"\n").rpartition(b"\n")[2].startswith(b'{"type":"end"')

    @property
    def cells(self) -> int:
        """Return the number of cells that are recorded."""
        return self._text.count(b'"type":"cell"')

    @property
    def not_run(self) -> int:
        """Return the number of cells with the record that they did not run."""
        return self._text.count(b'"status":"not_run"')

    @property
    def _text(self) -> bytes:
        path = self._report / "matrix.jsonl"
        return path.read_bytes() if path.exists() else b""

    def after(self, cells: int) -> None:
        """Wait until `cells` cells are recorded or the run has ended."""
        while self.is_running and self.cells < cells:
            time.sleep(0.05)

    def end(self, seconds: float = 600.0) -> int:
        """Wait for the end, and return the exit status."""
        return self._process.wait(seconds)
