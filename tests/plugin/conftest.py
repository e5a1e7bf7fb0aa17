"""Test suites of an imaginary user, with a stand-in for the converter whose models say what shall become of them."""

from __future__ import annotations

import concurrent.futures.process  # noqa: F401  as numpy below: what is loaded twice cannot be pickled
import json
import os
import sys
import time

import pytest

import pytest_t2n.config.engines
import pytest_t2n.run.exports.converter
import t2n_core.parity.check  # noqa: F401  numpy must not be loaded and forgotten again by a run in this process
from tests.starter import FOR_SESSIONS, starter

FAKE_CONFTEST = '''
"""No torch here: a fake model is a text that says what happens, as `pass`, or `crash@0.22.4` for one version only."""

import os
import signal
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import pytest_t2n.config.engines
import pytest_t2n.run.exports.converter
from t2n_core.parity.outcome import ErrorInfo, Status
from t2n_core.parity.check import check_parity
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.engine.protocol import EngineReply
from t2n_core.engine.provision.known import newest_of_lines
from t2n_core.engine.provision.resolved import ResolvedEngine
from t2n_core.errors import EngineResolveError, InputError, LowerError, Origin, UnsupportedOpsError

RELEASES = ["0.21.13", *newest_of_lines()[2:5]]
LOG = Path(__file__).with_name("log.txt")


def note(words):
    with LOG.open("a") as log:
        log.write(f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')} {words}\\n")


def resolve(spec, *, offline=False, cache_dir=None, progress=None, fetch=True, allow_unlisted=None):
    note(f"resolve {spec}")
    engines = []
    for item in spec.split(","):
        matching = [release for release in RELEASES if release == item or release.startswith(f"{item}.")]
        if not matching:
            raise EngineResolveError(f"no release of tract matches {item!r}", hint=f"newest is {RELEASES[-1]}")
        engines.append(ResolvedEngine("wheel", matching[-1], Path("/none/libtract.so"), "ab" * 32, item))
    return engines


def computed(x, what):
    return np.where(x > 0, x * 2, np.float32("nan")) if what == "nan" else x * 2


@dataclass
class FakeEngine:
    version: str
    what: str
    name: str = "tract"
    kept_states: None = None

    def run(self, archive, batches, *, timeout=60.0):
        if self.what in ("crash", "timeout", "oom"):
            words = "thread panicked at core/src/axis.rs:71:9: bad axis -1" if self.what == "crash" else "no answer"
            return EngineReply(self.what, "optimise", words, stderr="stack of the engine")
        outputs = [(computed(batch[0], self.what) + (self.what == "mismatch"),) for batch in batches]
        facts = {"operators": {"OptMatMul": 2, "Scan/Tanh": 1}, "operators_unknown": "", "input": [["x", "T,3,F32"]]}
        if self.what == "unlisted":
            facts = {"operators_unknown": "this engine has no function that lists them"}
        return EngineReply("ok", "run", outputs=tuple(outputs), times={"run": 0.001}, facts=facts)


@dataclass
class Result:
    archive: Path
    target: object
    what: str
    times: dict = field(default_factory=lambda: {"capture": 0.25})
    planned_level: str = ""
    drawn: dict = field(default_factory=dict)

    @property
    def samples(self):
        rng = np.random.default_rng(1)
        inputs = [rng.standard_normal((size, 3)).astype(np.float32) for size in (5, 5, 1, 7)]
        if self.what == "weak":
            inputs = inputs[1:]
        return [Sample((x,), (computed(x, self.what),), {"T": len(x)}) for x in inputs]

    def check_request(self, criteria, timeout=60.0):
        return CheckRequest(self.archive, self.samples, ["y"], criteria, timeout)

    def check_parity(self, criteria, *, timeout=60.0):
        with LOG.with_name("runs.txt").open("a") as runs:
            runs.write(f"{self.what} {self.target['version']}\\n")
        engine = FakeEngine(self.target["version"], self.what)
        return check_parity(engine, self.check_request(criteria, timeout))

    def check_transform(self, *transforms, own=None, timeout=60.0):
        with LOG.with_name("runs.txt").open("a") as runs:
            runs.write(f"{self.what} {self.target['version']} {', '.join(transforms)}\\n")
        if self.what == "uncheckable":
            raise InputError("caches begin empty")
        engine = FakeEngine(self.target["version"], "mismatch" if self.what == "untransformable" else "pass")
        outcome = check_parity(engine, self.check_request(own, timeout))
        if self.what == "untouched":
            error = ErrorInfo.of(outcome.stage, "WeakCheck", "the transform left the model as it was")
            outcome = replace(outcome, status=Status.WEAK, error=error)
        elif not outcome.passed:
            message = f"after the transform `{transforms[0]}`: {outcome.error.message}"
            outcome = replace(outcome, error=replace(outcome.error, message=message))
        return replace(outcome, facts={**outcome.facts, "transform_changed": [self.what != "untouched"]})

    def assert_parity(self, tolerance=None, *, timeout=60.0):
        raise NotImplementedError("the plugin asks for the outcome")


class ModelExport:
    def __init__(self, model, args, kwargs=None, **options):
        note(f"capture {model}")
        if model == "refused":
            raise InputError("these inputs do not fit")
        self.model, self.options = model, options

    def to(self, target, path):
        what, _, version = self.model.partition("@")
        if version not in ("", target["version"]):
            what = "pass"
        note(f"export {self.model} {target['version']} {sorted(target['options'])}")
        if what == "unsupported":
            origin = Origin("aten::fft_fft", "encoder.front", "model.py:12 in forward")
            raise UnsupportedOpsError([LowerError("not supported", origin=origin, hint="use a filter bank")])
        if what == "bug":
            raise KeyError("bug of the converter")
        if what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        Path(path).write_bytes(b"archive" + what.encode() * (what != "pass"))
        return Result(Path(path), target, what)


def tract(version, *, engine, dynamic_axes, **options):
    assert engine.version == version
    return {"version": version, "options": options}


def khronos(version, **options):
    return {"version": version, "options": options}


pytest_t2n.config.engines.load_resolver = lambda: resolve
converter = pytest_t2n.run.exports.converter
converter.load_converter = lambda: converter.Converter(ModelExport, tract, khronos)
'''

