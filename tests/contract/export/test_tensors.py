"""Tensors of another model in place of an archive's own: the engine gives the other model's numbers."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pytest_t2n.cli import main
from t2n_core import ExportResult, ModelExport, TractNNEF, export_tensors, replace_tensors
from t2n_core.engine.pool import engine_for
from t2n_core.errors import InputError
from t2n_core.nnef.reading.headers import headers_of
from t2n_core.torch_graph.tensor_files import named_tensors
from tests.contract.options.exports import every_line
from tests.releases import NEWEST


class Net(nn.Module):
    """Every way in which a weight is made into something else before it is computed with."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 32, 3, padding=1), nn.GroupNorm(8, 32)
        self.depthwise = nn.Conv2d(32, 32, 3, groups=32)
        self.groups = nn.GroupNorm(4, 32)
        self.up = nn.ConvTranspose2d(32, 64, 2, groups=2)
        self.prelu, self.rnn = nn.PReLU(64), nn.GRU(64, 32)
        self.head, self.parts = nn.Linear(32, 64), nn.Parameter(torch.randn(3, 32, 32) / 6)
        self.tied = nn.Linear(64, 32, bias=False)
        self.tied.weight = nn.Parameter(self.head.weight.detach().t().contiguous())
        for norm in (self.norm, self.groups):
            nn.init.uniform_(norm.weight, 0.5, 2)
            nn.init.normal_(norm.bias)

    def forward(self, x: Tensor) -> Tensor:
        y = self.groups(torch.relu(self.depthwise(self.norm(self.conv(x)))))
        y = self.prelu(self.up(y)).flatten(2).mT
        y = self.rnn(y)[0]
        first, second, third = self.parts.unbind()
        y = (
            y @ first.t()
            + nn.functional.conv1d(y.mT, second[..., None].contiguous()).mT
            + y @ third[:, :32].view(32, 32)
        )
        return self.tied(self.head(y))


class Adapted(nn.Module):
    """A layer with a product of two small matrices beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(32, 48)
        self.lora_a, self.lora_b = nn.Linear(32, 4, bias=False), nn.Linear(4, 48, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.lora_b(self.lora_a(x))


def ran(result: ExportResult, archive: Path, x: Tensor) -> np.ndarray[Any, Any]:
    reply = engine_for(result.target.resolved).run(archive, [(x.numpy(),)])  # type: ignore[attr-defined]
    assert reply.status == "ok", reply
    return reply.outputs[0][0]


def near(found: np.ndarray[Any, Any], expected: Tensor) -> bool:
    return bool(np.allclose(found, expected.detach().numpy(), rtol=1e-4, atol=1e-4))


@every_line
def test_swapped_tensors_give_the_other_models_numbers(version: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    model, other, x = Net().eval(), Net().eval(), torch.randn(1, 3, 5, 6)
    result = ModelExport(model, x).to(TractNNEF(version), tmp_path / "m.nnef.tgz")
    labels = headers_of(result.archive).keys()
    assert model.state_dict().keys() <= labels
    assert all(name in model.state_dict() or name.startswith("constant_") for name in labels)
    tensor_export = export_tensors(other, tmp_path / "tensors.tar", like=result.archive)
    assert tensor_export.left == ()
    swapped = replace_tensors(result.archive, tensor_export.path, tmp_path / "other.nnef.tgz")
    assert not near(other(x).detach().numpy(), model(x))
    assert near(ran(result, result.archive, x), model(x))
    assert near(ran(result, swapped, x), other(x))


@pytest.mark.parametrize("form", ["float16", "int8", "q4_0"])
def test_swapped_tensors_take_the_forms_of_the_archive(form: Any, tmp_path: Path) -> None:
    torch.manual_seed(1)
    model, other, x = Net().eval(), Net().eval(), torch.randn(1, 3, 5, 6)
    target = TractNNEF(NEWEST, weights=form)
    result = ModelExport(model, x).to(target, tmp_path / "m")
    torch.save(other.state_dict(), tmp_path / "other.pt")
    export_tensors(tmp_path / "other.pt", tmp_path / "tensors", like=result.archive)
    replace_tensors(result.archive, tmp_path / "tensors", tmp_path / "swapped")
    expected = ModelExport(other, x).to(target, tmp_path / "other")
    assert len(expected.stored) >= 2
    for file in (tmp_path / "other").rglob("*.dat"):
        assert (tmp_path / "swapped" / file.name).read_bytes() == file.read_bytes(), file.name
    assert np.array_equal(ran(result, tmp_path / "swapped", x), ran(expected, expected.archive, x))


def test_weights_that_a_norm_is_folded_into_are_refused(tmp_path: Path) -> None:
    """The archive has their product alone; counters have no effect."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 5, 3)).eval()
    archive = ModelExport(model, torch.randn(1, 3, 7, 6)).to(TractNNEF(NEWEST), tmp_path / "m.nnef.tgz").archive
    with pytest.raises(InputError, match=r"no tensor `0\.weight`, `0\.bias`, `1\.weight`") as error:
        export_tensors(model, tmp_path / "tensors.tar", like=archive)
    assert "batch norm" in str(error.value)
    rest = {name: tensor for name, tensor in model.state_dict().items() if name[0] == "2" or "num_batches" in name}
    assert export_tensors(rest, tmp_path / "tensors.tar", like=archive).left == ("1.num_batches_tracked",)


