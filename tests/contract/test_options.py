"""Every option of a tract target, on real engines. `docs/reference/options.md` names the test of each."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ExportResult, KhronosNNEF, ModelExport, TractNNEF, export_model_to_nnef
from t2n_core.check.parity import check_parity
from t2n_core.engine import ResolvedEngine
from t2n_core.errors import EngineRunError, InputError, LowerError, ParityError, SpecError, UnsupportedOpsError
from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import Fragment, Value
from t2n_core.op.compression import Q40Weight
from t2n_core.op.registry import Registry, load_default, op
from tests.tract_cli import make_cli

NEWEST = ("0.19.15", "0.20.22", "0.21.19", "0.22.4", "0.23.9")
every_line = pytest.mark.parametrize("version", NEWEST)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(7)


def exported(model: nn.Module, args: Any, target: TractNNEF, path: Path, **more: Any) -> ExportResult:
    return ModelExport(model.eval(), args, **more).to(target, path / "model.nnef.tgz")


def text_of(archive: Path) -> str:
    with tarfile.open(archive) as tar:
        stream = tar.extractfile("graph.nnef")
        assert stream is not None
        return stream.read().decode()


def operators(result: ExportResult) -> set[str]:
    return {operation.name for operation in result.graph.operations}


# ------------------------------------------------------------------------------------------------------------- version
@pytest.mark.parametrize(
    ("wanted", "found"),
    [("0.21.13", "0.21.13"), ("0.21", "0.21.19"), (">=0.20.4,<0.21", "0.20.22"), ("~=0.22.1", "0.22.4")],
)
def test_version(wanted: str, found: str, tmp_path: Path) -> None:
    target = TractNNEF(wanted)
    assert target.version == found
    outcome = exported(nn.Linear(4, 3), torch.randn(2, 4), target, tmp_path).assert_parity()
    assert outcome.engine == f"tract {found}"


# ------------------------------------------------------------------------------------------------------- feature_flags
def test_feature_flags(tmp_path: Path) -> None:
    """Attention is its own operator where the product has `transformers`, and a formula of `tract_core` elsewhere."""
    args = tuple(torch.randn(2, 3, 5, 4) for _ in range(3))
    for flags, own in ((["transformers"], True), ("default", True), (["extra", "pulse"], False), ([], False)):
        target = TractNNEF("0.22.4", feature_flags=flags, reify_sdpa_operator=True)
        result = exported(Attention(), args, target, tmp_path)
        assert ("tract_transformers_sdpa" in operators(result)) == own
        assert ("tract_registry tract_transformers" in text_of(result.archive)) == own
        result.assert_parity()


def test_feature_flags_are_kept_by_own_rules_and_extensions(tmp_path: Path) -> None:
    rules = own_relu(lambda g, x: g.tract_transformers_silu(x))
    with pytest.raises(UnsupportedOpsError, match="add 'transformers' to feature_flags"):
        exported(nn.ReLU(), torch.randn(2, 3), TractNNEF("0.21.19", feature_flags=[]), tmp_path, rules=rules)
    target = TractNNEF("0.21.19", feature_flags=[], custom_extensions=["tract_registry tract_onnx"])
    with pytest.raises(SpecError, match="feature_flags leave out"):
        exported(nn.ReLU(), torch.randn(2, 3), target, tmp_path)
    for wrong, message in (("complex", "no complex tensors"), (["transformer"], "one or more of default, onnx")):
        with pytest.raises(InputError, match=message):
            TractNNEF("0.21.19", feature_flags=wrong)


# ------------------------------------------------------------------------------------------------- check_io, tolerance
def test_check_io(tmp_path: Path) -> None:
    """With `exact`, a product of 300 terms fails; without a check the archive is written and no engine is asked."""
    model, args, path = nn.Linear(300, 4).eval(), torch.randn(3, 300) * 100, tmp_path / "model.nnef.tgz"
    with pytest.raises(ParityError):
        export_model_to_nnef(model, args, path, TractNNEF("0.23.9", check_io_tolerance="exact"))
    assert not path.exists()
    export_model_to_nnef(model, args, path, TractNNEF("0.23.9", check_io_tolerance="exact", check_io=False))
    assert path.exists()


def test_check_io_tolerance(tmp_path: Path) -> None:
    model, args, path = nn.Linear(300, 4).eval(), torch.randn(3, 300) * 100, tmp_path / "model.nnef.tgz"
    for level in ("exact", "close"):
        with pytest.raises(ParityError, match=f"beyond `{level}`"):
            export_model_to_nnef(model, args, path, TractNNEF("0.23.9", check_io_tolerance=level))
    for level in ("approximate", "very", "super", "ultra"):
        assert export_model_to_nnef(model, args, path, TractNNEF("0.23.9", check_io_tolerance=level)).archive.exists()
    with pytest.raises(InputError, match="is not a tolerance level"):
        TractNNEF("0.23.9", check_io_tolerance="near")


# -------------------------------------------------------------------------------------------------------- dynamic_axes
class Two(nn.Module):
    """Outputs of sizes 2 * T + 1 and T * B."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        wide = torch.cat([x, y, x[:, :1]], dim=1)
        return wide.cumsum(1), (x + y).flatten(0, 1).relu()


