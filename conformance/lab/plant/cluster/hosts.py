"""Hosts of a cluster as network namespaces on a bridge: own addresses, own caches, no sight of the bundle."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock

from conformance.lab.processes import ENVIRONMENT
from t2n_core.engine.provision.store import default_cache_dir

_BRIDGE, _NET = "t2nbr", "10.77.0"
CLIENT, SCHEDULER = "t2nclient", "t2nsched"
_PORT = 8786
_PATIENCE = 900.0
"""Seconds to wait for the hosts of another process."""


def why_not() -> str:
    """Return why this machine has no such hosts; '' if it can have them."""
    if sys.platform != "linux":
        return "network namespaces are Linux's"
    for program in ("ip", "unshare", "mount"):
        if shutil.which(program) is None:
            return f"there is no `{program}`"
    done = _call("ip", "netns", "add", "t2ntry", check=False)
    if done.returncode:
        return f"no network namespace: {done.stderr.strip()}"
    _call("ip", "netns", "del", "t2ntry")
    return ""


class Hosts:
    """A client, a scheduler and hosts with one worker each; all of it is removed when the block exits."""

    address = f"tcp://{_NET}.2:{_PORT}"

    def __init__(self, folder: Path, hidden: Path, count: int) -> None:
        """Use `folder` for caches and logs; the hosts see `hidden` empty."""
        self._folder, self._hidden, self.count = folder, hidden, count
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = FileLock(Path(tempfile.gettempdir()) / "t2n-hosts.lock")

    def __enter__(self) -> Hosts:
        """Wait until no other such hosts are on this machine, and make them."""
        self._lock.acquire(timeout=_PATIENCE)
        _call("ip", "link", "add", _BRIDGE, "type", "bridge")
        _call("ip", "link", "set", _BRIDGE, "up")
        places = {CLIENT: 1, SCHEDULER: 2, **{_name(n): 10 + n for n in range(self.count)}}
        for name, octet in places.items():
            _call("ip", "netns", "add", name)
            _call("ip", "link", "add", f"v{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
            _call("ip", "link", "set", f"v{name}", "master", _BRIDGE, "up")
            _call("ip", "-n", name, "addr", "add", f"{_NET}.{octet}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                _call("ip", "-n", name, "link", "set", device, "up")
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        for name in (CLIENT, SCHEDULER, *(_name(n) for n in range(self.count))):
            _call("ip", "netns", "del", name, check=False)
        _call("ip", "link", "del", _BRIDGE, check=False)
        self._lock.release()

    def start(self) -> None:
        """Start the scheduler and all workers that do not run."""
        arguments = ("scheduler", "--host", f"{_NET}.2", "--port", str(_PORT), "--no-dashboard")
        self._start(SCHEDULER, [sys.executable, "-m", "dask", *arguments], self._own(SCHEDULER))
        for number in range(self.count):
            self.start_host(number)

    def start_host(self, number: int) -> None:
        """Start a host's worker, with a separate engine cache and temporary folder."""
        name = _name(number)
        home = self._folder / name
        environment = {**self._own(name), "T2N_CACHE_DIR": str(home / "cache")}
        (home / "cache").mkdir(exist_ok=True)
        if not (home / "cache" / "engines").exists():
            (home / "cache" / "engines").symlink_to(default_cache_dir() / "engines")
            shutil.copy(default_cache_dir() / "index.json", home / "cache")
        limits = f"--nthreads 1 --no-dashboard --memory-limit 0 --local-directory {home}/tmp --name {name}"
        command = f"mount -t tmpfs tmpfs {self._hidden}; exec {sys.executable} -m dask worker {self.address} {limits}"
        self._start(name, ["unshare", "-m", "bash", "-c", command], environment)

    def client(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start `t2n` in the namespace of the client, which alone sees the bundle."""
        command = [sys.executable, "-m", "pytest_t2n.cli", *words]
        environment = {**self._own(CLIENT), "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s"}
        return self._start(CLIENT, command, environment)

    def _own(self, name: str) -> dict[str, str]:
        """Return the environment with a separate temporary folder."""
        folder = self._folder / name / "tmp"
        folder.mkdir(parents=True, exist_ok=True)
        return {"TMPDIR": str(folder)}

    def kill(self, name: str | int) -> None:
        """Kill all processes of a host, or of the client or the scheduler, by their process group."""
        process = self._running.pop(name if isinstance(name, str) else _name(name), None)
        if process is not None and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def kill_nanny_child(self, number: int) -> None:
        """Kill a host's worker; its nanny starts another."""
        group = self._running[_name(number)].pid
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _is_worker(entry, group):
                os.kill(int(entry.name), signal.SIGKILL)

    def disconnect(self, number: int) -> None:
        """Cut a host off the network."""
        _call("ip", "link", "set", f"v{_name(number)}", "down")

    def reconnect(self, number: int) -> None:
        """Give it the network back."""
        _call("ip", "link", "set", f"v{_name(number)}", "up")

    def stop(self) -> None:
        """Kill everything that runs."""
        for name in list(self._running):
            self.kill(name)

    def wait(self, seconds: float = 5.0) -> None:
        """Give processes the time to find each other."""
        time.sleep(seconds)

    def _start(self, name: str, command: Sequence[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        running = self._running.get(name)
        if running is not None and running.poll() is None:
            return running
        with (self._folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                ["ip", "netns", "exec", name, *command],
                env={**os.environ, **ENVIRONMENT, **environment},
                cwd=self._folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self._running[name]


def _name(number: int) -> str:
    return f"t2nhost{number}"


def _is_worker(entry: Path, group: int) -> bool:
    """Return whether a nanny of this group started a process."""
    try:
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
        return int(fields[2]) == group and b"spawn_main" in (entry / "cmdline").read_bytes()
    except OSError:
        return False


def _call(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, check=check, capture_output=True, text=True)