@pytest.mark.parametrize("way", ["apart", "merged"])
def test_adapters(way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(1)
    base, x = Adapted().eval(), torch.randn(3, 32)
    tuned = copy.deepcopy(base)
    for name, parameter in tuned.named_parameters():
        if "lora" in name:
            nn.init.normal_(parameter, std=0.3)
    if way == "merged":
        model, merged = base.base, copy.deepcopy(base.base)
        merged.weight.data += tuned.lora_b.weight @ tuned.lora_a.weight
        chosen, other, expected = ["--changed-from", str(tmp_path / "base.pt")], merged, tuned(x)
        model.weight.data += base.lora_b.weight @ base.lora_a.weight
    else:
        model, other, expected, chosen = base, tuned, tuned(x), ["--names", "lora_*"]
    result = ModelExport(model, x).to(TractNNEF(NEWEST), tmp_path / "m.nnef.tgz")
    for name, module in (("base", model), ("tuned", other)):
        torch.save(module.state_dict(), tmp_path / f"{name}.pt")
    command = ["export-tensors", str(tmp_path / "tuned.pt"), *chosen]
    assert main([*command, "-o", str(tmp_path / "alone"), "--like", str(result.archive)]) == 0
    files = {file.name for file in (tmp_path / "alone").iterdir()}
    assert files == ({"weight.dat"} if way == "merged" else {"lora_a.weight.dat", "lora_b.weight.dat"})
    assert main([*command, "-o", str(tmp_path / "tuned.tgz"), "--into", str(result.archive)]) == 0
    assert "tensors in place of those of" in capsys.readouterr().out
    assert near(ran(result, tmp_path / "tuned.tgz", x), expected)
    assert not near(ran(result, result.archive, x), expected)


def safetensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write the format by hand: the length of a header, the header, numbers."""
    names = {torch.float32: "F32", torch.bfloat16: "BF16", torch.int8: "I8"}
    header, offset, parts = dict[str, Any](), 0, []
    for name, tensor in tensors.items():
        part = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {
            "dtype": names[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(part)],
        }
        offset += len(part)
        parts.append(part)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


def test_tensors_of_safetensors(tmp_path: Path) -> None:
    """In two files, some of bfloat16 or not aligned."""
    tensors = {"a": torch.randn(3, 4), "odd": torch.ones(3, dtype=torch.int8), "b": torch.randn(5).bfloat16()}
    safetensors(tmp_path / "one.safetensors", tensors)
    safetensors(tmp_path / "two.safetensors", {"odd2": torch.ones(1, dtype=torch.int8), "c/d": torch.randn(2, 2)})
    tensor_export = export_tensors(tmp_path, tmp_path / "out", ["?", "c/*"])
    assert set(tensor_export.names) == {"a", "b", "c/d"}
    content = np.frombuffer((tmp_path / "out" / "b.dat").read_bytes()[128:], "<f4")
    np.testing.assert_array_equal(content, tensors["b"].float().numpy())
    (tmp_path / "one.safetensors").write_bytes(b"\xff" * 20)
    with pytest.raises(InputError, match="not a file of safetensors"):
        export_tensors(tmp_path, tmp_path / "out2")


ENTRY = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}


@pytest.mark.parametrize(
    "header",
    [
        b"[" * 200_000 + b"]" * 200_000,
        b'{"__metadata__": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b"[]",
        b"\xff",
        *(
            json.dumps({"w": {**ENTRY, **wrong}}).encode()
            for wrong in (
                {"data_offsets": ["0", "24"]},
                {"data_offsets": [0]},
                {"data_offsets": [24, 0]},
                {"data_offsets": [-24, 0]},
                {"data_offsets": [0, 10**30]},
                {"shape": [-2, -3]},
                {"shape": [2, "3"]},
                {"shape": [0, 2**62, 4], "data_offsets": [0, 0]},
                {"shape": 6},
                {"dtype": "F8"},
                {"dtype": None},
            )
        ),
        json.dumps({"w": "text"}).encode(),
    ],
)
def test_damaged_safetensors_are_refused(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(24))
    with pytest.raises(InputError, match=r"w\.safetensors"):
        dict(named_tensors(path))


def test_a_pipe_holds_no_tensors(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "w.safetensors")
    with pytest.raises(InputError, match="holds no tensors"):
        named_tensors(tmp_path / "w.safetensors")


REFUSED = {
    "a wrong name": ({"names": "nothing.*"}, "no tensor is called nothing"),
    "no difference": ({"changed_from": nn.Linear(4, 4)}, "no tensors to write"),
    "another shape": ({"like": nn.Linear(4, 3)}, r"`weight` has the shape \[4, 4\], and \[3, 4\] in the archive"),
    "a constant": ({"like": nn.Sequential(nn.Linear(4, 4))}, "has no tensor `weight`, `bias`"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_would_not_be_the_models_numbers_is_refused(name: str, tmp_path: Path) -> None:
    options, message = REFUSED[name]
    model = nn.Linear(4, 4)
    arguments = dict(options)
    if "like" in arguments:
        target = TractNNEF(NEWEST, check_io=False)
        arguments["like"] = ModelExport(arguments["like"].eval(), torch.randn(2, 4)).to(target, tmp_path / "m").archive
    if "changed_from" in arguments:
        arguments["changed_from"] = model
    with pytest.raises(InputError, match=message):
        export_tensors(model, tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


MEMORY = """
import sys, threading, time
from t2n_core import export_tensors
def own():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))
peak, done, before = [0], [], own()
def watch():
    while not done:
        peak[0] = max(peak[0], own())
        time.sleep(0.002)
