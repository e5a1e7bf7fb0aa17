"""Document 003, rewriters: what it states, in its order. Its examples have the backend tract in place of tensorrt."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ExportResult, ModelExport, TractNNEF
from t2n_core.errors import RewriteError
from t2n_core.rewriter import FUNCTION_REWRITER, MODULE_REWRITER, SYMBOLIC_REWRITER
from tests.nets import OfFunction

TRACT = TractNNEF("0.23.9", check_io=False)


@pytest.fixture(autouse=True)
def empty_registries() -> Iterator[None]:
    with FUNCTION_REWRITER, MODULE_REWRITER, SYMBOLIC_REWRITER:
        yield


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a module with the path of mmagic's file, in which SRCNN stands for the real one."""
    for name in ("mmagic", "mmagic.models", "mmagic.models.backbones", "mmagic.models.backbones.sr_backbones"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    module = sys.modules["mmagic.models.backbones.sr_backbones"]
    module.SRCNN = SRCNN  # type: ignore[attr-defined]
    return module


class SRCNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.upscale_factor = 3
        self.img_upsampler = nn.Upsample(scale_factor=3, mode="bicubic", align_corners=False)
        self.conv = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(self.img_upsampler(x))

    def init_weights(self, value: float) -> None:
        nn.init.constant_(self.conv.weight, value)


def scaled(x: torch.Tensor) -> torch.Tensor:
    """A custom function."""
    return x * 2.0


def export(model: nn.Module, args: Any, path: Path, target: TractNNEF = TRACT, **options: Any) -> ExportResult:
    return ModelExport(model.eval(), args, **options).to(target, path / "model.nnef.tgz")


def names(result: ExportResult) -> list[str]:
    return [operation.name for operation in result.graph.operations if operation.name != "external"]


def register_repeat_static() -> None:
    @FUNCTION_REWRITER.register_rewriter(func_name="torch.Tensor.repeat", backend="tract")
    def repeat_static(input, *size):
        ctx = FUNCTION_REWRITER.get_context()
        origin_func = ctx.origin_func
        if input.dim() == 1 and len(size) == 1:
            return origin_func(input.unsqueeze(0), *([1, *list(size)])).squeeze(0)
        else:
            return origin_func(input, *size)


def test_the_repeat_example_runs(tmp_path: Path) -> None:
    """The example of repeat runs, and its archive repeats along the second axis."""
    register_repeat_static()
    result = export(OfFunction(lambda x: x.repeat(3)), torch.randn(5), tmp_path)
    (tile,) = [o for o in result.graph.operations if o.name == "tile"]
    assert tile.arguments["repeats"] == [1, 3]
    assert result.assert_parity("exact").passed


def test_a_function_is_replaced_by_another_one(tmp_path: Path) -> None:
    """The tool rewrites an unsupported function to another one that can be exported, for the export only."""

    @FUNCTION_REWRITER.register_rewriter(func_name=scaled)
    def added(x):
        return x + x

    assert names(export(OfFunction(lambda x: scaled(x)), torch.randn(3), tmp_path)) == ["add"]
    assert names(export(OfFunction(lambda x: scaled(x)), torch.randn(3), tmp_path, registered_rewriters=False)) == [
        "mul"
    ]


def test_function_rewriter_is_importable() -> None:
    """`FUNCTION_REWRITER` is exported by the package of rewriters."""
    from t2n_core import rewriter

    assert rewriter.FUNCTION_REWRITER is FUNCTION_REWRITER


def test_the_decorator_registers_and_returns_the_function() -> None:
    """`FUNCTION_REWRITER.register_rewriter` registers what it decorates."""
    before = len(FUNCTION_REWRITER)
    assert FUNCTION_REWRITER.register_rewriter(func_name="torch.relu")(scaled) is scaled
    assert len(FUNCTION_REWRITER) == before + 1


@pytest.mark.parametrize("func_name", ["torch.Tensor.mul", "torch.mul", torch.mul])
def test_func_name_is_a_function_of_pytorch(func_name: Any, tmp_path: Path) -> None:
    """`func_name` is the function to override: a PyTorch function."""

    @FUNCTION_REWRITER.register_rewriter(func_name=func_name)
    def added(input, other):
        return input + input

    assert names(export(OfFunction(scaled), torch.randn(3), tmp_path)) == ["add"]


def test_func_name_is_a_custom_function(tmp_path: Path) -> None:
    """`func_name` may be a custom function, by its path."""
    FUNCTION_REWRITER.register_rewriter(func_name=f"{__name__}.scaled")(lambda x: x + x)
    sys.modules.setdefault(__name__, sys.modules[scaled.__module__])
    assert names(export(OfFunction(lambda x: scaled(x)), torch.randn(3), tmp_path)) == ["add"]


def test_func_name_is_a_method_of_a_module(tmp_path: Path, library: Any) -> None:
    """Methods in modules can be overridden too."""

    @FUNCTION_REWRITER.register_rewriter(func_name="mmagic.models.backbones.sr_backbones.SRCNN.forward")
    def forward(self, x):
        return self.conv(x)

    assert names(export(SRCNN(), torch.randn(1, 2, 4, 5), tmp_path)).count("conv") == 1
    assert not any(
        "resize" in name or "upsample" in name for name in names(export(SRCNN(), torch.randn(1, 2, 4, 5), tmp_path))
    )


def test_backend_is_the_target(tmp_path: Path) -> None:
    """With `backend`, the function is overridden for exports to this target only."""
    FUNCTION_REWRITER.register_rewriter(func_name=scaled, backend="khronos")(lambda x: x + x)
    assert names(export(OfFunction(lambda x: scaled(x)), torch.randn(3), tmp_path)) == ["mul"]
    FUNCTION_REWRITER.register_rewriter(func_name=scaled, backend="tract")(lambda x: x + x)
    assert names(export(OfFunction(lambda x: scaled(x)), torch.randn(3), tmp_path)) == ["add"]


def test_the_replacement_may_be_a_built_in(tmp_path: Path) -> None:
    """The rewrite may be a function of PyTorch itself."""
    FUNCTION_REWRITER.register_rewriter(func_name="torch.tanh", backend="tract")(torch.sigmoid)
    assert names(export(OfFunction(torch.tanh), torch.randn(3), tmp_path)) == ["sigmoid"]


@pytest.mark.parametrize("backend", [{}, {"backend": None}, {"backend": "default"}])
def test_without_backend_it_is_the_default_rewrite(backend: Any, tmp_path: Path) -> None:
    """Without `backend` the rewrite is the default one."""
    FUNCTION_REWRITER.register_rewriter(func_name=scaled, **backend)(lambda x: x + x)
    assert names(export(OfFunction(lambda x: scaled(x)), torch.randn(3), tmp_path)) == ["add"]


def test_the_default_is_used_without_one_for_the_backend(tmp_path: Path) -> None:
    """The default rewrite is used if there is none for the target, in either order of registration."""
    FUNCTION_REWRITER.register_rewriter(func_name=scaled, backend="tract")(lambda x: x + x)
    FUNCTION_REWRITER.register_rewriter(func_name=scaled)(lambda x: x - -x)
    assert names(export(OfFunction(lambda x: scaled(x)), torch.randn(3), tmp_path)) == ["add"]


def test_the_arguments_are_those_of_the_original(tmp_path: Path) -> None:
    """The arguments are the same as those of the original, keywords included."""
    seen: list[Any] = []

    @FUNCTION_REWRITER.register_rewriter(func_name="torch.sum")
    def summed(input, dim, keepdim=False):
        seen.append((tuple(input.shape), dim, keepdim))
        return FUNCTION_REWRITER.get_context().origin_func(input, dim=dim, keepdim=keepdim)

    export(OfFunction(lambda x: torch.sum(x, 1, keepdim=True)), torch.randn(2, 3), tmp_path)
    assert seen[0] == ((2, 3), 1, True)


def test_a_context_is_the_first_argument(tmp_path: Path) -> None:
    """A context `ctx` is the first argument, if the rewrite has a parameter of that name."""

    @FUNCTION_REWRITER.register_rewriter(func_name=scaled)
    def rewritten(ctx, x):
        assert ctx is FUNCTION_REWRITER.get_context()
        return ctx.origin_func(x) + x

    assert names(export(OfFunction(lambda x: scaled(x)), torch.randn(3), tmp_path)) == ["mul", "add"]


def test_get_context_outside_of_a_rewrite() -> None:
    """`get_context()` is for the body of a rewrite; elsewhere it is refused with a sentence."""
    with pytest.raises(RewriteError, match="while no rewrite is running"):
        FUNCTION_REWRITER.get_context()


@pytest.mark.parametrize("config", [{"channels": 3}, types.SimpleNamespace(channels=3)])
def test_ctx_cfg_is_the_deployment_config(config: Any, tmp_path: Path) -> None:
    """`ctx.cfg` is the deployment config, any mapping or object that is passed to the export."""
    seen = []

    @FUNCTION_REWRITER.register_rewriter(func_name=scaled)
    def rewritten(ctx, x):
        seen.append(ctx.cfg)
        return ctx.origin_func(x)

    export(OfFunction(lambda x: scaled(x)), torch.randn(3), tmp_path, deploy_config=config)
    assert seen[0] is config


def test_ctx_origin_func_is_the_original(tmp_path: Path) -> None:
    """`ctx.origin_func` is the original function, of a method too."""

    @FUNCTION_REWRITER.register_rewriter(func_name=OfFunction.forward)
    def forward(self, x):
        return FUNCTION_REWRITER.get_context().origin_func(self, x + 1.0)

    assert names(export(OfFunction(lambda x: x * 2.0), torch.randn(3), tmp_path)) == ["add", "mul"]


def register_srcnn(made: list[Any] | None = None, **kwargs: Any) -> Any:
    @MODULE_REWRITER.register_rewrite_module("mmagic.models.backbones.sr_backbones.SRCNN", backend="tract", **kwargs)
    class SRCNNWrapper(nn.Module):
        def __init__(self, module, cfg, channels=(3, 64, 32, 3), kernel_sizes=(9, 1, 5), upscale_factor=4):
            super().__init__()
            self._module = module
            module.img_upsampler = nn.Upsample(scale_factor=module.upscale_factor, mode="bilinear", align_corners=False)
            if made is not None:
                made.append((module, cfg, channels))

        def forward(self, *args, **kwargs):
            """Run forward."""
            return self._module(*args, **kwargs)

        def init_weights(self, *args, **kwargs):
            """Initialize weights."""
            return self._module.init_weights(*args, **kwargs)

    return SRCNNWrapper


def test_the_srcnn_example_runs(tmp_path: Path, library: Any) -> None:
    """The example of SRCNN runs: the archive has the bilinear upsampling of the wrapper."""
    register_srcnn()
    model = SRCNN().eval()
    image = torch.randn(1, 2, 5, 7)
    written = names(export(model, image, tmp_path))
    wrapped = SRCNN().eval()
    wrapped.load_state_dict(model.state_dict())
    wrapped.img_upsampler = nn.Upsample(scale_factor=3, mode="bilinear", align_corners=False)
    with MODULE_REWRITER:
        MODULE_REWRITER.clear()
        assert written == names(export(wrapped, image, tmp_path))
        plain = export(wrapped, image, tmp_path)
    assert plain.assert_parity("approximate").passed


def test_module_rewriter_is_importable() -> None:
    """`MODULE_REWRITER` is exported by the package of rewriters, and its decorator returns the class."""
    from t2n_core import rewriter

    assert rewriter.MODULE_REWRITER is MODULE_REWRITER
    assert isinstance(register_srcnn(), type)


def test_module_type_is_the_class(tmp_path: Path) -> None:
    """`module_type` is the module class to rewrite, as a keyword too."""
    MODULE_REWRITER.register_rewrite_module(module_type=nn.ReLU)(lambda module, cfg: nn.Sigmoid())
    assert names(export(nn.Sequential(nn.ReLU()), torch.randn(3), tmp_path)) == ["sigmoid"]


def test_backend_of_a_module(tmp_path: Path) -> None:
    """With `backend` it is for that target; the default is used if there is none for it."""
    MODULE_REWRITER.register_rewrite_module(nn.ReLU, backend="khronos")(lambda module, cfg: nn.Tanh())
    assert names(export(nn.Sequential(nn.ReLU()), torch.randn(3), tmp_path)) == ["relu"]
    MODULE_REWRITER.register_rewrite_module(nn.ReLU)(lambda module, cfg: nn.Sigmoid())
    assert names(export(nn.Sequential(nn.ReLU()), torch.randn(3), tmp_path)) == ["sigmoid"]


def test_all_instances_are_replaced(tmp_path: Path) -> None:
    """All instances of the module in the network are replaced."""
    MODULE_REWRITER.register_rewrite_module(nn.ReLU)(lambda module, cfg: nn.Sigmoid())
    net = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh(), nn.ReLU()))
    assert names(export(net, torch.randn(3), tmp_path)) == ["sigmoid", "tanh", "sigmoid"]