@every_line
@pytest.mark.parametrize(
    ("axes", "symbols"),
    [
        ({"x": {0: "B", 1: "T"}, "y": {0: "B", 1: "T"}}, {"B", "T"}),
        ({"x": {-3: "B", -2: "T"}, "y": {-3: "B", -2: "T"}}, {"B", "T"}),
        ({"x": {1: "T"}, "y": {-2: "T"}}, {"T"}),
    ],
    ids=["shared", "negative", "one"],
)
def test_dynamic_axes(axes: Any, symbols: set[str], version: str, tmp_path: Path) -> None:
    """Two inputs share symbols; the outputs have sizes that are expressions of them."""
    args = (torch.randn(2, 5, 3), torch.randn(2, 5, 3))
    outcome = exported(Two(), args, TractNNEF(version, dynamic_axes=axes), tmp_path).assert_parity()
    assert {name for sizes in outcome.sizes for name in sizes} == symbols
    for name in symbols:
        tried = {sizes[name] for sizes in outcome.sizes}
        assert {1, 5 if name == "T" else 2} <= tried
        assert len(tried) >= 4
    if len(symbols) > 1:
        traced = outcome.sizes[0]
        assert any(all(sizes[n] != traced[n] for n in symbols) for sizes in outcome.sizes)


def test_dynamic_axes_as_a_list(tmp_path: Path) -> None:
    """Symbols are made from the input's name and the axis."""
    target = TractNNEF("0.21.19", dynamic_axes={"input": [0, -2]})
    result = exported(nn.LayerNorm(3), torch.randn(2, 5, 3), target, tmp_path)
    assert {line for line in text_of(result.archive).splitlines() if "symbol" in line} == {
        "extension tract_symbol input_dim0;",
        "extension tract_symbol input_dim1;",
    }
    assert {name for sizes in result.assert_parity().sizes for name in sizes} == {"input_dim0", "input_dim1"}


def test_dynamic_axes_of_a_second_target_must_agree(tmp_path: Path) -> None:
    export = ModelExport(nn.ReLU(), torch.randn(2, 5), dynamic_axes={"input": {0: "B"}})
    export.to(TractNNEF("0.23.9", dynamic_axes={"input": {-2: "B"}}), tmp_path / "m.tgz").assert_parity()
    with pytest.raises(InputError, match="differ from those of this export"):
        export.to(TractNNEF("0.23.9", dynamic_axes={"input": {1: "T"}}), tmp_path / "m.tgz")