thread = threading.Thread(target=watch); thread.start()
export_tensors(sys.argv[1], sys.argv[2], like=sys.argv[3] if len(sys.argv) > 3 else None)
done.append(1); thread.join()
print(peak[0] - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the memory of a process")
@pytest.mark.parametrize("form", ["", "int8"])
def test_files_larger_than_the_memory_that_is_taken(form: str, tmp_path: Path) -> None:
    tensors = {f"{n}.weight": torch.randn(2048, 2048) for n in range(8)}
    safetensors(tmp_path / "in.safetensors", tensors)
    more = []
    if form:
        model = nn.Sequential(*(nn.Linear(2048, 2048, bias=False) for _ in range(8))).eval()
        target = TractNNEF(NEWEST, check_io=False, weights=form)
        more = [str(ModelExport(model, torch.randn(1, 2048)).to(target, tmp_path / "m").archive)]
    words = [sys.executable, "-c", MEMORY, str(tmp_path / "in.safetensors"), str(tmp_path / "out"), *more]
    # else the allocator of each thread keeps freed tensors for later ones, more of them on more cores
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(1 << 20)}
    process = subprocess.run(words, capture_output=True, text=True, check=False, timeout=240, env=environment)
    assert process.returncode == 0, process.stderr[-500:]
    kilobytes = int(process.stdout)
    assert kilobytes < 60_000, f"{kilobytes / 1e3:.0f} MB beside importing, of 134 MB of tensors"
