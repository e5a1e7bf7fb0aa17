"""Every error class has its outcome, every outcome its error, and fingerprints group by cause."""

from __future__ import annotations

import enum
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from t2n_core import errors
from t2n_core.parity.outcome import ErrorInfo, Outcome, Stage, Status, fingerprint, plain
from tests.releases import NEWEST

ORIGIN = errors.Origin("aten::fft_fft", "encoder.front", "model.py:12 in forward")


@pytest.mark.parametrize(
    ("exc", "status", "stage"),
    [
        (errors.InputError("x"), "error", "input"),
        (errors.CaptureError("x"), "error", "capture"),
        (errors.LowerError("x"), "error", "lower"),
        (errors.UnsupportedOpsError([errors.LowerError("x", origin=ORIGIN)]), "unsupported", "lower"),
        (errors.SpecError("x"), "unsupported", "spec"),
        (errors.WriteError("x"), "error", "write"),
        (errors.EngineResolveError("x"), "error", "setup"),
        (errors.EngineLoadError("x"), "error", "load"),
        (errors.EngineOptimiseError("x"), "error", "optimise"),
        (errors.EngineRunError("x"), "error", "run"),
        (errors.EngineCrash("x"), "crash", "run"),
        (errors.EngineTimeout("x"), "timeout", "run"),
        (errors.EngineOutOfMemory("x"), "oom", "run"),
        (errors.ParityError("x"), "mismatch", "compare"),
    ],
)
def test_each_error_has_its_outcome_and_is_raised_again(exc, status, stage):
    outcome = Outcome.from_error(exc, "setup")
    assert (outcome.status, outcome.stage) == (status, stage)
    with pytest.raises(type(exc)) as caught:
        outcome.raise_for_failure()
    assert caught.value is exc


def test_an_error_that_knows_a_later_stage():
    crash = errors.EngineCrash("panicked")
    crash.stage = "load"
    assert Outcome.from_error(crash).stage is Stage.LOAD


def test_unsupported_ops_carry_op_module_source_and_hint():
    problem = errors.LowerError("not supported on tract", origin=ORIGIN, hint="rewrite it")
    text = Outcome.from_error(errors.UnsupportedOpsError([problem], target="tract 0.21.19")).describe()
    for part in (
        "unsupported at stage `lower`",
        "aten::fft_fft",
        "encoder.front",
        "model.py:12 in forward",
        "rewrite it",
    ):
        assert part in text


def test_an_unknown_exception_is_an_error_where_it_came():
    try:
        {}["missing"]
    except KeyError as exc:
        outcome = Outcome.from_error(exc, Stage.WRITE, engine=f"tract {NEWEST}")
    assert (outcome.status, outcome.stage, outcome.error.error_class) == (Status.ERROR, Stage.WRITE, "KeyError")
    assert "test_outcome.py" in outcome.error.source
    assert "KeyError: 'missing'" in outcome.error.details


def test_a_warning_that_a_filter_makes_an_error_is_no_fault_of_the_export():
    outcome = Outcome.from_error(errors.OptionWarning("weights had a partial effect"), "lower")
    assert outcome.error.message == (
        "your filterwarnings turned OptionWarning into an error: weights had a partial effect"
    )
    assert outcome.error.hint.startswith("`ignore::t2n_core.OptionWarning` lets it through")
    assert (outcome.error.details, outcome.error.source) == ("", "")


@pytest.mark.filterwarnings("error::FutureWarning")
def test_a_warning_of_the_model_that_a_filter_makes_an_error_has_its_line():
    try:
        warnings.warn("an old name", FutureWarning, stacklevel=1)
    except FutureWarning as error:
        outcome = Outcome.from_error(error, "input")
    assert outcome.error.message == "your filterwarnings turned FutureWarning into an error: an old name"
    assert "`ignore::FutureWarning`" in outcome.error.hint
    assert "test_outcome.py" in outcome.error.source


def test_an_outcome_without_its_exception_raises_the_class_of_its_stage():
    info = ErrorInfo.of("spec", "SpecError", "no such operator")
    with pytest.raises(errors.SpecError, match="no such operator"):
        Outcome(Status.UNSUPPORTED, Stage.SPEC, error=info).raise_for_failure()


