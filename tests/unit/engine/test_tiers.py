"""Kernel tiers by name: what they take away, what they leave, and words that are none."""

from __future__ import annotations

import os

import pytest

from t2n_core.engine.processes.environment import single_threaded_environment
from t2n_core.engine.provision.resolved import ResolvedEngine
from t2n_core.engine.tiers import has_tiers, parse_tiers, removed_features, tier_environment, usable_features
from t2n_core.errors import InputError
from tests.releases import NEWEST

EPYC = ("avx", "avx2", "avx512_vnni", "avx512bw", "avx512f", "avx_vnni", "f16c", "fma", "sse2")


def test_a_tier_takes_what_needs_the_feature_with_it() -> None:
    assert removed_features("native") == ()
    assert removed_features("no-avx512") == ("avx512f", "avx512vnni", "avx512fp16", "amx-int8", "amx-bf16")
    assert removed_features("no-fma") == ("fma", *removed_features("no-avx512"))
    assert removed_features("no-sme") == ("sme", "sme2")
    assert tier_environment("native") == {}
    assert tier_environment("no-sme2") == {"TRACT_CPU_ISA": "-sme2"}


def test_features_are_named_as_the_engine_names_them() -> None:
    everything = ("avx", "avx2", "fma", "f16c", "avxvnni", "avx512f", "avx512vnni")
    assert usable_features(EPYC, "native", "x86_64") == everything
    assert usable_features(EPYC, "no-avx512", "AMD64") == ("avx", "avx2", "fma", "f16c", "avxvnni")
    assert usable_features(("asimd", "asimddp", "fphp", "sve2"), "native", "aarch64") == ("fp16", "dotprod", "sve2")
    assert usable_features(("asimddp", "fphp"), "no-fp16", "arm64") == ("dotprod",)
    assert usable_features(("v",), "native", "riscv64") == ()


def test_a_list_of_tiers_has_each_once() -> None:
    assert parse_tiers("native, no-fma,native", "x86_64") == ("native", "no-fma")


@pytest.mark.parametrize(
    ("word", "machine", "message"),
    [
        ("no-avx51", "x86_64", "did you mean `no-avx512`"),
        ("fma", "x86_64", "did you mean `no-fma`"),
        ("native,", "x86_64", "one of native, no-avx,"),
        ("no-sve2", "x86_64", "sve2 is a feature of aarch64, and this machine is x86_64"),
        ("no-avx512", "arm64", "avx512 is a feature of x86_64, and this machine is aarch64"),
        ("no-fma", "riscv64", "fma is a feature of x86_64, and this machine is riscv64"),
    ],
)
def test_words_that_are_no_tier_of_a_machine(word: str, machine: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_tiers(word, machine)


@pytest.mark.parametrize(("version", "known"), [("0.23.5", False), ("0.23.6", True), ("1.0", True), ("mine", False)])
def test_releases_with_tiers(version: str, known: bool) -> None:
    assert has_tiers(version) == known


def test_tier_and_runtime_are_in_the_name_of_an_engine() -> None:
    engine = ResolvedEngine.from_dict(
        {"kind": "wheel", "version": NEWEST, "library": "/lib", "sha256": "ab", "requested": "0.23"}
        | {"tier": "no-fma", "runtime": "cuda", "paths": ""}
    )
    assert engine.label == f"{NEWEST} no-fma cuda"
    assert ResolvedEngine.from_dict(engine.to_dict()) == engine
    assert engine.environment["TRACT_CPU_ISA"].startswith("-fma,-avx512f,")


def test_no_variable_of_tract_reaches_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACT_CPU_ISA", "-fma")
    monkeypatch.setenv("TRACT_ENABLE_BLOCKED_CONV", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    environment = single_threaded_environment()
    assert not [name for name in environment if name.startswith("TRACT_")]
    assert environment["OMP_NUM_THREADS"] == "1"
    assert environment["PATH"] == os.environ["PATH"]
