"""The memory of `t2n export-llm`: weights stay in files, whatever is made of them on their way to the archive."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from tests.pages import ROOT

SIZES: dict[str, Any] = {
    "vocab_size": 12000, "hidden_size": 1024, "intermediate_size": 5632, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0,
}  # fmt: skip
SMALL = {**SIZES, "vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
EXPERTS = {**SIZES, "intermediate_size": 1408, "num_local_experts": 4, "num_experts_per_tok": 1}
WAYS = ("float32", "float32 --dtype=f16", "float32 --weights=q4_0", "bfloat16", "experts")
"""Folders, and options of the command."""
BEYOND = 64 << 20
"""Bytes for the graphs and for pieces of weights."""
PEAKS = """
import ctypes, json, re, sys, threading, time
from pathlib import Path
import conformance.cases.models.libraries
import torch, transformers
from pytest_t2n.cli.command import main

def held():
    return int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10

def watch():
    while not ended.wait(0.003):
        seen.append(held())

growth = {}
for way in ["small", *sys.argv[1:]]:  # the first one imports what all need
    folder, *more = way.split()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    before, seen, ended = held(), [], threading.Event()
    watching = threading.Thread(target=watch)
    watching.start()
    code = main(["export-llm", folder, "-o", "out", "--no-tokenizer", "--no-check", "--tract=0.23", *more])
    ended.set()
    watching.join()
    growth[way] = [code, max(seen) - before]
print(json.dumps(growth))
"""


def saved(config: Any, folder: Path, dtype: torch.dtype = torch.float32) -> None:
    torch.manual_seed(0)
    transformers.AutoModelForCausalLM.from_config(config, dtype=dtype).save_pretrained(folder)


@pytest.fixture(scope="module")
def peaks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """Return the exit code and the growth of memory, in bytes, of each way; all run in one process."""
    folder = tmp_path_factory.mktemp("models")
    saved(transformers.LlamaConfig(**SMALL), folder / "small")
    saved(transformers.LlamaConfig(**SIZES), folder / "float32")
    saved(transformers.LlamaConfig(**SIZES), folder / "bfloat16", torch.bfloat16)
    saved(transformers.MixtralConfig(**EXPERTS), folder / "experts")
    command = [sys.executable, "-W", "ignore", "-c", PEAKS, *WAYS]
    # glibc keeps freed blocks below a threshold that grows by itself: with a fixed one this counts what is held
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MALLOC_MMAP_THRESHOLD_": str(1 << 20)}
    child = subprocess.run(command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, check=True)
    measurements: dict[str, list[int]] = json.loads(child.stdout.splitlines()[-1])
    return measurements


@pytest.mark.nightly  # models of 300 MB
@pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does")
@pytest.mark.parametrize("way", WAYS)
def test_an_export_holds_a_tensor_and_not_the_model(way: str, peaks: dict[str, list[int]]) -> None:
    config = transformers.MixtralConfig(**EXPERTS) if way == "experts" else transformers.LlamaConfig(**SIZES)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    sizes = [parameter.nbytes for parameter in model.parameters()]
    code, peak = peaks[way]
    bound = 1.2 * max(sizes) + BEYOND
    assert code == 0
    assert bound < 0.5 * sum(sizes), "a copy of the weights in float16 would keep this bound"
    assert peak < bound, f"{peak / 1e6:.0f} MB, with weights of {sum(sizes) / 1e6:.0f} MB"
