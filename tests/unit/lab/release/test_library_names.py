"""Names of PyTorch and transformers that are new and gone."""

from __future__ import annotations

from conformance.lab.release.libraries import describe_names

BEFORE = {
    "torch": ["2.13.0"],
    "transformers": ["5.23.0"],
    "operators": ["aten::add.Tensor", "aten::cholesky", "aten::qr"],
    "language models": ["llama"],
}
NOW = {
    "torch": ["2.14.0"],
    "transformers": ["5.23.0"],
    "operators": ["aten::add.Tensor", "aten::linalg_polar"],
    "language models": ["llama", "llama5"],
}


def test_what_is_gone_comes_first_with_its_rule() -> None:
    text = "\n".join(describe_names(BEFORE, NOW, frozenset({"aten::cholesky", "aten::add"})))
    assert text.startswith("torch 2.14.0 in comparison with 2.13.0\ntransformers 5.23.0 in comparison with 5.23.0\n")
    operators = text.partition("## Operators")[2].partition("##")[0].split("\n")
    assert [line for line in operators if line] == [
        "1 new, 2 gone",
        "- gone: `aten::cholesky`, which has a rule",
        "- gone: `aten::qr`",
        "- new: `aten::linalg_polar`",
    ]
    assert text.endswith("1 new, 0 gone\n\n- new: `llama5`")