def test_module_and_config_are_the_first_two_arguments(tmp_path: Path, library: Any) -> None:
    """The original module and the deployment config are the first two arguments, then those of the decorator."""
    made: list[Any] = []
    register_srcnn(made, channels=(2, 2))
    model, config = SRCNN(), {"scale": 2}
    export(model, torch.randn(1, 2, 4, 5), tmp_path, deploy_config=config)
    assert made[0][0] is model
    assert made[0][1:] == (config, (2, 2))


def test_the_wrapped_module_is_as_it_was(tmp_path: Path, library: Any) -> None:
    """What the wrapper changes on the wrapped module is gone after the export, and after a refusal."""
    register_srcnn()
    model = SRCNN().eval()
    net, upsampler = nn.Sequential(model), model.img_upsampler
    export(net, torch.randn(1, 2, 4, 5), tmp_path)
    assert model.img_upsampler is upsampler

    @MODULE_REWRITER.register_rewrite_module(SRCNN, backend="tract")
    def refused(module, cfg):
        module.train()
        module.added = nn.Linear(2, 3)
        module.register_buffer("extra", torch.ones(3), persistent=False)
        raise RewriteError("no")

    with pytest.warns(UserWarning, match="takes the place"), pytest.raises(RewriteError, match="no"):
        export(net, torch.randn(1, 2, 4, 5), tmp_path)
    assert not any(module.training for module in net.modules())
    assert sorted(dict(net.named_modules())) == ["", "0", "0.conv", "0.img_upsampler"]
    assert not model._non_persistent_buffers_set
    assert not dict(model.named_buffers())
