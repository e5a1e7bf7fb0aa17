"""Declarations of operators, read from Rust source."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from t2n_core.errors import InputError
from t2n_core.releases.scan.sources import Declaration, read_declarations, source_of

SOURCE = """
pub fn register(registry: &mut Registry) {
    registry.register_primitive(
        "tract_core_sort",  // by value
        &[
            TypeName::Scalar.tensor().named("input"),
            TypeName::Integer.array().named("axes"),
            ast::TypeSpec::Tuple(vec![TypeName::String.spec(), TypeName::Integer.spec()]).array().named("pairs"),
            TypeName::String.named("order").default("up, (stable)"),
            TypeName::Scalar.named("eps").default(1e-6f32),
            TypeName::Scalar.tensor().named("weights"),
            TypeName::Integer.named("seed"),
        ],
        &[("values", TypeName::Scalar.tensor()), ("indices", TypeName::Integer.tensor())],
        load,
    );
    registry.register_primitive("tract_core_range", &range_parameters(), &[("output", TypeName::Any.tensor())], load);
    registry.register_unit_element_wise("tract_core_erf", &ops::math::Erf {});
    registry.register_binary("tract_shl", &ops::math::ShiftLeft);
    registry.register_primitive(concat!("tract_core_", stringify!($name)), &[], &[], load);
}

fn range_parameters() -> Vec<Parameter> {
    vec![TypeName::Integer.named("start"), TypeName::Logical.named("closed").default(false)]
}

fn load(builder: &mut ModelBuilder, invocation: &ResolvedInvocation) -> TractResult<Value> {
    let input = invocation.named_arg_as(builder, "input")?;
    let weights: Option<OutletId> = invocation.get_named_arg_as(builder, "weights")?;
    let seed = invocation.named_arg_as(builder, "seed").ok();
}
"""
DECLARED = {
    "tract_core_sort": Declaration(
        "primitive",
        'input: tensor<scalar>, axes: integer[], pairs: (string, integer)[], order: string = "up, (stable)", '
        "eps: scalar = 1e-6, weights: tensor<scalar> = none, seed: integer = none",
        "values: tensor<scalar>, indices: tensor<integer>",
    ),
    "tract_core_range": Declaration("primitive", "start: integer, closed: logical = false", "output: tensor<?>"),
    "tract_core_erf": Declaration("unit_element_wise", "x: tensor<scalar>", "y: tensor<scalar>"),
    "tract_shl": Declaration("binary", "x: tensor<scalar>, y: tensor<scalar>", "z: tensor<scalar>"),
}


def test_declarations_of_a_folder_and_of_an_sdist(tmp_path: Path) -> None:
    folder = tmp_path / "tract-0.24.0" / "nnef"
    folder.mkdir(parents=True)
    (folder / "ops.rs").write_text(SOURCE, "utf-8")
    assert read_declarations(folder) == DECLARED
    with tarfile.open(tmp_path / "tract-0.24.0.tar.gz", "w:gz") as archive:
        archive.add(folder.parent, "tract-0.24.0")
    assert read_declarations(tmp_path / "tract-0.24.0.tar.gz") == DECLARED


def test_the_source_of_a_release_has_its_whole_number() -> None:
    sources = [Path("tract-0.23.10.tar.gz"), Path("v/tract-0.23.1.tar.gz"), Path("tract-0.22.4")]
    assert source_of("0.23.1", sources) == Path("v/tract-0.23.1.tar.gz")
    assert source_of("0.22.4", sources) == Path("tract-0.22.4")
    assert source_of("0.23.2", sources) is None


def test_a_file_that_is_no_archive_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "tract-0.24.0.tar.gz").write_bytes(b"no archive")
    with pytest.raises(InputError, match="is no sdist of tract"):
        read_declarations(tmp_path / "tract-0.24.0.tar.gz")
