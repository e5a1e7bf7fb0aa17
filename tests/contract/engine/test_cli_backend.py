"""`path:/to/tract`, against a script that takes the flags and answers like the command line's source says."""

from __future__ import annotations

import hashlib
import json
import stat
import sys
import tarfile
import textwrap
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2n_core.engine import engine_for, resolve_engines
from t2n_core.engine.provision import store
from t2n_core.engine.tract.cli_backend import CliEngine
from t2n_core.errors import EngineProvisionError, InputError
from tests.releases import NEWEST

SCRIPT = """
    #!{python} -P
    import json, os, sys, time
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        print({version!r})
        sys.exit()
    if arguments == ["--help"]:
        print("--nnef-tract-core --nnef-tract-extra")
        sys.exit()
    with open({log!r}, "a") as file:
        file.write(json.dumps([arguments, os.environ["TRACT_LOG"], os.environ["RUST_BACKTRACE"]]) + "\\n")
    import numpy as np
    options = dict(a.split("=", 1) for a in arguments if a.startswith("--") and "=" in a)
    inputs = dict(np.load(options["--input-from-bundle"]))
    log = lambda text: print(text, file=sys.stderr, flush=True)
    {behaviour}
    np.savez(options["--save-outputs"], zz=outputs[0], aa=outputs[1])
"""
RUN = """
    log("[INFO  tract] Model \\"m\\" loaded")
    log("[INFO  tract] Model ready")
    outputs = [inputs["x"] * 2, inputs["file"] + 1]
"""
GRAPH = "version 1.0;\n\ngraph net( x, file ) -> ( y, z )\n{\n}\n"
X = np.random.default_rng(1).normal(size=(2, 3)).astype("f4")
Y = np.arange(-2, 3, dtype="i8")
Make = Callable[..., CliEngine]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "graph.nnef").write_text(GRAPH)
    return folder


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def make(behaviour: str = RUN, version: str = "tract 0.23.6-pre") -> CliEngine:
        binary = tmp_path / "tract"
        lines = textwrap.dedent(behaviour).strip().replace("\n", "\n    ")
        text = SCRIPT.format(python=sys.executable, version=version, log=str(tmp_path / "log"), behaviour=lines)
        binary.write_text(textwrap.dedent(text).lstrip())
        binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
        (resolved,) = resolve_engines(f"path:{binary}", offline=True, cache_dir=tmp_path / "cache")
        assert resolved.sha256 == hashlib.sha256(binary.read_bytes()).hexdigest()
        engine = engine_for(resolved)
        assert isinstance(engine, CliEngine)
        return engine

    return make


def calls(tmp_path: Path) -> list[Any]:
    return [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]


def test_each_batch_is_run_with_the_flags_of_this_version(make: Make, archive: Path, tmp_path: Path) -> None:
    engine = make()
    assert (engine.name, engine.version, engine.resolved.label) == ("tract", "0.23.6rc0", "path-0.23.6rc0")
    reply = engine.run(archive, [[X, Y], [-X, Y * 3]], symbols={"S": 4})
    assert (reply.status, reply.stage, reply.message) == ("ok", "run", "")
    for (first, second), (x, y) in zip(reply.outputs, [(X, Y), (-X, Y * 3)], strict=True):
        np.testing.assert_array_equal(first, x * 2)
        np.testing.assert_array_equal(second, y + 1)
        assert (first.dtype, second.dtype) == (np.float32, np.int64)
    (arguments, log, backtrace), _ = calls(tmp_path)
    assert arguments[:3] == [str(archive), "-f", "nnef"]
    assert arguments[3:-3] == [
        "--nnef-tract-core",
        "--nnef-tract-onnx",
        "--nnef-tract-pulse",
        "--nnef-extended-identifier",
        "--nnef-tract-extra",
        "-O",
        "--set",
        "S=4",
    ]
    assert arguments[-3] == "run"
    assert (log, backtrace) == ("cli=info,tract=info", "0")


@pytest.mark.parametrize("suffix", ["tar", "tgz"])
def test_input_names_come_from_the_archive(suffix: str, make: Make, archive: Path, tmp_path: Path) -> None:
    packed = tmp_path / f"m.nnef.{suffix}"
    with tarfile.open(packed, "w:gz" if suffix == "tgz" else "w") as tar:
        tar.add(archive / "graph.nnef", "./graph.nnef")
    assert make().run(packed, [[X, Y]]).status == "ok"


