"""The marker `nnef_generate` on real engines: tokens in the record, the terminal and the reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2n_core.engine.provision.store import default_cache_dir
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

ROOT = Path(__file__).parents[4]
"""The folder of `tests` and `conformance`, whose modules the suites below import."""
CACHE = f"--t2n-cache-dir={default_cache_dir()}"
NET = """
import pytest
import torch
from tests.nets import TinyDecoder


def returned(spread=0.7):
    net = TinyDecoder().eval()
    for weight in net.parameters():
        torch.nn.init.normal_(weight, std=spread)
    tokens = torch.randint(0, 23, (1, 3))
    return net, {"tokens": tokens, "keys": torch.randn(1, 1, 5, 8), "values": torch.randn(1, 1, 5, 8)}


def generate(**options):
    given = {"state": {"keys": 1, "values": 2}, "dynamic_axes": {"tokens": {1: "S"}}, "steps": 6}
    return pytest.mark.nnef_generate(**{**given, **options})

"""


def ran(suite, test: str, *options: str, engines: str = f"0.21.19,{RECENT}"):
    suite.pytester.makeconftest(f"import sys\n\nsys.path.insert(0, {str(ROOT)!r})\n")
    (suite.path / "test_it.py").write_text(NET + test)
    arguments = ("--t2n-report=site", "--t2n-offline", CACHE, *options)
    return suite.run(*arguments, engines=engines, alone=True, modules=FOR_EXPORTS)


def test_tokens_stand_in_record_terminal_and_reports(suite):
    result = ran(suite, "@generate()\ndef test_net():\n    return returned()\n")
    result.assert_outcomes(passed=2)
    assert {name: (cell["status"], cell["tokens"]) for name, cell in suite.cells.items()} == {
        "test_net[tract-0.21.19]": ("pass", "18/18"),
        f"test_net[tract-{RECENT}]": ("pass", "18/18"),
    }
    newest = suite.cells[f"test_net[tract-{RECENT}]"]
    assert newest["facts"]["ways"]["state held by the engine"] == "pass"
    assert "tokens" not in newest["facts"]
    assert newest["ops"]
    assert newest["graph"]
    result.stdout.fnmatch_lines(["engine*pass*tokens*levels reached", "tract 0.21.19*1*18/18*"])
    summary = (suite.path / "site" / "summary.md").read_text()
    assert "| engine | pass | tokens |" in summary
    assert f"| tract {RECENT} | 1 | 18/18 |" in summary


WRONG = """
class Turned(TinyDecoder):
    '''Takes the past with the wrong sign where it is captured.'''

    def forward(self, tokens, keys, values):
        if not torch.compiler.is_exporting():
            return super().forward(tokens, keys, values)
        return super().forward(tokens, keys, -values)


@generate(prompts=[[3, 5, 1, 4]])
def test_net():
    net, call = returned()
    wrong = Turned().eval()
    wrong.load_state_dict(net.state_dict())
    return wrong, call
"""


def test_wrong_tokens_are_a_mismatch_with_the_first_wrong_step(suite):
    result = ran(suite, WRONG, "--t2n-bisect", engines=RECENT)
    result.assert_outcomes(failed=1)
    (cell,) = suite.cells.values()
    assert cell["status"] == "mismatch"
    right, total = map(int, cell["tokens"].split("/"))
    assert right < total == 6
    assert "tokens are right; step" in cell["error"]["message"]
    assert "wrong although its inputs are right: step 1" in cell["error"]["details"]
    result.stdout.fnmatch_lines([f"*tokens {cell['tokens']}*"])


def test_one_token_throughout_is_weak(suite):
    ran(suite, "@generate(steps=2)\ndef test_net():\n    return returned(spread=0.0)\n", engines=RECENT)
    (cell,) = suite.cells.values()
    assert (cell["status"], cell["error"]["error_class"]) == ("weak", "WeakCheck")


FIXTURE = """
def test_by_hand(nnef_export):
    net, call = returned()
    result = nnef_export(net, call, state={"keys": 1, "values": 2}, dynamic_axes={"tokens": {1: "S"}})
    assert result.assert_generation([[3, 5, 1]], 4).tokens == "4/4"


@generate(check=False)
def test_export_alone():
    return returned()
"""


def test_the_fixture_generates_too(suite):
    ran(suite, FIXTURE, engines=RECENT).assert_outcomes(passed=2)
    cells = suite.cells
    assert cells[f"test_by_hand[tract-{RECENT}]"]["tokens"] == "4/4"
    assert "tokens" not in cells[f"test_export_alone[tract-{RECENT}]"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("steps=0", "steps=0 is not a number of tokens"),
        ("prompts='many'", "prompts='many' is neither a number of prompts nor their tokens"),
        ("prompts=0", "prompts=0: at least one prompt is required"),
        ("batch=3", 'batch=3 is not the name of a size, such as "B"'),
        ("last_logits=-1", 'last_logits=-1 is neither a number of tokens nor "input"'),
        ("atol=0.1", "`atol` is not an argument of nnef_generate: it compares tokens, and logits by a level"),
        ("tolerance={'y': 'close'}", "tolerance={'y': 'close'} is not one level, that of the logits"),
        ("target='khronos'", "target='khronos': only tract generates tokens"),
        ("stepz=3", "unknown argument `stepz` of nnef_generate; did you mean `steps`?"),
    ],
)
def test_a_wrong_argument_is_named_with_its_marker(suite, words, reason):
    suite.pytester.makepyfile(
        test_it=f"import pytest\n\n@pytest.mark.nnef_generate({words})\ndef test_net():\n    return 'pass', (1,)\n"
    )
    result = suite.run(engines="0.23")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*@pytest.mark.nnef_generate: {reason.replace('[', '?')}*"])


def test_both_markers_are_known(suite):
    suite.run("--markers", engines="").stdout.fnmatch_lines(["@pytest.mark.nnef_generate(target=*steps*"])


LLAMA = """
import conformance.cases.models.libraries
import transformers
import pytest, torch


@pytest.mark.nnef_generate(steps=5, batch="B")
def test_llama():
    sizes = {"hidden_size": 32, "intermediate_size": 48, "head_dim": 8, "vocab_size": 97, "max_position_embeddings": 64}
    parts = {"num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2}
    config = transformers.LlamaConfig(**sizes, **parts, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    model = transformers.LlamaForCausalLM(config).eval()
    return model, torch.tensor([[5, 3, 8, 1, 9, 4], [7, 7, 2, 6, 1, 3]])


@pytest.mark.nnef_generate(steps=5, batch="B")
def test_padded():
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=97, num_hidden_layers=1, hidden_size=32))
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]])
    return model, {"input_ids": torch.randint(1, 90, (2, 6)), "attention_mask": mask}
"""


def test_a_model_of_transformers_returns_its_prompts(suite):
    pytest.importorskip("transformers")
    result = ran(suite, LLAMA, engines=RECENT)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [f"error at stage `input` in tract {RECENT}: the prompt's `attention_mask` hides tokens*"]
    )
    result.stdout.no_fnmatch_line("During handling*")
    cell = suite.cells[f"test_llama[tract-{RECENT}]"]
    assert cell["tokens"] == "10/10"
    assert cell["facts"]["ways"]["prompts in a batch"] == "pass"