# ------------------------------------------------------------------------------------------ specific_tract_binary_path
@every_line
def test_specific_tract_binary_path(
    version: str, resolved_engine: Callable[[str], ResolvedEngine], tmp_path: Path
) -> None:
    """No wheel holds the command line: the program of `tests/tract_cli.py` stands for it, over the real library."""
    program = make_cli(tmp_path, resolved_engine(version))
    target = TractNNEF(specific_tract_binary_path=program, dynamic_axes={"x": {1: "T"}, "y": {1: "T"}})
    assert target.version == version
    args = (torch.randn(2, 5, 3), torch.randn(2, 5, 3))
    outcome = exported(Two(), args, target, tmp_path).assert_parity()
    assert len(outcome.sizes) >= 4
    halves = nn.Linear(4, 3).half()
    target = TractNNEF(specific_tract_binary_path=program, check_io_tolerance="approximate")
    exported(halves, torch.randn(2, 4).half(), target, tmp_path).assert_parity()


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        ("outputs[0].reshape(-1)[3] += 1", ParityError, "1 of 1 outputs differ"),
        ("outputs[0] = outputs[0].astype('f8')", ParityError, "dtype float64, expected float32"),
        ("sys.exit(1)", EngineRunError, "status 1"),
    ],
)
def test_a_wrong_tract_binary_is_caught(
    spoil: str, error: type[Exception], message: str, resolved_engine: Any, tmp_path: Path
) -> None:
    """Its output is compared by us, and its exit status is read."""
    target = TractNNEF(specific_tract_binary_path=make_cli(tmp_path, resolved_engine("0.23.9"), spoil=spoil))
    with pytest.raises(error, match=message):
        exported(nn.Tanh(), torch.randn(2, 4), target, tmp_path).assert_parity()


def test_a_tract_binary_of_another_version_is_refused(resolved_engine: Any, tmp_path: Path) -> None:
    program = make_cli(tmp_path, resolved_engine("0.23.9"))
    assert TractNNEF("0.23", specific_tract_binary_path=program).version == "0.23.9"
    with pytest.raises(InputError, match=r"is tract 0\.23\.9, not the version 0\.21\.19"):
        _ = TractNNEF("0.21.19", specific_tract_binary_path=program).version


# ------------------------------------------------------------------------------------------ properties and identity
@every_line
def test_specific_properties(version: str, tmp_path: Path) -> None:
    target = TractNNEF(version, specific_properties={"model": "enc-3", "note": 'a "b" \\ {c} 100%'})
    result = exported(nn.Linear(4, 3), torch.randn(2, 4), target, tmp_path)
    assert '"model", "enc-3"' in text_of(result.archive)
    result.assert_parity()


@every_line
def test_dump_identity_properties(version: str, tmp_path: Path) -> None:
    """Off unless asked: then nothing of the machine is in the archive."""
    plain = exported(nn.Linear(4, 3), torch.randn(2, 4), TractNNEF(version), tmp_path)
    assert "properties" not in text_of(plain.archive)
    target = TractNNEF(version, dump_identity_properties=True)
    result = exported(nn.Linear(4, 3), torch.randn(2, 4), target, tmp_path)
    assert all(word in text_of(result.archive) for word in ("export_user", "export_host", "export_date"))
    result.assert_parity()


# -------------------------------------------------------------------------------------------------------------- halves
@every_line
@pytest.mark.parametrize("kind", ["conv", "linear", "lstm"])
def test_force_linear_accumulation_in_f32(kind: str, version: str, tmp_path: Path) -> None:
    """A long sum whose terms nearly cancel: halves lose it, float32 keeps it."""
    if kind == "lstm":
        model, x = nn.LSTM(64, 5, bidirectional=True), torch.randn(7, 2, 64)
    elif kind == "conv":
        model, x = nn.Conv1d(200, 4, 5, padding=2), torch.randn(2, 200, 9)
    else:
        model, x = nn.Linear(1000, 5), torch.randn(3, 1000)
    target = TractNNEF(version, force_linear_accumulation_in_f32=True)
    exported(model.half(), x.half(), target, tmp_path).assert_parity("approximate")


