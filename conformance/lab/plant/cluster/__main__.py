"""Judge a bundle on hosts of this machine while they are killed and cut off, and compare with a local run.

    python -m conformance.lab.plant.cluster --hosts 4 --cases 200          # as root, on Linux
    python -m conformance.lab.plant.cluster --cases 2500 --kill-every 3    # a worker, a host or the client at random

Prints a line for each fault: lost cells, duplicate records, whether the others equal the local run's byte for byte,
times and platforms aside, and what is left: processes, and temporary files that the next session does not remove. Then
comes the most memory and the most open files of a process of each kind. Exits with 1 if anything is lost, duplicate,
different or left, or if a process had more than 100 open files.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conformance.lab.command import add_tract, command_parser
from conformance.lab.plant.cluster.bundle import write_bundle
from conformance.lab.plant.cluster.hosts import CLIENT, SCHEDULER, Hosts, why_not
from conformance.lab.plant.cluster.run import Run
from conformance.lab.plant.cluster.watch import Watch, left_behind
from pytest_t2n.cli import main as t2n
from t2n_core.engine.provision.store import default_cache_dir

_MOST_HANDLES = 100
Fault = Callable[[Hosts, "Run"], None]


def no_fault(hosts: Hosts, run: Run) -> None:
    """Let it run."""


def host_killed(hosts: Hosts, run: Run) -> None:
    """Kill a host for good."""
    run.after(20)
    hosts.kill(1)


def network_lost(seconds: float) -> Fault:
    """Return the fault of a host that has no network for a while."""

    def fault(hosts: Hosts, run: Run) -> None:
        run.after(20)
        hosts.disconnect(0)
        time.sleep(seconds)
        hosts.reconnect(0)

    return fault


def workers_killed(hosts: Hosts, run: Run) -> None:
    """Kill the worker under each nanny, one after the other."""
    for number in range(hosts.count):
        run.after(20 * (number + 1))
        hosts.kill_nanny_child(number)


def client_killed(hosts: Hosts, run: Run) -> None:
    """Kill the client, and go on."""
    run.after(20)
    hosts.kill(CLIENT)
    run.start("--resume")


def scheduler_killed(hosts: Hosts, run: Run) -> None:
    """Kill the scheduler, and go on with a new cluster."""
    run.after(20)
    hosts.kill(SCHEDULER)
    run.end()
    for number in range(hosts.count):
        hosts.kill(number)
    hosts.start()
    hosts.wait()
    run.start("--resume")


def killed_every(seconds: float, seed: int = 5) -> Fault:
    """Return the fault of a kill from time to time: of a worker, a host, or the client, which then goes on.

    A run that ended early, or without some cells, is taken up once more when the kills are over.
    """

    def fault(hosts: Hosts, run: Run) -> None:
        rng = random.Random(seed)
        kills: Counter[str] = Counter()
        while not run.is_concluded:
            if not run.is_running:  # as after a while without any worker
                run.start("--resume")
            time.sleep(seconds)
            victim, number = rng.choice(("worker", "worker", "host", "client")), rng.randrange(hosts.count)
            kills[victim] += 1
            if victim == "worker":
                hosts.kill_nanny_child(number)
            elif victim == "host":
                hosts.kill(number)
                hosts.start_host(number)
            elif run.is_running:
                hosts.kill(CLIENT)
                run.start("--resume")
            if kills.total() % 10 == 0:
                print(f"  {run.cells} cells, {kills.total()} kills", flush=True)
        run.end()
        print(f"  {dict(kills)} killed; {run.not_run} cells named as not run")
        hosts.start()
        hosts.wait()
        run.start("--resume")

    return fault


FAULTS: dict[str, Fault] = {
    "none": no_fault,
    "a host killed": host_killed,
    "cut for 10 s": network_lost(10),
    "cut for 60 s": network_lost(60),
    "workers killed": workers_killed,
    "the client killed": client_killed,
    "the scheduler killed": scheduler_killed,
}


def evidence(report: Path) -> list[str]:
    """Return the cells and graphs of a report in order, without what depends on time and place."""
    lines = []
    for line in (report / "matrix.jsonl").read_text().splitlines():
        record: dict[str, Any] = json.loads(line)
        if record["type"] in ("cell", "graph"):
            if record.get("facts", {}).pop("host", None) and not record["facts"]:
                del record["facts"]
            lines.append(json.dumps({k: v for k, v in record.items() if k not in ("times", "platform", "exported")}))
    return lines


def compare_runs(near: list[str], far: list[str]) -> tuple[str, bool]:
    """Return how a run on hosts differs from the local one, as text, and whether that is allowed."""
    counts = Counter(json.loads(line).get("nodeid", line) for line in far)
    planned = {json.loads(line).get("nodeid", line) for line in near}
    lost, double = len(planned - set(counts)), sum(count > 1 for count in counts.values())
    lost += sum(json.loads(line).get("status") == "not_run" for line in far)
    same = near == far
    for line, other in zip(near, far, strict=False):
        if line != other:
            print(line, other, sep="\n")
            break
    return f"{lost} lost, {double} double, {'the same bytes' if same else 'OTHER BYTES'}", same and not lost + double


def main() -> int:
    """Try each fault, and return the exit status."""
    parser = command_parser("conformance.lab.plant.cluster", __doc__)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--cases", type=int, default=200)
    add_tract(parser, "0.21,0.23")
    parser.add_argument("--fault", action="append", choices=list(FAULTS))
    parser.add_argument("--kill-every", type=float, metavar="SECONDS", help="instead of the faults")
    options = parser.parse_args()
    faults = {name: FAULTS[name] for name in options.fault or FAULTS}
    if options.kill_every:
        faults = {f"a kill every {options.kill_every:g} s": killed_every(options.kill_every)}
    if reason := why_not():
        print(f"skipped: {reason}")
        return 0
    good = True
    with TemporaryDirectory(prefix="t2n-hosts-") as scratch:
        folder = Path(scratch)
        bundle = folder / "bundle"
        write_bundle(bundle, options.cases)
        select = ["--tract", options.tract, "--offline", "--cache-dir", str(default_cache_dir())]
        t2n(["matrix", "run", "--bundle", str(bundle), *select, "--report", str(folder / "near")])
        near = evidence(folder / "near")
        with Hosts(folder, bundle, options.hosts) as hosts:
            for index, name in enumerate(faults):
                hosts.start()
                hosts.wait()
                started = time.monotonic()
                run = Run(hosts, bundle, folder / f"far-{index}", options.tract)
                with Watch(folder) as watch:
                    run.start()
                    faults[name](hosts, run)
                    run.end()
                seconds = time.monotonic() - started
                hosts.stop()
                words, right = compare_runs(near, evidence(folder / f"far-{index}"))
                left = left_behind(folder)
                print(f"{name}: {words}, {'; '.join(left) or 'nothing left'}, {seconds:.0f} s", flush=True)
                print(f"  at most: {watch}", flush=True)
                good = good and right and not left and max(watch.handles.values()) <= _MOST_HANDLES
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