def test_passes_and_skips_do_not_raise():
    for status in (Status.PASS, Status.SKIP):
        Outcome(status, Stage.COMPARE).raise_for_failure()
    with pytest.raises(errors.ParityError):
        Outcome(Status.NOT_RUN, Stage.COMPARE).raise_for_failure()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("failed to read /tmp/a1/model.tar", "failed to read /home/me/x/model.tar"),
        ("Clashing resolution for expression. 8=8 != 9.", "Clashing resolution for expression. 16=16 != 7."),
        ("got 3,8,F64, expected 3,8,F32", "got 3,8,12,F64, expected 3,8,12,F32"),
        ("panicked at core/src/axis.rs:71:9:\nbad axis -1", "panicked at core/src/axis.rs:80:13:\nbad axis -2"),
        ("address 0x7ffe12", "address 0xdeadbeef"),
    ],
)
def test_fingerprints_ignore_numbers_paths_and_shapes(one, other):
    assert fingerprint("run", "EngineRunError", one) == fingerprint("run", "EngineRunError", other)


def test_fingerprints_tell_causes_apart():
    fingerprints = {
        fingerprint("run", "EngineRunError", "bad axis"),
        fingerprint("load", "EngineRunError", "bad axis"),
        fingerprint("run", "EngineCrash", "bad axis"),
        fingerprint("run", "EngineRunError", "bad rank"),
    }
    assert len(fingerprints) == 4


def test_fingerprints_of_long_messages_take_no_time():
    started = time.process_time()
    for words in ("A", "A/", "1,", "N, ", "a.b+", "/", " "):
        fingerprint("run", "E", words * 200_000)
    assert time.process_time() - started < 5.0


def test_messages_have_a_length():
    info = ErrorInfo.of("run", "E", "A" * 10_000_000, details="b" * 10_000_000)
    assert len(info.message) < 110_000
    assert info.message.endswith("A … (9900000 more characters)")
    assert len(info.details) < 110_000
    outcome = Outcome.from_error(ValueError("x" * 10_000_000))
    assert len(outcome.describe()) < 500_000


class Colour(enum.Enum):
    RED = np.float32(0.5)


def test_plain_json_types_only():
    value = {
        1: np.int64(7),
        "f": np.float64("nan"),
        "b": np.bool_(True),
        "path": Path("a/b"),
        "enum": Colour.RED,
        "stage": Stage.RUN,
        "array": np.arange(3, dtype=np.float16),
        "tuple": (1, -np.inf),
        "set": {"b", "a"},
    }
    result = plain(value)
    assert json.loads(json.dumps(result, allow_nan=False)) == {
        "1": 7,
        "f": "nan",
        "b": True,
        "path": "a/b",
        "enum": 0.5,
        "stage": "run",
        "array": [0.0, 1.0, 2.0],
        "tuple": [1, "-inf"],
        "set": ["a", "b"],
    }
    assert type(result["stage"]) is str
    assert type(result["f"]) is str


def test_times_are_merged():
    outcome = Outcome(Status.PASS, Stage.COMPARE, times={"load": 1.0}).with_times({"load": 9.0, "capture": 2.0})
    assert outcome.times == {"load": 1.0, "capture": 2.0}


class MuteError(Exception):
    """An exception that cannot be printed."""

    def __str__(self):
        raise RuntimeError("no str")

    __repr__ = __str__


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MuteError(), "<str() of this MuteError raises RuntimeError>"),
        (ValueError("cannot read \udcff.bin"), r"cannot read \udcff.bin"),
        (errors.LowerError("not supported of \udcff", hint="\ud800"), r"not supported of \udcff"),
    ],
)
def test_errors_that_cannot_be_printed_or_written_are_outcomes(error, message):
    outcome = Outcome.from_error(error, "lower", facts={"\udcff": {MuteError(): [MuteError(), "\udcff"]}})
    assert outcome.status is Status.ERROR
    assert outcome.error.message == message
    json.dumps(outcome.to_dict(), ensure_ascii=False).encode()
    outcome.describe().encode()


def test_a_description_shows_control_characters():
    outcome = Outcome.from_error(ValueError("\x1b[2Jgone\nnext line"), "run")
    assert r"\x1b[2Jgone" in outcome.describe()
    assert "\x1b" not in outcome.describe()
    assert outcome.error.message == "\x1b[2Jgone\nnext line", "the record has what was said"


def test_a_text_is_added_to_the_details_of_an_error() -> None:
    plain = Outcome(Status.MISMATCH, Stage.COMPARE)
    once = plain.with_details("first")
    assert once.error is not None
    assert (once.error.details, plain.error) == ("first", None)
    twice = once.with_details("second")
    assert twice.error is not None
    assert twice.error.details == "first\nsecond"


def test_an_archive_that_does_not_load_was_checked_at_no_size() -> None:
    common = {"sizes": ({"T": 5}, {"T": 1}), "range": "T >= 1"}
    for stage in (Stage.LOAD, Stage.OPTIMISE):
        text = Outcome(Status.ERROR, stage, **common).describe()
        assert text.splitlines()[1:] == ["the archive holds for T >= 1"]
    assert "sizes checked: T=5; T=1" in Outcome(Status.ERROR, Stage.RUN, **common).describe()