@every_line
@pytest.mark.parametrize("rows", [1, 3])
def test_long_sums_of_halves(rows: int, version: str, tmp_path: Path) -> None:
    """Are in float32 without being asked, of one row too; engines before 0.21.13 would take halves."""
    model, x = nn.Linear(1000, 5).half(), torch.randn(rows, 1000).half()
    exported(model, x, TractNNEF(version), tmp_path).assert_parity("approximate")


def test_force_linear_accumulation_in_f32_is_what_helps(tmp_path: Path) -> None:
    model, x = nn.Conv1d(200, 4, 5, padding=2).half(), torch.randn(2, 200, 9).half()
    assert not exported(model, x, TractNNEF("0.23.9"), tmp_path).check_parity("approximate").passed


@every_line
def test_force_norm_in_f32(version: str, tmp_path: Path) -> None:
    """A mean far from zero and a small variance: scale and shift cancel, which halves do not survive."""
    model = nn.BatchNorm1d(6)
    nn.init.uniform_(model.running_var, 0.01, 0.02)  # type: ignore[arg-type]
    nn.init.uniform_(model.running_mean, 9.0, 11.0)  # type: ignore[arg-type]
    x = (torch.randn(4, 6, 5) * 0.1 + model.running_mean[:, None]).half()  # type: ignore[index]
    target = TractNNEF(version, force_norm_in_f32=True)
    exported(model.half(), x, target, tmp_path).assert_parity("approximate")
    assert not exported(model.half(), x, TractNNEF(version), tmp_path).check_parity("approximate").passed


# ----------------------------------------------------------------------------------------------------------- attention
class Attention(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, **self.options)


def heads(*counts: int, length: int = 5) -> tuple[Tensor, ...]:
    return tuple(torch.randn(2, count, length, 4) for count in counts)


CALLS = {
    "plain": (Attention(), heads(3, 3, 3)),
    "causal": (Attention(is_causal=True, scale=0.3), heads(3, 3, 3)),
    "mask": (Attention(attn_mask=torch.linspace(-2, 2, 25).reshape(5, 5)), heads(3, 3, 3)),
    "bool-mask": (Attention(attn_mask=torch.ones(5, 5, dtype=torch.bool).tril()), heads(3, 3, 3)),
    "grouped": (Attention(enable_gqa=True), heads(4, 2, 2)),
    "rank-3": (Attention(), tuple(torch.randn(2, 5, 4) for _ in range(3))),
}
FORMULAS = {
    "empty-row": (Attention(attn_mask=torch.ones(5, 5, dtype=torch.bool).tril(-1)), heads(3, 3, 3)),
    "oblong-causal": (Attention(is_causal=True), (*heads(3, length=4), *heads(3, 3))),
    "rank-2": (Attention(), tuple(torch.randn(5, 4) for _ in range(3))),
    "broadcast": (Attention(), (torch.randn(2, 3, 5, 4), *(torch.randn(1, 3, 5, 4) for _ in range(2)))),
    "double": (Attention(), tuple(x.double() for x in heads(3, 3, 3))),
}


@every_line
@pytest.mark.parametrize("call", list(CALLS))
def test_reify_sdpa_operator(call: str, version: str, tmp_path: Path) -> None:
    """The engine's own operator where the version has it, at sizes that were not traced."""
    model, args = CALLS[call]
    names = ("query", "key", "value")
    dynamic = {n: {0: "B"} if call.endswith("mask") else {0: "B", -2: "T"} for n in names}
    target = TractNNEF(version, reify_sdpa_operator=True, dynamic_axes=dynamic)
    result = exported(model, args, target, tmp_path)
    assert ("tract_transformers_sdpa" in operators(result)) == (version >= "0.22")
    result.assert_parity("approximate")


@pytest.mark.parametrize("version", ["0.22.4", "0.23.9"])
@pytest.mark.parametrize("call", list(FORMULAS))
def test_reify_sdpa_operator_only_where_it_is_right(call: str, version: str, tmp_path: Path) -> None:
    model, args = FORMULAS[call]
    result = exported(model, args, TractNNEF(version, reify_sdpa_operator=True), tmp_path)
    assert "tract_transformers_sdpa" not in operators(result)
    result.assert_parity("approximate")