@pytest.mark.parametrize(("stage", "flags"), [("raw", ["--pass", "load"]), ("declutter", ["--pass", "declutter"])])
def test_earlier_stages(stage: Any, flags: list[str], make: Make, archive: Path, tmp_path: Path) -> None:
    make().run(archive, [[X, Y]], stage=stage)
    ((arguments, _, _),) = calls(tmp_path)
    assert arguments[-5:-3] == flags
    assert "-O" not in arguments


def test_halves_travel_as_floats_and_are_cast_back_by_the_binary(make: Make, archive: Path, tmp_path: Path) -> None:
    reply = make().run(archive, [[X.astype("f2"), Y]])
    assert reply.outputs[0][0].dtype == np.float32
    np.testing.assert_array_equal(reply.outputs[0][0], X.astype("f2").astype("f4") * 2)
    assert calls(tmp_path)[0][0][-1] == "--allow-float-casts"


ERROR = """
    log("[2026-01-01 INFO  tract] Model \\"m\\" loaded")
    log("[2026-01-01 ERROR tract] Translating node")
    log("Caused by:")
    log("    no such thing")
    sys.exit(1)
"""
PANIC = """
    log("thread 'main' panicked at core/src/a.rs:1:2:")
    log("index out of bounds")
    log("note: run with `RUST_BACKTRACE=1`")
    sys.exit(101)
"""


@pytest.mark.parametrize(
    ("behaviour", "status", "stage", "message"),
    [
        (ERROR, "error", "optimise", "[2026-01-01 ERROR tract] Translating node\nCaused by:\n    no such thing"),
        (PANIC, "crash", "load", "thread 'main' panicked at core/src/a.rs:1:2: index out of bounds"),
        ("os.kill(os.getpid(), 11)", "crash", "load", "died of SIGSEGV"),
        ("os.kill(os.getpid(), 9)", "crash", "load", "killed by SIGKILL from outside"),
        ("log('memory allocation of 99 bytes failed'); os.abort()", "oom", "load", "memory allocation of 99 bytes"),
        ("sys.exit(0)", "crash", "run", "it succeeded but wrote no outputs"),
        ("open(options['--save-outputs'], 'w').close(); sys.exit(0)", "crash", "run", "wrote no outputs"),
        ("sys.exit(3)", "crash", "load", "exited with status 3"),
        ("os.kill(os.getpid(), 15)", "crash", "load", "SIGTERM"),
        ("os.kill(os.getpid(), 10)", "crash", "load", "SIGUSR1"),
        ("log('Model ready'); os.kill(os.getpid(), 19)", "timeout", "run", "did not answer in time"),
        ("log('Model ready'); time.sleep(60)", "timeout", "run", "did not answer in time"),
    ],
)
def test_failures(behaviour: str, status: str, stage: str, message: str, make: Make, archive: Path) -> None:
    reply = make(behaviour).run(archive, [[X, Y]], timeout=3.0 if status == "timeout" else 60.0)
    assert (reply.status, reply.stage, reply.outputs) == (status, stage, ())
    assert message in reply.message


def test_a_job_that_keeps_going_says_which_batches_were_refused(make: Make, archive: Path) -> None:
    refusing = """
        if inputs["x"][0, 0] > 5:
            log("Model ready")
            log("ERROR tract] too large")
            sys.exit(1)
        outputs = [inputs["x"], inputs["file"]]
    """
    reply = make(refusing).run(archive, [[X + 9, Y], [X, Y], [X]], keep_going=True)
    assert (reply.status, reply.stage) == ("ok", "run")
    assert reply.refused == {0: "Model ready\nERROR tract] too large", 2: "1 inputs passed, the model takes 2"}
    assert [len(outputs) for outputs in reply.outputs] == [0, 2, 0]


def test_memory_is_bounded(make: Make, archive: Path) -> None:
    behaviour = "try: np.ones(1 << 31)\nexcept MemoryError: log('memory allocation of 9 bytes failed'); os.abort()"
    reply = make(behaviour).run(archive, [[X, Y]], memory_limit=4 << 30)
    assert reply.status == "oom"


HELD = """\
    import subprocess
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"], start_new_session=True)
"""
DOUBLE = "outputs = [inputs['x'] * 2, inputs['file']]"


def test_a_process_that_holds_stderr_is_not_waited_for(make: Make, archive: Path) -> None:
    started = time.monotonic()
    reply = make(f"{HELD}    {DOUBLE}").run(archive, [[X, Y]], timeout=20.0)
    assert (reply.status, time.monotonic() - started < 15.0) == ("ok", True)
    started = time.monotonic()
    reply = make(f"{HELD}    time.sleep(60)").run(archive, [[X, Y]], timeout=2.0)
    assert (reply.status, time.monotonic() - started < 15.0) == ("timeout", True)


