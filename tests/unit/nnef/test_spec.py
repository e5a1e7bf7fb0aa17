"""The operator tables: look-up, versions, messages, binding."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

from t2n_core.errors import SpecError
from t2n_core.nnef.signatures import REQUIRED, Parameter, fragment_signature, parse_parameters
from t2n_core.nnef.spec import spec_for
from tests.releases import NEWEST

ROOT = Path(__file__).parents[3]


def names(version: str, operator: str) -> list[str]:
    return [p.name for p in spec_for("tract", version).operator(operator).parameters]


@pytest.mark.parametrize(
    ("operator", "version", "message"),
    [
        ("tract_core_silu", "0.21.19", "tract 0.21.19 has no operator `tract_core_silu`; available since 0.23.0"),
        ("tract_core_load", "0.23.0", "available only up to 0.22.4"),
        ("tract_core_load", "0.20.4", "available since 0.20.5"),
        ("rcp", NEWEST, "only declared in its standard library, not implemented"),
        ("any_reduce", "0.22.4", "available since 0.23.0"),
        ("multilinear_upsample", "0.23.2", "available since 0.23.3"),
        ("tract_resource_get", NEWEST, "no wheel can enable the registry"),
        ("tract_core_einsun", NEWEST, "unknown in every version; did you mean `tract_core_einsum`"),
    ],
)
def test_absent_operators_say_where_they_are(operator: str, version: str, message: str) -> None:
    spec = spec_for("tract", version)
    with pytest.raises(SpecError) as caught:
        spec.operator(operator)
    assert message in caught.value.message
    assert caught.value.target == f"tract {version}"
    assert not spec.has(operator)
    assert operator not in set(spec.names())


@pytest.mark.parametrize(
    ("operator", "argument", "without", "with_it"),
    [
        ("tract_core_scatter_elements", "reduction", "0.22.4", "0.23.0"),
        ("tract_core_scan", "reset_every_turn", "0.20.7", "0.20.18"),
        ("tract_core_scan", "seq_length", "0.20.5", "0.20.4"),
        ("tract_core_scan", "external_state", "0.22.4", "0.23.0"),
        ("tract_transformers_scaled_masked_softmax", "post_softmax_mask", "0.22.4", "0.23.0"),
        ("tract_core_gather", "datum_type", "0.21.10", "0.21.11"),
        ("tract_core_gru_seq", "projected", "0.23.8", "0.23.9"),
        ("tract_pulse_delay", "zero_pad", "0.23.7", "0.23.8"),
    ],
)
def test_arguments_by_version(operator: str, argument: str, without: str, with_it: str) -> None:
    assert not spec_for("tract", without).has(operator, argument)
    assert spec_for("tract", with_it).has(operator, argument)


def test_slice_has_a_stride_in_every_version() -> None:
    """tract's own declaration lacks it, its code reads it."""
    for version in ("0.19.2", "0.20.22", "0.21.13", "0.22.4", NEWEST):
        assert names(version, "slice") == ["input", "axes", "begin", "end", "stride"]


def test_topk_takes_a_tensor_from_0_20_19() -> None:
    assert spec_for("tract", "0.20.18").operator("tract_core_topk").parameters[1].type == "integer"
    assert spec_for("tract", "0.20.19").operator("tract_core_topk").parameters[1].type == "tensor<integer>"


def test_registries_move() -> None:
    name = "tract_transformers_silu"
    assert spec_for("tract", "0.22.4").operator(name).registry == "tract_transformers"
    assert spec_for("tract", "0.23.0").operator(name).registry == "tract_core"
    assert spec_for("tract", NEWEST).operator("add").registry == "tract_nnef"


def test_broken_operators_resolve_but_are_not_had() -> None:
    spec = spec_for("tract", "0.22.4")
    assert "length_of" in spec.operator("area_downsample").broken
    assert not spec.has("area_downsample")
    assert spec.operator("nearest_upsample").broken
    assert not spec_for("tract", "0.23.3").operator("nearest_upsample").broken


def test_newer_version_is_taken_as_the_newest_known() -> None:
    newest, future = spec_for("tract", NEWEST), spec_for("tract", "0.25.1")
    assert future.extrapolated
    assert not newest.extrapolated
    assert set(future.names()) == set(newest.names())
    assert str(future) == "tract 0.25.1"
    late_patch = spec_for("tract", "0.22.7")
    assert late_patch.has("tract_core_load")
    assert not late_patch.extrapolated