EVERYWHERE = ("n0", "n2", pytest.param("no_xdist", marks=pytest.mark.nightly))
"""How a fault is tried: in one process, with two workers, and nightly where xdist is not there at all."""
MODES = {"plain": (), "n0": ("-n", "0"), "n2": ("-n", "2"), "no_xdist": ("-p", "no:xdist")}

_PATIENCE = 120.0
"""Seconds that a run may take; workers that wait for each other would else hang these tests, too."""
OTHER_PLUGINS = ("-p", "no:benchmark", "-p", "no:hypothesispytest")
"""Nothing here needs them, and loading hypothesis takes longer than such a run."""


class Suite:
    """A folder with tests, and what running them left behind."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        pytester.makeconftest(FAKE_CONFTEST)

    def run(
        self,
        *arguments: str,
        engines: str = "0.21,0.22,0.23",
        mode: str = "plain",
        alone: bool = False,
        modules: tuple[str, ...] = FOR_SESSIONS,
    ):
        """Run the suite: in this process where that is possible, which is faster, unless it is to be `alone`.

        `modules` are those that a process of its own has loaded before it starts.
        """
        select = [f"--t2n-tract={engines}"] if engines else []
        all_arguments = (*select, *MODES[mode], *OTHER_PLUGINS, *arguments)
        if alone or mode in ("n2", "no_xdist"):
            return self.start(*all_arguments, modules=modules)
        return self.pytester.runpytest_inprocess(*all_arguments)

    def start(self, *arguments: str, modules: tuple[str, ...] = FOR_SESSIONS) -> pytest.RunResult:
        """Run pytest in a process of its own that has some modules loaded already."""
        stdout, stderr = (self.path / name for name in ("stdout", "stderr"))
        for file in (stdout, stderr):
            file.unlink(missing_ok=True)
        paths = filter(None, [str(self.path), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        command = ["pytest", f"--basetemp={self.path / 'basetemp'}", *arguments]
        files = {"stdout": stdout, "stderr": stderr}
        started = time.monotonic()
        code = starter(modules).run(command, self.path, environment, **files, timeout=_PATIENCE)
        printed = {name: file.read_text("utf-8", "replace") for name, file in files.items()}
        print(" ".join(command), printed["stdout"], sep="\n")
        print(printed["stderr"], file=sys.stderr)
        lines = [text.splitlines() for text in printed.values()]
        return pytest.RunResult(code, *lines, time.monotonic() - started)

    @property
    def log(self) -> list[str]:
        path = self.path / "log.txt"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def runs(self) -> list[str]:
        """What engines were asked, in turn."""
        path = self.path / "runs.txt"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def matrix(self) -> list[dict]:
        return [json.loads(line) for line in (self.path / "site" / "matrix.jsonl").read_text().splitlines()]

    @property
    def cells(self) -> dict[str, dict]:
        cells = [line for line in self.matrix if line["type"] == "cell"]
        cells_by_name = {cell["nodeid"].partition("::")[2]: cell for cell in cells}
        assert len(cells_by_name) == len(cells), "two records of one cell"
        return cells_by_name

    @property
    def statuses(self) -> dict[str, str]:
        return {nodeid: cell["status"] for nodeid, cell in self.cells.items()}


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    # On CI pytest's own summary repeats each failure's whole text: what is counted here must not depend on that.
    surroundings = ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID", "PYTEST_ADDOPTS")
    for name in (*surroundings, "CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    # What the imaginary user's conftest replaces in this process is put back behind the test.
    monkeypatch.setattr("pytest_t2n.config.engines.load_resolver", pytest_t2n.config.engines.load_resolver)
    monkeypatch.setattr(
        "pytest_t2n.run.exports.converter.load_converter", pytest_t2n.run.exports.converter.load_converter
    )
    return Suite(pytester)


@pytest.fixture(params=list(MODES))
def mode(request: pytest.FixtureRequest) -> str:
    return request.param