def test_a_flood_of_stderr_takes_no_memory(make: Make, archive: Path) -> None:
    behaviour = "for _ in range(4000): os.write(2, bytes(100_000))\nsys.exit(1)"
    tracemalloc.start()
    try:
        reply = make(behaviour).run(archive, [[X, Y]])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (reply.status, peak) == ("error", pytest.approx(0, abs=20_000_000))


@pytest.mark.parametrize(
    "behaviour",
    [
        "os.mkfifo(options['--save-outputs']); sys.exit(0)",
        "open(options['--save-outputs'], 'wb').write(b'hello'); sys.exit(0)",
        "np.save(open(options['--save-outputs'], 'wb'), np.zeros((2, 3))); sys.exit(0)",
        "np.savez(open(options['--save-outputs'], 'wb'), y=np.array([len], dtype=object)); sys.exit(0)",
    ],
)
def test_outputs_that_are_none(behaviour: str, make: Make, archive: Path) -> None:
    reply = make(behaviour).run(archive, [[X, Y]], timeout=10.0)
    assert (reply.status, reply.stage) == ("crash", "run")
    assert "wrote no outputs" in reply.message


def test_a_lower_limit_of_the_shell_stays(make: Make, archive: Path) -> None:
    import resource

    engine = make(DOUBLE)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, hard))
    try:
        assert engine.run(archive, [[X, Y]]).status == "ok"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_wrong_use(make: Make, archive: Path, tmp_path: Path) -> None:
    engine = make()
    assert engine.run(archive, [[X]]).message == "1 inputs passed, the model takes 2"
    (tmp_path / "empty").mkdir()
    reply = engine.run(tmp_path / "empty", [[X]])
    assert (reply.status, reply.stage) == ("error", "load")
    assert "graph.nnef" in reply.message
    with pytest.raises(InputError, match="at least one batch"):
        engine.run(archive, [])
    engine.close()


def test_what_is_no_tract_is_refused(make: Make, tmp_path: Path) -> None:
    with pytest.raises(EngineProvisionError, match="not a tract version"):
        make(version="something 1.0")
    for path, reason in [(tmp_path / "nothing", "cannot be read"), (tmp_path / "text", "does not work")]:
        (tmp_path / "text").write_text("hello")
        with pytest.raises(EngineProvisionError, match=reason):
            resolve_engines(f"path:{path}", cache_dir=tmp_path / "cache")


def test_binaries_come_after_wheels_and_once(
    make: Make, quick_index: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "known_wheels", dict)  # its wheel is not the released one
    quick_index.add(NEWEST)
    binary = make().resolved.library
    engines = resolve_engines(f"path:{binary},latest,path:{binary}", cache_dir=tmp_path / "cache")
    assert [(e.kind, e.label) for e in engines] == [("wheel", NEWEST), ("cli", "path-0.23.6rc0")]


def test_a_binary_that_changed_since_it_was_chosen_is_not_believed(make: Make, archive: Path, tmp_path: Path) -> None:
    engine = make()
    assert engine.run(archive, [[X, Y]]).status == "ok"
    binary = tmp_path / "tract"
    binary.write_text(binary.read_text().replace("* 2", "* 3"))
    reply = engine.run(archive, [[X, Y]])
    assert (reply.status, reply.stage, reply.outputs) == ("error", "load", ())
    assert "tract has changed: it has the sha256" in reply.message
    assert len(calls(tmp_path)) == 1, "what changed is not run"
    binary.unlink()
    assert "tract cannot be read" in engine.run(archive, [[X, Y]]).message
    assert make().run(archive, [[X, Y]]).status == "ok"


def test_a_binary_that_changes_while_it_runs_is_not_believed(make: Make, archive: Path) -> None:
    changing = f"open(__file__, 'a').write('#')\n{DOUBLE}"
    reply = make(changing).run(archive, [[X, Y]])
    assert (reply.status, reply.stage, reply.outputs) == ("error", "load", ())
    assert "has changed" in reply.message


def test_a_script_is_told_from_a_program(make: Make) -> None:
    script = make().resolved
    assert script.is_script
    assert not replace(script, library=Path(sys.executable).resolve()).is_script
    assert replace(script, library=Path("/none")).is_script
