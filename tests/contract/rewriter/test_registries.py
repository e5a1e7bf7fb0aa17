"""`FUNCTION_REWRITER` and `MODULE_REWRITER` as in mmdeploy, whose registries torch-to-nnef's documentation follows."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF, rewriter
from t2n_core.errors import RewriteError
from t2n_core.rewriter import FUNCTION_REWRITER, MODULE_REWRITER, SYMBOLIC_REWRITER
from tests.nets import OfFunction
from tests.releases import NEWEST

TRACT = TractNNEF(NEWEST, check_io=False)
SRCNN_PATH = "mmagic.models.backbones.sr_backbones.SRCNN"


@pytest.fixture(autouse=True)
def empty_registries() -> Iterator[None]:
    with FUNCTION_REWRITER, MODULE_REWRITER, SYMBOLIC_REWRITER:
        yield


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put SRCNN at the path of mmagic's class."""
    for name in ("mmagic", "mmagic.models", "mmagic.models.backbones", "mmagic.models.backbones.sr_backbones"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["mmagic.models.backbones.sr_backbones"].SRCNN = SRCNN


class SRCNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.upscale_factor = 3
        self.img_upsampler = nn.Upsample(scale_factor=3, mode="bicubic", align_corners=False)
        self.conv = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(self.img_upsampler(x))


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 2.0


def names(model: Any, x: Any = None, **options: Any) -> list[str]:
    """Return the operators that are written for a module, or for a function of one tensor."""
    module = model if isinstance(model, nn.Module) else OfFunction(lambda x: model(x))
    graph = ModelExport(module.eval(), torch.randn(3) if x is None else x, **options).lower(TRACT)
    return [operation.name for operation in graph.operations if operation.name != "external"]


def test_example_of_repeat(tmp_path: Path) -> None:
    @FUNCTION_REWRITER.register_rewriter(func_name="torch.Tensor.repeat", backend="tract")
    def repeat_static(input, *size):
        origin_func = FUNCTION_REWRITER.get_context().origin_func
        if input.dim() == 1 and len(size) == 1:
            return origin_func(input.unsqueeze(0), *([1, *list(size)])).squeeze(0)
        return origin_func(input, *size)

    result = ModelExport(OfFunction(lambda x: x.repeat(3)), torch.randn(5)).to(TRACT, tmp_path / "m.tgz")
    (tile,) = (operation for operation in result.graph.operations if operation.name == "tile")
    assert tile.arguments["repeats"] == [1, 3]
    assert result.assert_parity("exact").passed


def test_registered_rewriters_can_be_left_out() -> None:
    function = FUNCTION_REWRITER.register_rewriter(func_name=scaled)(lambda x: x + x)
    assert function.__name__ == "<lambda>"  # the decorator returns what it decorates
    assert names(scaled) == ["add"]
    assert names(scaled, registered_rewriters=False) == ["mul"]


@pytest.mark.parametrize("func_name", ["torch.Tensor.mul", "torch.mul", torch.mul])
def test_func_name_of_pytorch(func_name: Any) -> None:
    FUNCTION_REWRITER.register_rewriter(func_name=func_name)(lambda input, other: input + input)
    assert names(scaled) == ["add"]


def test_func_name_of_a_custom_function_is_its_path() -> None:
    sys.modules.setdefault(__name__, sys.modules[scaled.__module__])
    FUNCTION_REWRITER.register_rewriter(func_name=f"{__name__}.scaled")(lambda x: x + x)
    assert names(scaled) == ["add"]


@pytest.mark.usefixtures("library")
def test_func_name_of_a_method() -> None:
    FUNCTION_REWRITER.register_rewriter(func_name=f"{SRCNN_PATH}.forward")(lambda self, x: self.conv(x))
    image = torch.randn(1, 2, 4, 5)
    assert names(SRCNN(), image) == names(nn.Conv2d(2, 2, 3, padding=1), image)


def test_backend_of_a_function() -> None:
    FUNCTION_REWRITER.register_rewriter(func_name=scaled, backend="khronos")(lambda x: -x)
    assert names(scaled) == ["mul"]
    FUNCTION_REWRITER.register_rewriter(func_name=scaled, backend="tract")(lambda x: x + x)
    FUNCTION_REWRITER.register_rewriter(func_name=scaled)(lambda x: x - -x)  # the default, for other targets
    assert names(scaled) == ["add"]


@pytest.mark.parametrize("backend", [{}, {"backend": None}, {"backend": "default"}])
def test_default_backend(backend: Any) -> None:
    FUNCTION_REWRITER.register_rewriter(func_name=scaled, **backend)(lambda x: x + x)
    assert names(scaled) == ["add"]


def test_replacement_may_be_a_function_of_pytorch() -> None:
    FUNCTION_REWRITER.register_rewriter(func_name="torch.tanh", backend="tract")(torch.sigmoid)
    assert names(torch.tanh) == ["sigmoid"]


def test_replacement_gets_the_arguments_as_written() -> None:
    seen: list[Any] = []

    @FUNCTION_REWRITER.register_rewriter(func_name="torch.sum")
    def summed(input, dim, keepdim=False):
        seen.append((tuple(input.shape), dim, keepdim))
        return FUNCTION_REWRITER.get_context().origin_func(input, dim=dim, keepdim=keepdim)

    names(lambda x: torch.sum(x, 1, keepdim=True), torch.randn(2, 3))
    assert seen[0] == ((2, 3), 1, True)


@pytest.mark.parametrize("config", [{"channels": 3}, types.SimpleNamespace(channels=3)])
def test_context_of_a_function(config: Any) -> None:
    """A first parameter `ctx` gets the context, whose `cfg` is the object that the export gets."""

    @FUNCTION_REWRITER.register_rewriter(func_name=scaled)
    def rewritten(ctx, x):
        assert ctx is FUNCTION_REWRITER.get_context()
        assert ctx.cfg is config
        return ctx.origin_func(x) + x

    assert names(scaled, deploy_config=config) == ["mul", "add"]
    with pytest.raises(RewriteError, match="while no rewrite is running"):
        FUNCTION_REWRITER.get_context()


def test_origin_func_of_a_method() -> None:
    @FUNCTION_REWRITER.register_rewriter(func_name=OfFunction.forward)
    def forward(self, x):
        return FUNCTION_REWRITER.get_context().origin_func(self, x + 1.0)

    assert names(scaled) == ["add", "mul"]


def register_srcnn(made: list[Any], **arguments: Any) -> None:
    @MODULE_REWRITER.register_rewrite_module(SRCNN_PATH, backend="tract", **arguments)
    class SRCNNWrapper(nn.Module):
        def __init__(self, module, cfg, channels=(3, 64, 32, 3), kernel_sizes=(9, 1, 5)):
            super().__init__()
            self._module = module
            module.img_upsampler = nn.Upsample(scale_factor=module.upscale_factor, mode="bilinear", align_corners=False)
            made.append((module, cfg, channels))

        def forward(self, *args, **kwargs):
            return self._module(*args, **kwargs)


@pytest.mark.usefixtures("library")
def test_example_of_srcnn() -> None:
    """The wrapper gets the module, the deployment config and the arguments of the decorator."""
    made: list[Any] = []
    register_srcnn(made, channels=(2, 2))
    model, image = SRCNN().eval(), torch.randn(1, 2, 5, 7)
    net, upsampler = nn.Sequential(model), model.img_upsampler
    written = names(net, image, deploy_config={"scale": 2})
    assert made[0][0] is model
    assert made[0][1:] == ({"scale": 2}, (2, 2))
    assert model.img_upsampler is upsampler
    model.img_upsampler = nn.Upsample(scale_factor=3, mode="bilinear", align_corners=False)
    assert written == names(net, image, registered_rewriters=False)


@pytest.mark.usefixtures("library")
def test_changes_of_a_refused_wrapper_are_undone() -> None:
    model = SRCNN().eval()
    net = nn.Sequential(model)

    @MODULE_REWRITER.register_rewrite_module(SRCNN, backend="tract")
    def refused(module, cfg):
        module.train()
        module.added = nn.Linear(2, 3)
        module.register_buffer("extra", torch.ones(3), persistent=False)
        raise RewriteError("no")

    with pytest.raises(RewriteError, match="no"):
        names(net, torch.randn(1, 2, 4, 5))
    assert not any(module.training for module in net.modules())
    assert sorted(dict(net.named_modules())) == ["", "0", "0.conv", "0.img_upsampler"]
    assert not model._non_persistent_buffers_set
    assert not dict(model.named_buffers())


def test_module_type_and_backend() -> None:
    net = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh(), nn.ReLU()))
    MODULE_REWRITER.register_rewrite_module(nn.ReLU, backend="khronos")(lambda module, cfg: nn.Tanh())
    assert names(net) == ["relu", "tanh", "relu"]
    MODULE_REWRITER.register_rewrite_module(module_type=nn.ReLU)(lambda module, cfg: nn.Sigmoid())
    assert names(net) == ["sigmoid", "tanh", "sigmoid"]


