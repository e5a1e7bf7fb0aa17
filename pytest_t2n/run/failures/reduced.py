"""The reduction of a failing cell for `--t2n-reduce`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_t2n.config.engines import cache_folder
from pytest_t2n.config.settings import Settings
from pytest_t2n.run.bundles import CheckInputs
from pytest_t2n.run.failure_bundle import folder_name


def reduce_failure(settings: Settings, directory: Path, inputs: CheckInputs, origins: Mapping[str, str]) -> str:
    """Reduce a failing cell into a separate folder; return the result as text, or why there is none."""
    from t2n_core.engine import ResolvedEngine
    from t2n_core.errors import T2NError
    from t2n_core.parity.request import CheckRequest
    from t2n_core.reduce.case import SECONDS, FailingCase, reduce_case
    from t2n_core.releases.judges import Releases

    fields = inputs.cell.engine.resolved
    engine = None if fields is None else ResolvedEngine.from_dict(fields)
    full_request = inputs.request
    request = CheckRequest(
        full_request.archive,
        full_request.samples,
        full_request.output_names,
        full_request.criteria,
        carries=full_request.carries,
        reference=full_request.reference,
    )
    case, timeout = FailingCase(request, engine, origins), min(full_request.timeout, SECONDS)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with Releases(offline=settings.offline, cache_dir=cache_folder(settings)) as releases:
            folder = directory / folder_name(inputs.cell.nodeid)
            return f"reduced: {reduce_case(case, folder, releases, timeout=timeout).describe()}"
    except (T2NError, OSError) as exc:
        return f"not reduced: {exc}"