@pytest.mark.parametrize("version", ["0.22.4", "0.23.9"])
def test_force_attention_inner_in_f32(version: str, tmp_path: Path) -> None:
    args = tuple(x.half() * 3 for x in heads(4, 2, 2, length=40))
    model = Attention(enable_gqa=True)
    for options, holds in (({"force_attention_inner_in_f32": True}, True), ({}, version != "0.22.4")):
        target = TractNNEF(version, reify_sdpa_operator=True, **options)  # type: ignore[arg-type]
        result = exported(model, args, target, tmp_path)
        assert "tract_transformers_sdpa" in operators(result)
        assert result.check_parity("approximate").passed == holds


def test_layers_are_reified(tmp_path: Path) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
    target = TractNNEF("0.23.9", reify_sdpa_operator=True, dynamic_axes={"src": {1: "T"}})
    result = exported(layer, torch.randn(2, 5, 8), target, tmp_path)
    assert "tract_transformers_sdpa" in operators(result)
    result.assert_parity("approximate")


# ---------------------------------------------------------------------------------------------------------- upsampling
@every_line
@pytest.mark.parametrize("rank", [3, 4, 5])
def test_upsample_with_debox(rank: int, version: str, tmp_path: Path) -> None:
    factors = (2, 3, 1)[: rank - 2]
    x = torch.randn(2, 3, *(4, 5, 2)[: rank - 2])
    target = TractNNEF(version, upsample_with_debox=True, dynamic_axes={"input": {0: "B", 2: "T"}})
    result = exported(nn.Upsample(scale_factor=factors), x, target, tmp_path)
    assert ("debox" in operators(result)) == (version >= "0.23")
    result.assert_parity("exact")


