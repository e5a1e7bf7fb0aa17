"""`t2n engines list|fetch|clean` manages the cache of engines."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from packaging.version import Version
from rich.console import Console

from pytest_t2n.cli.busy import busy
from pytest_t2n.cli.output import as_text, say, show_table
from t2n_core.engine.provision.index import list_versions
from t2n_core.engine.provision.resolution import resolve_engines
from t2n_core.engine.provision.store import EngineStore, StoredEngine
from t2n_core.engine.provision.versions import UNUSABLE, choose_versions, parse_spec
from t2n_core.errors import EngineResolveError

_GRAMMAR = "0.21 | 0.21.13 | '>=0.21,<0.23' | latest | all-minors | all, or a comma list of these"


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of this family."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    listing = commands.add_parser("list", help="what the cache has, or what the package index has")
    listing.add_argument("--index", action="store_true", help="ask the package index, and mark what the cache has")
    listing.add_argument("--json", action="store_true", help="print one JSON object")
    listing.set_defaults(run=_list)

    fetching = commands.add_parser("fetch", help="download engines into the cache; what is there is only checked")
    fetching.add_argument("spec", help=_GRAMMAR)
    fetching.add_argument("--offline", action="store_true", help="only check what the cache has")
    fetching.add_argument("--allow-unlisted", action="store_true", help="as --t2n-allow-unlisted")
    fetching.set_defaults(run=_fetch)

    cleaning = commands.add_parser("clean", help="delete engines from the cache")
    cleaning.add_argument("spec", help=f"which of the cached ones: {_GRAMMAR}")
    cleaning.set_defaults(run=_clean)

    for command in (listing, fetching, cleaning):
        command.add_argument("--cache-dir", type=Path, help="instead of T2N_CACHE_DIR or the user's cache directory")


def _list(options: argparse.Namespace) -> int:
    store = EngineStore(options.cache_dir)
    stored = {Version(engine.manifest.version): engine for engine in store.list_stored()}
    with busy("asking the package index"):
        listed = list_versions(store.cache_dir) if options.index else tuple(stored)
    versions = [version for version in listed if version not in UNUSABLE]
    if options.json:
        rows = [
            {
                "version": str(version),
                "cached": version in stored,
                "library": str(stored[version].library) if version in stored else None,
                "sha256": stored[version].manifest.library_sha256 if version in stored else None,
            }
            for version in versions
        ]
        print(json.dumps({"cache_dir": str(store.cache_dir), "engines": rows}, indent=1))
        return 0
    show_table(("tract", "cached", "MB", "wheel sha256"), (_row(version, stored.get(version)) for version in versions))
    say(f"cache: {store.cache_dir}")
    return 0


def _row(version: Version, engine: StoredEngine | None) -> tuple[str, ...]:
    if engine is None:
        return (str(version), "no", "", "")
    size = sum(entry.size for entry in engine.manifest.files) / 1e6
    return (str(version), "yes", f"{size:.1f}", engine.manifest.wheel_sha256[:16])


def _fetch(options: argparse.Namespace) -> int:
    console = Console(highlight=False)
    with console.status(as_text(f"engines of {options.spec}")):  # queries the index before there is anything to print
        engines = resolve_engines(
            options.spec,
            offline=options.offline,
            cache_dir=options.cache_dir,
            progress=lambda version, event: console.print(as_text(f"tract {version}: {event}")),
            allow_unlisted=options.allow_unlisted or None,
        )
    say(f"{len(engines)} engine{'s' if len(engines) != 1 else ''} ready")
    return 0


def _clean(options: argparse.Namespace) -> int:
    store = EngineStore(options.cache_dir)
    items = parse_spec(options.spec)
    if any(item.kind == "path" for item in items):
        raise EngineResolveError("a binary named by path: is not in the cache, so it cannot be cleaned")
    on_disk = store.versions_on_disk()
    if not on_disk:
        say(f"nothing to delete in {store.cache_dir}")
        return 0
    for choice in choose_versions(items, on_disk):
        store.remove(choice.version)
        say(f"tract {choice.version}: deleted")
    return 0
