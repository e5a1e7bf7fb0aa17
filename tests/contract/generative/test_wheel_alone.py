"""Programs of `docs/how-to/state` that serve language models run where only their packages and tract are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from pytest_t2n.cli.command import main
from tests.bare import bare_packages, run_alone
from tests.contract.generative.test_export_generative import llama, recurrent, windowed
from tests.pages import ROOT, Page

SERVING = Page(ROOT / "docs" / "how-to" / "state" / "serving.md")
DECODE = Page(ROOT / "docs" / "how-to" / "state" / "language-models.md").files["decode.py"]
PROMPT = [5, 17, 3, 8, 44, 2, 9]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bare_packages(tmp_path_factory.mktemp("packages"))


@pytest.mark.parametrize(
    ("make", "options"),
    [(llama, []), (llama, ["--step-archive"]), (windowed, []), (recurrent, [])],
    ids=["llama", "llama-step", "windowed", "recurrent"],
)
def test_a_folder_of_a_model_becomes_tokens(
    make: Any, options: list[str], bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = make()
    model.save_pretrained("model")
    (tmp_path / "decode.py").write_text(DECODE)
    assert (
        main(["export-llm", "model", "-o", "exported", "--tract=0.23", "--no-tokenizer", "--no-check", *options]) == 0
    )
    assert (tmp_path / "exported" / "step.nnef.tgz").exists() == bool(options)
    printed = run_alone(bare, "decode.py", "exported", *map(str, PROMPT), folder=tmp_path)
    input_ids = torch.tensor([PROMPT])
    greedy = {"max_new_tokens": 12, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    expected = model.generate(input_ids, attention_mask=torch.ones_like(input_ids), **greedy)[0, len(PROMPT) :].tolist()
    assert list(map(int, printed.split())) == expected
    assert len(set(expected)) > 2, "tokens that prove little"


QUESTIONS = ["Good morning", "Who is there?", "\N{SNOWMAN}"]
DRIVER = """
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, ".")
from chat import Chat, choices, greedy, main, sampler


def end_at(chat, messages, place):
    chat.ends = {chat.answer(messages, 24, greedy)[place]}
    return chat.answer(messages, 24, greedy)


chat = Chat(Path("exported"))
chats = [[{"role": "user", "content": question}] for question in sys.argv[1:]]
with ThreadPoolExecutor(len(chats)) as threads:
    together = list(threads.map(lambda messages: chat.answer(messages, 24, greedy), chats))
logits = np.random.default_rng(0).normal(size=200).astype(np.float32) * 3
tokens, shares = choices(logits)
print(json.dumps({
    "prompts": [chat.prompt(messages) for messages in chats],
    "answers": [chat.answer(messages, 24, greedy) for messages in chats],
    "together": together,
    "logits": logits.tolist(),
    "shares": {int(token): share for token, share in zip(tokens, shares)},
    "sampled": [chat.answer(messages, 24, sampler(3)) for messages in chats],
    "texts": list(main("exported", *sys.argv[1:])),
    "again": list(main("exported", *sys.argv[1:])),
    "ends": list(chat.ends),
    "ended": end_at(chat, chats[0], 5),
}))
"""


def test_the_chat_of_the_page_answers_as_transformers_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    monkeypatch.chdir(tmp_path)
    for name, text in SERVING.files.items():
        (tmp_path / name).write_text(text, "utf-8")
    exec(compile(SERVING.files["make_chat.py"], "make_chat.py", "exec"), {})
    assert main(["export-llm", "chat", "-o", "exported", "--tract=0.23", "--no-check"]) == 0
    (tmp_path / "driver.py").write_text(DRIVER, "utf-8")
    packages = bare_packages(tmp_path, "tokenizers", "jinja2", "markupsafe")
    served = json.loads(run_alone(packages, "driver.py", *QUESTIONS, folder=tmp_path))

    tokenizer = transformers.AutoTokenizer.from_pretrained("chat")
    chats = [[{"role": "user", "content": question}] for question in QUESTIONS]
    prompts = [tokenizer.apply_chat_template(chat, add_generation_prompt=True)["input_ids"] for chat in chats]
    assert served["prompts"] == prompts
    model = transformers.AutoModelForCausalLM.from_pretrained("chat").eval()
    answers = []
    for prompt in prompts:
        input_ids = torch.tensor([prompt])
        sequences = model.generate(
            input_ids, attention_mask=torch.ones_like(input_ids), max_new_tokens=24, do_sample=False
        )
        answers.append([token for token in sequences[0, len(prompt) :].tolist() if token != model.config.eos_token_id])
    assert served["answers"] == served["together"] == answers
    assert served["ends"] == [model.config.eos_token_id]
    assert served["ended"] == answers[0][: answers[0].index(answers[0][5])]

    logits = torch.tensor([served["logits"]])
    warpers = (transformers.TemperatureLogitsWarper(0.8), transformers.TopKLogitsWarper(50))
    for warp in (*warpers, transformers.TopPLogitsWarper(0.95)):
        logits = warp(None, logits)
    shares = logits.softmax(-1)[0]
    expected = {str(token): float(share) for token, share in enumerate(shares) if share}
    assert served["shares"] == pytest.approx(expected, rel=1e-5)
    assert len(expected) < 50
    assert served["sampled"] != served["answers"]
    assert served["texts"] == served["again"]