# ------------------------------------------------------------------------------------------ weights in blocks of 4 bits
class Tagger(nn.Module):
    """An embedding, linear layers with and without whole blocks, one weight that something else reads too."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 64)
        self.up = nn.Linear(64, 96)
        self.down = nn.Linear(96, 64, bias=False)
        self.odd = nn.Linear(64, 33)
        self.last = nn.Linear(33, 5)
        self.shared = nn.Parameter(torch.randn(5, 32))

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        x = self.words(tokens)
        x = x + self.down(F.relu(self.up(x)))
        return self.last(torch.tanh(self.odd(x))), F.linear(x[..., :32], self.shared) + self.shared.sum()


BLOCKS = {"q4_0": {"up", "down", "odd"}, "q4_0_with_embeddings": {"up", "down", "odd", "words"}}


@pytest.mark.parametrize("compression", list(BLOCKS))
@pytest.mark.parametrize("version", ["0.21.6", "0.21.10", "0.21.11", "0.21.19", "0.22.4", "0.23.0", "0.23.9"])
def test_weight_compression(version: str, compression: Any, tmp_path: Path) -> None:
    """Each version reads its own layout; what it computes is what the dequantised model computes, at all sizes."""
    model, tokens = Tagger().eval(), torch.randint(0, 11, (2, 7))
    target = TractNNEF(version, weight_compression=compression, dynamic_axes={"tokens": {0: "B", 1: "T"}})
    export = ModelExport(model, tokens)
    if compression != "q4_0" and version in ("0.21.6", "0.21.10"):
        with pytest.raises(UnsupportedOpsError, match="has no argument `datum_type`"):
            export.to(target, tmp_path / "m")
        return
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    result = export.to(target, tmp_path / "m")
    item_type = 0x2040 if version in ("0.21.6", "0.21.10") else 0x3040
    types = {path.stem: int.from_bytes(path.read_bytes()[48:50], "little") for path in (tmp_path / "m").glob("*.dat")}
    assert {name.partition(".")[0] for name, found in types.items() if found == item_type} == BLOCKS[compression]
    assert (tmp_path / "m" / "up.weight.dat").stat().st_size == 128 + 64 * 96 // 32 * 18
    outcome = result.assert_parity("approximate")
    assert len(outcome.sizes) >= 7
    plain = check_parity(target.engine(), result.archive, export.samples, output_names=result.output_names)
    assert not plain.passed, "4 bits are not what the model has"
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


@pytest.mark.parametrize("version", ["0.21.6", "0.21.19", "0.23.9"])
def test_weight_compression_of_halves_and_ties(version: str, tmp_path: Path) -> None:
    """A tied weight is one file, and is left as it is where one of its readers cannot take blocks."""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(11, 64)
            nn.init.normal_(self.words.weight, std=0.1)  # long sums of halves that cancel would test rounding only
            self.out = nn.Linear(64, 11, bias=False)
            self.out.weight = self.words.weight
            self.mid = nn.Linear(64, 64)

        def forward(self, tokens: Tensor) -> Tensor:
            return self.out(torch.tanh(self.mid(self.words(tokens))))

    model, tokens = Tied().half(), torch.randint(0, 11, (2, 7))
    target = TractNNEF(version, weight_compression="q4_0")
    result = exported(model, tokens, target, tmp_path)
    assert {v.name for _, v in result.graph.variables() if isinstance(v.weight, Q40Weight)} == {"mid_weight_1"}
    result.assert_parity("approximate")
    if version != "0.21.6":
        target = TractNNEF(version, weight_compression="q4_0_with_embeddings")
        result = exported(model, tokens, target, tmp_path)
        blocks = [v for _, v in result.graph.variables() if isinstance(v.weight, Q40Weight)]
        assert len(blocks) == 2
        result.assert_parity("approximate")


def test_weight_compression_is_refused_where_it_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOpsError, match=r"are read since tract 0\.21\.6"):
        exported(nn.Linear(64, 5), torch.randn(3, 64), TractNNEF("0.20.22", weight_compression="q4_0"), tmp_path)
    with pytest.raises(InputError, match="none of q4_0, q4_0_with_embeddings"):
        TractNNEF("0.23.9", weight_compression="q8")  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------- extensions and fragments
@pytest.mark.parametrize("version", ["0.21.6", "0.21.19", "0.22.4", "0.23.9"])
def test_custom_extensions(version: str, tmp_path: Path) -> None:
    target = TractNNEF(
        version,
        dynamic_axes={"input": {0: "T"}},
        custom_extensions=["tract_assert T >= 1", "extension tract_assert T < 99;"],
    )
    result = exported(nn.Linear(4, 3), torch.randn(5, 4), target, tmp_path)
    assert str(result.range) == "1 <= T <= 98"
    assert ("extension tract_assert T <= 98" in text_of(result.archive)) == (version != "0.21.6")
    outcome = result.check_parity()
    assert outcome.passed, outcome.describe()
    assert [dict(sizes) for sizes in outcome.refused_sizes] == [{"T": 99}, {"T": 0}]


def test_custom_extensions_that_a_version_cannot_parse_are_refused(tmp_path: Path) -> None:
    target = TractNNEF("0.20.22", dynamic_axes={"input": {0: "T"}}, custom_extensions=["tract_assert tg: T == 5"])
    with pytest.raises(SpecError, match=r"available since 0\.21\.8"):
        exported(nn.Linear(4, 3), torch.randn(5, 4), target, tmp_path)
    with pytest.raises(InputError, match="is not one extension"):
        TractNNEF("0.23.9", custom_extensions=["a b;\nc d"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tract_assert S <= 4", "S is no dynamic axis, these are T"),
        ("tract_assert T", "is not one comparison"),
        ("tract_assert T <= 4 ** T", "is no size"),
        ("tract_assert T < 1", "no size"),
        ("tract_assert T >= 6", "T=5 are outside of the range T >= 6"),
    ],
)
def test_assertions_are_checked_against_the_range(line: str, message: str, tmp_path: Path) -> None:
    target = TractNNEF("0.23.9", dynamic_axes={"input": {0: "T"}}, custom_extensions=[line])
    with pytest.raises(InputError, match=message):
        exported(nn.Linear(4, 3), torch.randn(5, 4), target, tmp_path)


LEAKY = """
fragment leaky(x: tensor<scalar>, slope: scalar) -> (y: tensor<scalar>)
{
    y = select(x > 0.0, x, x * slope);
}
"""


def own_relu(write: Callable[[Emitter, Value], Value]) -> Registry:
    rules = load_default().copy()
    rules.remove("aten::relu")

    @op("aten::relu", registry=rules)
    def relu(g: Emitter, self: Value) -> Value:
        return write(g, self)

    return rules


@every_line
def test_custom_fragments(version: str, tmp_path: Path) -> None:
    """A rule calls the fragment by its name, with the arguments it declares."""

    def write(g: Emitter, x: Value) -> Value:
        return g.leaky(x, slope=0.0, out=Expected(x.shape, x.dtype))

    target = TractNNEF(version, custom_fragments=[LEAKY], dynamic_axes={"input": {0: "T"}})
    result = exported(nn.ReLU(), torch.randn(5, 4), target, tmp_path, rules=own_relu(write))
    assert "= leaky(" in text_of(result.archive)
    result.assert_parity("exact")


def test_custom_fragments_that_declare_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no fragment is declared"):
        TractNNEF("0.23.9", custom_fragments=["y = relu(x);"])
    bad = Fragment(
        "bad", "fragment bad(x: tensor<scalar>) -> (y: tensor<scalar>)\n{\n y = nothing(x);\n}", frozenset({"nothing"})
    )
    with pytest.raises(SpecError, match="unknown in every version"):
        exported(nn.ReLU(), torch.randn(2, 3), TractNNEF("0.23.9", custom_fragments=[bad]), tmp_path)


# ---------------------------------------------------------------------------------------------------- where engines are
def test_engine_and_offline(resolved_engine: Callable[[str], ResolvedEngine], tmp_path: Path) -> None:
    model, x = nn.Linear(4, 3), torch.randn(2, 4)
    engine = resolved_engine("0.21.19")
    target = TractNNEF(engine=engine)
    assert exported(model, x, target, tmp_path).assert_parity().engine == f"tract {engine.version}"
    exported(model, x, TractNNEF("0.21.19", offline=True), tmp_path).assert_parity()
    with pytest.raises(InputError, match="either an engine or"):
        TractNNEF(engine=engine, specific_tract_binary_path="tract")


# ------------------------------------------------------------------------------------------------------------- khronos
def test_version_of_khronos(tmp_path: Path) -> None:
    target = KhronosNNEF(version="1.0.5")
    outcome = ModelExport(nn.Softplus(), torch.randn(2, 4)).to(target, tmp_path / "m.tgz").assert_parity()
    assert outcome.engine == "khronos 1.0.5"
    for version in ("2.0", "0.9"):
        with pytest.raises(SpecError, match=r"khronos (2\.0|0\.9)"):
            ModelExport(nn.ReLU(), torch.randn(2, 4)).to(KhronosNNEF(version), tmp_path / "n.tgz")


def test_check_io_of_khronos(tmp_path: Path) -> None:
    model, args, path = nn.LayerNorm(300).eval(), torch.randn(3, 300) * 100, tmp_path / "model.nnef.tgz"
    with pytest.raises(ParityError, match="beyond `exact`"):
        export_model_to_nnef(model, args, path, KhronosNNEF(check_io_tolerance="exact"))
    assert not path.exists()
    export_model_to_nnef(model, args, path, KhronosNNEF(check_io=False, check_io_tolerance="exact"))
    export_model_to_nnef(model, args, path, KhronosNNEF())


def test_khronos_has_no_dynamic_axes(tmp_path: Path) -> None:
    target = KhronosNNEF(dynamic_axes={"input": {0: "B"}})
    with pytest.raises(LowerError, match=r"NNEF 1\.0 has fixed sizes only"):
        ModelExport(nn.ReLU(), torch.randn(2, 4)).to(target, tmp_path / "m.tgz")
