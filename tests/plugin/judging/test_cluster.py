"""Bundles judged on a Dask cluster: the records of a local run, whatever dies on the way."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="pip install 'pytest-t2n[dask]'")

from pytest_t2n.cli import main
from tests.plugin.judging.bundles import (
    CACHE,
    GRAPH,
    HANGS,
    ON_LINUX,
    BundleFolder,
    cells,
    evidence,
    processes_with,
    records,
    start,
    wait_for_cells,
    words,
)
from tests.releases import RECENT

ENGINES_IN_CACHE = ("0.21.19", RECENT)

pytestmark = ON_LINUX
ROOT = Path(__file__).parents[3]


class Cluster:
    """A scheduler and workers on this machine, each in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self.start_scheduler()

    def start_scheduler(self):
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard", name="scheduler"
        )
        return self.scheduler

    def add_worker(self, *given, **environment):
        name = f"worker-{len(self.workers)}"
        limits = ["--nthreads", "1", "--no-dashboard", "--memory-limit", "0", "--local-directory", str(self.folder)]
        limits += ["--name", name]
        self.workers.append(self._start("worker", self.address, *limits, *given, name=name, **environment))

    def _start(self, *arguments, name, **environment):
        defaults = {
            "PYTHONPATH": str(ROOT),
            "T2N_CACHE_DIR": CACHE,
            "MARK": f"{self.folder}-{name}",
            "TMPDIR": str(self.folder),
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            arguments = [sys.executable, "-m", "dask", *arguments]
            more = {"cwd": self.folder, "start_new_session": True, "env": {**os.environ, **defaults, **environment}}
            return subprocess.Popen(arguments, stdout=log, stderr=log, **more)

    def wait(self):
        """Wait until all workers are there."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(len(self.workers), timeout=60)

    def close(self):
        for process in (*self.workers, self.scheduler):
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    (tmp_path / "cluster").mkdir()
    made = Cluster(tmp_path / "cluster")
    yield made
    made.close()


@pytest.fixture
def bundle(tmp_path):
    made = BundleFolder(tmp_path / "bundle")
    for number in range(20):
        made.add(f"n{number}", ("x * 2.0", "x * 2.01", "x + x", "nothing(x)")[number % 4], "0.21.19")
    made.add("damaged", samples="samples/none.npz")
    made.add("outside", archive="../secret")
    folder = made.folder / "archives" / "folder"
    folder.mkdir()
    (folder / "graph.nnef").write_text(GRAPH % "x * 2.0")
    made.add("folder", archive="archives/folder")
    made.close()
    return made.folder


def on_cluster(folder, cluster, *given, **more):
    return words(folder, "--dask", cluster.address, *given, **more)


def without_place(report):
    lines = evidence(report)
    for line in lines:
        if line.get("facts", {}).pop("host", None) and not line["facts"]:
            del line["facts"]
    return [{key: value for key, value in line.items() if key not in ("platform", "exported")} for line in lines]


def test_a_cluster_leaves_the_records_of_a_local_run(bundle, cluster, tmp_path, capsys):
    for _ in range(2):
        cluster.add_worker()
    cluster.wait()
    both = f"0.21.19,{RECENT}"
    assert main(on_cluster(bundle, cluster, "--report", str(tmp_path / "far"), engines=both)) == 1
    assert main(words(bundle, "--report", str(tmp_path / "near"), engines=both)) == 1
    assert without_place(tmp_path / "far") == without_place(tmp_path / "near")
    hosts = {cell["facts"]["host"] for cell in cells(tmp_path / "far").values()}
    assert hosts == {"worker-0", "worker-1"}, "each record says who judged"
    run = records(tmp_path / "far")[0]
    keys = {platform["key"] for platform in run["platforms"]}
    assert {cell["platform"] for cell in cells(tmp_path / "far").values()} <= keys
    assert {engine["platform"] for engine in run["engines"]} <= keys
    assert list(cluster.folder.glob("t2n-*")) == [], "no temporary folder is left on a host"


def test_files_come_from_a_store_where_one_is_named(bundle, cluster, tmp_path, capsys):
    cluster.add_worker(T2N_CACHE_DIR=str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "engines").symlink_to(Path(CACHE) / "engines")
    (tmp_path / "cache" / "index.json").symlink_to(Path(CACHE) / "index.json")
    options = ("--source", bundle.as_uri(), "--case", "*n*")
    assert main(on_cluster(bundle, cluster, *options, "--report", str(tmp_path / "far"), engines="0.21.19")) == 1
    statuses = [cell["status"] for name, cell in cells(tmp_path / "far").items() if name.startswith("n")]
    assert statuses == ["pass", "mismatch", "pass", "error"] * 5
    assert len(list((tmp_path / "cache" / "bundles" / "archives").iterdir())) == 4


def test_a_host_that_cannot_judge_is_left_out(bundle, cluster, tmp_path, capsys):
    cluster.add_worker()
    cluster.add_worker(T2N_CACHE_DIR=str(tmp_path / "empty"))
    cluster.wait()
    options = ("--report", str(tmp_path / "far"), "--case", "*n1*")
    assert main(on_cluster(bundle, cluster, *options, engines="0.21.19")) == 1
    stderr = capsys.readouterr().err
    assert "is left out: --t2n-tract=0.21.19: offline, and " in stderr
    assert len(cells(tmp_path / "far")) == 11
    assert not any(cell["status"] == "not_run" for cell in cells(tmp_path / "far").values())


def test_the_client_updates_what_it_knows_of_the_scheduler_while_units_are_sent(bundle, cluster, tmp_path):
    """Its own copy has no workers, and must not be taken for the state of the cluster."""
    import dask

    cluster.add_worker()
    cluster.add_worker(T2N_CACHE_DIR=str(tmp_path / "empty"))
    cluster.wait()
    options = ("--report", str(tmp_path / "far"))
    with dask.config.set({"distributed.client.scheduler-info-interval": "1ms"}):
        assert main(on_cluster(bundle, cluster, *options, engines="0.21.19")) == 1
    assert len(cells(tmp_path / "far")) == 23


def test_a_worker_that_is_killed_costs_no_cell(cluster, tmp_path):
    made = BundleFolder(tmp_path / "bundle")
    for number in range(30):
        made.add(f"n{number}", HANGS if number % 6 == 5 else "x * 2.0")
    made.close()
    for _ in range(2):
        cluster.add_worker()
    cluster.wait()
    report = tmp_path / "site"
    command = on_cluster(made.folder, cluster, "--report", str(report), timeout=1)
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest_t2n.cli", *command], env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    for count, worker in ((4, 0), (12, 1)):
        wait_for_cells(report, count)
        processes = processes_with(f"MARK={cluster.folder}-worker-{worker}")
        victims = [pid for pid, line in processes.items() if "spawn_main" in line]
        assert victims, processes
        os.kill(victims[-1], signal.SIGKILL)
    assert process.wait(100) == 1
    statuses = [cell["status"] for cell in cells(report).values()]
    assert statuses == ["timeout" if number % 6 == 5 else "pass" for number in range(30)]


def test_a_run_goes_on_with_a_new_cluster(cluster, tmp_path, capsys):
    made = BundleFolder(tmp_path / "bundle")
    for number in range(20):
        made.add(f"n{number}", HANGS if number % 5 == 4 else "x * 2.0")
    made.close()
    cluster.add_worker()
    report = tmp_path / "site"
    command = on_cluster(made.folder, cluster, "--report", str(report), timeout=2)
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest_t2n.cli", *command],
        env={**os.environ, "PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s"},
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for_cells(report, 6)
    os.killpg(cluster.scheduler.pid, signal.SIGKILL)
    stderr = process.communicate(timeout=100)[1]
    assert process.returncode == 1
    assert "the scheduler of the cluster is gone" in stderr
    assert "--resume" in stderr
    earlier_cells = cells(report)
    assert 6 <= len(earlier_cells) < 20
    assert records(report)[-1]["type"] == "cell", "such a file is not whole"
    cluster.scheduler.wait()
    cluster.start_scheduler()
    cluster.add_worker()
    assert main([*command, "--resume"]) == 1
    assert f"--resume: {len(earlier_cells)} cells kept" in capsys.readouterr().out
    final_cells = cells(report)
    assert [cell["status"] for cell in final_cells.values()] == ["timeout" if n % 5 == 4 else "pass" for n in range(20)]
    assert {name: final_cells[name] for name in earlier_cells} == earlier_cells


def test_a_host_that_comes_later_and_cannot_judge_loses_nothing(cluster, tmp_path):
    made = BundleFolder(tmp_path / "bundle")
    for number in range(12):
        made.add(f"n{number}", HANGS if number % 2 else "x * 2.0")
    made.close()
    cluster.add_worker()
    cluster.wait()
    report = tmp_path / "site"
    command = on_cluster(made.folder, cluster, "--report", str(report), timeout=2)
    process = start(*command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=None, stderr=None)
    wait_for_cells(report, 1)
    cluster.add_worker(T2N_CACHE_DIR=str(tmp_path / "empty"))
    assert process.wait(100) == 1
    report_cells = cells(report)
    assert [cell["status"] for cell in report_cells.values()] == ["timeout" if n % 2 else "pass" for n in range(12)]
    assert {cell["facts"]["host"] for cell in report_cells.values()} == {"worker-0"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ("--dask", "tcp://10.1.2.3:8786"),
            "anyone who can reach the port of such a cluster can run code on its workers",
        ),
        (("--dask", "10.1.2.3:8786"), "anyone who can reach the port"),
        (("--dask", "tcp://127.0.0.1:1", "--tract", "path:/bin/true"), "is not on others"),
        (("--dask", "tcp://127.0.0.1:8786", "--dask-resources", "arm"), "is not NAME=NUMBER"),
    ],
)
def test_what_is_refused(bundle, given, message, capsys):
    with suppress(SystemExit):
        assert main(words(bundle, *given)) == 1
    assert message in capsys.readouterr().err


def test_large_files_do_not_pass_the_scheduler(cluster, tmp_path, capsys):
    made = BundleFolder(tmp_path / "bundle")
    made.add("large", archive=made.file("archives", ".tar", os.urandom(17 << 20)))
    made.close()
    cluster.add_worker()
    assert main(on_cluster(made.folder, cluster)) == 1
    assert "have more than 16 MB" in capsys.readouterr().err


def test_workers_with_a_resource_judge(bundle, cluster, tmp_path, capsys):
    cluster.add_worker()
    cluster.add_worker("--resources", "arm=1")
    cluster.wait()
    options = ("--dask-resources", "arm=1", "--case", "*n1*")
    assert main(on_cluster(bundle, cluster, *options, engines="0.21.19")) == 1
    assert "1 hosts, 1 workers" in capsys.readouterr().err
    assert main(on_cluster(bundle, cluster, "--dask-resources", "gpu=1")) == 1
    assert "no worker of the cluster has gpu=1" in capsys.readouterr().err
