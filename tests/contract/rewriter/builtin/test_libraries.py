"""Built-in rewriters on the models that need them. Skipped without the library: `tox -e models` has them all."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import types
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import CaptureError, T2NError
from t2n_core.rewriter.builtin import _of, builtin_rewriters
from t2n_core.rewriter.builtin.marks import builtin_function
from t2n_core.rewriter.resolve import resolve
from t2n_core.rewriter.selection import select
from tests.nets import net_of
from tests.releases import NEWEST

pytestmark = pytest.mark.usefixtures("without_proofs")


def library(name: str) -> Any:
    """The package, next to a CPU build of torch; the test is skipped without it."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed; `tox -e models` has it")
    importlib.import_module("conformance.cases.models.libraries")
    return importlib.import_module(name)


SMALL = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
WINDOWS = {
    "vocab_size": 50, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "attention_window": [4],
    "max_encoder_position_embeddings": 40, "max_decoder_position_embeddings": 40,
}  # fmt: skip


class First(nn.Module):
    """The first result only, of a model that takes token ids."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> Any:
        return self.model(input_ids)[0]


def fnet(t: Any) -> nn.Module:
    return First(t.FNetModel(t.FNetConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, intermediate_size=24)))


def encodec(t: Any, **more: Any) -> nn.Module:
    config = t.EncodecConfig(
        num_filters=4, num_residual_layers=1, upsampling_ratios=[4, 2], hidden_size=8, codebook_size=16, **more
    )
    encoder: nn.Module = t.EncodecModel(config).encoder
    return encoder


def mimi(t: Any) -> nn.Module:
    config = t.MimiConfig(
        num_filters=4, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
        intermediate_size=24, upsampling_ratios=[4, 2], codebook_dim=8, codebook_size=16, num_quantizers=2,
        num_semantic_quantizers=1, vector_quantization_hidden_dimension=8, upsample_groups=16,
    )  # fmt: skip
    encoder: nn.Module = t.MimiModel(config).encoder
    return encoder


def longformer(t: Any) -> nn.Module:
    return First(t.LongformerModel(t.LongformerConfig(**SMALL, attention_window=[4], max_position_embeddings=40)))


def led(t: Any) -> nn.Module:
    return First(t.LEDModel(t.LEDConfig(**WINDOWS)))


def experts(t: Any, kind: str, **more: Any) -> nn.Module:
    """A language model whose experts are a loop over those that a token was sent to."""
    config = getattr(t, f"{kind}Config")(**{**SMALL, **more}, num_key_value_heads=2, use_cache=False)
    config._experts_implementation = "eager"
    return First(getattr(t, f"{kind}Model")(config))


def tokens() -> dict[str, torch.Tensor]:
    return {"input_ids": torch.randint(3, 50, (2, 8))}


def wave(*shape: int, name: str = "waveform") -> Any:
    return lambda: {name: torch.randn(shape)}


CASES = {
    "transformers encodec": (encodec, wave(1, 1, 77, name="hidden_states"), None),
    "transformers encodec symmetric": (
        lambda t: encodec(t, use_causal_conv=False, norm_type="time_group_norm"),
        wave(1, 1, 96, name="hidden_states"),
        None,
    ),
    "transformers mimi": (mimi, wave(1, 1, 77, name="input_values"), None),
    "transformers longformer": (longformer, tokens, None),
    "transformers led": (led, tokens, None),
    "transformers mixtral": (
        lambda t: experts(t, "Mixtral", num_local_experts=4, num_experts_per_tok=2),
        tokens,
        {"input_ids": {0: "B", 1: "T"}},
    ),
    "transformers qwen2_moe": (
        lambda t: experts(t, "Qwen2Moe", num_experts=5, num_experts_per_tok=3, moe_intermediate_size=12),
        tokens,
        None,
    ),
    "transformers deepseek_v3": (
        lambda t: experts(
            t,
            "DeepseekV3",
            num_hidden_layers=2,
            n_routed_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=12,
            q_lora_rank=8,
            kv_lora_rank=8,
            qk_rope_head_dim=4,
            qk_nope_head_dim=4,
            v_head_dim=8,
            n_group=2,
            topk_group=1,
            first_k_dense_replace=1,
        ),
        tokens,
        None,
    ),
}
COMPLEX_INSIDE = {
    "transformers fnet": (fnet, tokens, {"input_ids": {0: "B"}}),
    "transformers fnet free length": (fnet, tokens, {"input_ids": {0: "B", 1: "T"}}),
    "torchaudio power": (lambda a: a.transforms.Spectrogram(64, hop_length=20), wave(2, 500), {"waveform": {1: "T"}}),
    "torchaudio magnitude": (
        lambda a: a.transforms.Spectrogram(64, 50, pad=3, power=1.0, normalized=True),
        wave(2, 3, 400),
        None,
    ),
    "torchaudio cube": (
        lambda a: a.transforms.Spectrogram(63, center=False, power=3.0, normalized="frame_length", onesided=False),
        wave(400),
        None,
    ),
    "torchaudio mel": (lambda a: a.transforms.MelSpectrogram(16000, n_fft=128, n_mels=12), wave(2, 900), None),
    "torchaudio mfcc": (
        lambda a: a.transforms.MFCC(16000, n_mfcc=5, melkwargs={"n_fft": 128, "hop_length": 50, "n_mels": 12}),
        wave(2, 900),
        None,
    ),
    "torchaudio hdemucs": (
        lambda a: a.models.HDemucs(["voice", "rest"], audio_channels=1, channels=4, nfft=64, depth=3),
        wave(2, 1, 700, name="input"),
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_they_export_with_the_built_in_rewriters_only(case: str, proven: Any, tmp_path: Any) -> None:
    make, inputs, axes = CASES[case]
    package = library(case.split()[0])
    torch.manual_seed(5)
    model, args = make(package).eval(), inputs()
    result = proven(model, args, dynamic_axes=axes)
    assert result.rewrites.applied
    with pytest.raises(T2NError):
        ModelExport(model, args, dynamic_axes=axes, builtin_rewriters=False).lower(TractNNEF(NEWEST))


def gpt_oss(t: Any) -> nn.Module:
    return experts(t, "GptOss", head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=32)


@pytest.mark.parametrize(
    ("make", "gate"),
    [
        (lambda t: experts(t, "Mixtral", num_local_experts=4, num_experts_per_tok=2), "softmax_topk"),
        (
            lambda t: experts(t, "Qwen2Moe", num_experts=5, num_experts_per_tok=3, moe_intermediate_size=12),
            "softmax_all",
        ),
        (gpt_oss, "softmax_topk"),
    ],
    ids=["mixtral", "qwen2_moe", "gpt_oss"],
)
def test_experts_and_their_router_are_one_operation(make: Any, gate: str, proven: Any) -> None:
    torch.manual_seed(5)
    result = proven(make(library("transformers")).eval(), tokens(), dynamic_axes={"input_ids": {0: "B", 1: "T"}})
    moe_operations = [op for op in result.graph.operations if op.name == "tract_moe_ffn"]
    assert [op.arguments["gate"] for op in moe_operations] == [gate] * len(moe_operations)
    assert len(moe_operations) == SMALL["num_hidden_layers"]
    assert not any(op.name == "tract_core_topk" for op in result.graph.operations)
    # the engine packs the experts only if it computes their weights ahead, and it does not gather large ones
    weights = [value.producer for op in moe_operations for value in list(op.inputs())[1:]]
    while any(maker.name != "variable" for maker in weights):
        assert {maker.name for maker in weights} <= {"variable", "slice", "squeeze", "reshape"}
        weights = [value.producer for maker in weights for value in maker.inputs()]


def llama4(t: Any) -> nn.Module:
    layers = {"num_hidden_layers": 2, "num_local_experts": 4, "num_experts_per_tok": 1, "intermediate_size_mlp": 24}
    return First(t.Llama4TextModel(t.Llama4TextConfig(**{**SMALL, **layers}, num_key_value_heads=2, head_dim=8)))


def lfm2_moe(t: Any) -> nn.Module:
    layers = {"num_hidden_layers": 2, "num_dense_layers": 0, "layer_types": ["full_attention"] * 2}
    return experts(t, "Lfm2Moe", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12, **layers)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (llama4, "the router weights the experts' input, not their output"),
        (lfm2_moe, "the weights of the experts are no softmax, sigmoid or logits of the router"),
    ],
    ids=["llama4", "lfm2_moe"],
)
def test_experts_that_the_operator_does_not_express_have_a_note(make: Any, reason: str, proven: Any) -> None:
    torch.manual_seed(5)
    notes = proven(make(library("transformers")).eval(), tokens()).notes
    assert notes == (f"2 mixtures of experts without the engine's operator: {reason}",)


@pytest.mark.parametrize("case", COMPLEX_INSIDE)
def test_complex_numbers_inside_need_no_rewriter(case: str, proven: Any) -> None:
    make, inputs, axes = COMPLEX_INSIDE[case]
    package = library(case.split()[0])
    torch.manual_seed(5)
    assert not proven(make(package).eval(), inputs(), dynamic_axes=axes).rewrites.applied


@pytest.mark.parametrize("name", ["transformers"])
def test_every_path_of_a_library_exists(name: str) -> None:
    library(name)
    rewriters = _of(name)
    assert rewriters
    assert set(rewriters) <= set(builtin_rewriters())
    for rewriter in rewriters:
        importlib.import_module(rewriter.subject.partition(":")[0])
        resolve(rewriter)


def test_another_version_of_a_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    package = types.ModuleType("t2n_other_version")
    package.Net = type("Net", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, package.__name__, package)
    for path in (":f", ":Net.f", ":Old.f", ".inner:f"):
        rewriter = builtin_function(f"t2n_other_version{path}")(lambda ctx, *args: None)
        assert list(select([rewriter], None).absent) == [rewriter]


@pytest.mark.parametrize("by_name", [True, False])
def test_global_attention_is_refused(by_name: bool) -> None:
    class Global(First):
        def forward(self, input_ids: torch.Tensor) -> Any:
            mask = torch.zeros_like(input_ids)
            mask[:, 0] = 1
            if by_name:
                return self.model(input_ids, global_attention_mask=mask)[0]
            return self.model(input_ids, None, mask)[0]

    model = Global(longformer(library("transformers")).model).eval()
    with pytest.raises(CaptureError, match="global_attention_mask"):
        _ = ModelExport(model, tokens()).captured


def test_an_encoder_alone_is_not_assumed_to_be_without_global_tokens() -> None:
    def encoder_net(encoder: nn.Module) -> nn.Module:
        return net_of(lambda _, x, mask: encoder(x, attention_mask=mask)[0])

    encoder = longformer(library("transformers")).model.encoder  # type: ignore[union-attr]
    mask = torch.zeros(1, 8)
    mask[:, 2] = 1.0
    with pytest.raises(CaptureError):
        _ = ModelExport(encoder_net(encoder).eval(), (torch.randn(1, 8, 16), mask)).captured


def test_a_complex_spectrogram_stays_one() -> None:
    package = library("torchaudio")
    model = package.transforms.Spectrogram(64, power=None)
    with pytest.raises(T2NError, match=r"complex|stft"):
        ModelExport(model, (torch.randn(400),)).lower(TractNNEF(NEWEST))


def test_libraries_that_are_not_loaded_cost_nothing() -> None:
    code = (
        "import sys; from t2n_core.rewriter.builtin import builtin_rewriters\n"
        "assert builtin_rewriters() == ()\n"
        "assert not {'transformers', 'torchaudio', 'timm', 'torchvision'} & set(sys.modules)\n"
        "assert not [m for m in sys.modules if 'builtin.for_' in m]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