@pytest.mark.parametrize(
    ("target", "version", "message"),
    [
        ("tract", "0.19.1", "too old: the first supported version is 0.19.2"),
        ("tract", "newest", "not a version"),
        ("onnx", "1.0", "unknown target"),
        ("khronos", "0.9", "too old"),
    ],
)
def test_versions_that_are_refused(target: str, version: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        spec_for(target, version)  # type: ignore[arg-type]


def test_specs_are_cached() -> None:
    assert spec_for("tract", "0.21.19") is spec_for("tract", "0.21.19")


def test_khronos_is_the_standard() -> None:
    spec = spec_for("khronos", "1.0.5")
    assert len(set(spec.names())) == 118
    assert not spec.has("softabs")
    gather = spec.operator("gather")
    assert gather.parameters[2] == Parameter("axis", "integer", 0)
    assert [r.type for r in spec.operator("unstack").results] == ["tensor<?>[]"]
    assert spec.operator("conv").registry == ""
    assert not spec_for("khronos", "1.0.1").has("gather")


def test_bind_orders_and_completes() -> None:
    conv = spec_for("tract", "0.21.19").operator("conv")
    assert conv.bind(["x", "w"], {"stride": [2], "bias": "b"}) == {
        "input": "x",
        "filter": "w",
        "bias": "b",
        "stride": [2],
    }
    assert list(conv.bind([], {"groups": 2, "filter": "w", "input": "x"})) == ["input", "filter", "groups"]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (["x"], {}, "needs the argument `filter`"),
        (["x", "w"], {"strides": [1]}, "has no argument `strides`; it takes `input`, `filter`"),
        (["x", "w"], {"filter": "v"}, "got the argument `filter` twice"),
        (list("abcdefghi"), {}, "takes 8 arguments, 9 were passed"),
    ],
)
def test_bind_refuses(args: list[str], kwargs: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        spec_for("tract", "0.21.19").operator("conv").bind(args, kwargs)


def test_optional_argument_without_default() -> None:
    softmax = spec_for("tract", "0.21.19").operator("tract_core_softmax")
    assert softmax.parameters[2].default is None
    assert softmax.bind(["x"], {"axes": [1]}) == {"x": "x", "axes": [1]}


def test_parameter_text() -> None:
    text = 'x: tensor<scalar>[], p: (integer, integer)[] = [], e: scalar = 1e-6, s: string = "a", n: integer = none'
    assert parse_parameters(text) == (
        Parameter("x", "tensor<scalar>[]"),
        Parameter("p", "(integer,integer)[]", []),
        Parameter("e", "scalar", 1e-6),
        Parameter("s", "string", "a"),
        Parameter("n", "integer", None),
    )
    assert parse_parameters("") == ()
    first = parse_parameters(text)[0]
    assert first.is_tensor
    assert first.is_array
    assert first.default is REQUIRED
    with pytest.raises(ValueError, match="not a parameter"):
        parse_parameters("x tensor")


def test_fragment_signature() -> None:
    text = """
    # fragment other( y: scalar ) -> ( z: scalar )
    fragment mine<?>( x: tensor<?>,   # the input
                      k: (integer, integer)[] = [(1, 2)] )
    -> ( y: tensor<?>, z: tensor<scalar>[] )
    { y = copy(x); z = [y]; }
    """
    signature = fragment_signature("mine", text)
    assert signature.parameters == (Parameter("x", "tensor<?>"), Parameter("k", "(integer,integer)[]", [(1, 2)]))
    assert [r.name for r in signature.results] == ["y", "z"]
    for name, body in (("other", text), ("mine", "fragment mine( x: tensor<?> )"), ("mine", "fragment mine(x) -> (y)")):
        with pytest.raises(SpecError, match="fragment"):
            fragment_signature(name, body)


@pytest.mark.parametrize(
    ("registry", "since"), [("tract_core", "0.19.0"), ("tract_extra", "0.20.19"), ("tract_transformers", "0.21.13")]
)
def test_registries_begin_with_their_first_operator(registry: str, since: str) -> None:
    assert spec_for("tract", "0.19.15").registry_since(registry) == Version(since)
    assert spec_for("tract", NEWEST).registry_since("mine") is None


def test_tables_are_built_from_their_sources() -> None:
    script = ROOT / "tools" / "build_spec_tables.py"
    run = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_nnef_modules_import_no_torch() -> None:
    code = "import sys, t2n_core.nnef.archive, t2n_core.nnef.legality; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