def test_registry_is_entered_copied_and_cleared() -> None:
    with FUNCTION_REWRITER as entered:
        assert entered is FUNCTION_REWRITER
        FUNCTION_REWRITER.register_rewriter(func_name="torch.tanh")(lambda x: torch.sigmoid(x))
        copied = FUNCTION_REWRITER.copy()
        FUNCTION_REWRITER.clear()
        assert (len(FUNCTION_REWRITER), len(copied)) == (0, 1)
    assert names(torch.tanh) == ["tanh"]
    assert names(torch.tanh, rewriters=[*copied]) == ["sigmoid"]


def test_rewriters_of_an_export_precede_registered_ones() -> None:
    FUNCTION_REWRITER.register_rewriter(func_name="torch.tanh")(lambda x: torch.sigmoid(x))
    FUNCTION_REWRITER.register_rewriter(func_name="torch.abs")(lambda x: torch.relu(x))
    mine = rewriter.function(torch.tanh)(lambda ctx, x: torch.exp(x))

    def model(x):
        return torch.tanh(torch.abs(x))

    assert names(model, rewriters=[mine]) == ["relu", "exp"]
    assert names(model, rewriters=[mine], registered_rewriters=False) == ["abs", "exp"]


def test_later_registration_takes_the_place_of_the_first() -> None:
    FUNCTION_REWRITER.register_rewriter(func_name="torch.tanh")(lambda x: torch.sigmoid(x))
    FUNCTION_REWRITER.register_rewriter(func_name="torch.erf")(lambda x: x)
    with warnings.catch_warnings():  # an unused one is no reason for a warning
        warnings.simplefilter("error", rewriter.RewriteWarning)
        names(torch.tanh)
    FUNCTION_REWRITER.register_rewriter(func_name=torch.Tensor.tanh)(lambda x: torch.relu(x))
    with pytest.warns(rewriter.RewriteWarning, match="takes the place of torch.tanh"):
        assert names(torch.tanh) == ["relu"]


@pytest.mark.parametrize(
    "register",
    [
        lambda: FUNCTION_REWRITER.register_rewriter(func_name="torch.tanh", ir="onnx"),
        lambda: FUNCTION_REWRITER.register_rewriter(func_name="torch.tanh")(3),
        lambda: FUNCTION_REWRITER.register_rewriter(func_name=3)(len),
        lambda: SYMBOLIC_REWRITER.register_symbolic("tanh"),
        lambda: SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True, ir="onnx"),
        lambda: SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True)(3),
        lambda: SYMBOLIC_REWRITER.register_symbolic("tanh", is_pytorch=True, arg_descriptors=["q"]),
        lambda: MODULE_REWRITER.register_rewrite_module(nn.ReLU)(3),
    ],
)
def test_wrong_registrations_are_refused(register: Any) -> None:
    with pytest.raises(RewriteError):
        register()


def test_wrapper_without_config_is_refused() -> None:
    MODULE_REWRITER.register_rewrite_module(OfFunction)(lambda module: module)
    with pytest.raises(RewriteError, match="its first two arguments are the module and the cfg"):
        names(torch.tanh)
