"""Write the digests of all wheels that engines can come from, as the index states them now.

python -m tools.known_wheels     # t2n_core/engine/provision/known_wheels.tsv

pip's own client fetches the project's one page. Digests of libraries come from the engines in this machine's cache;
digests already in the file stay.
"""

from __future__ import annotations

from pathlib import Path

from pip._internal.commands import create_command
from pip._internal.index.collector import LinkCollector, parse_links
from pip._internal.models.link import Link

from t2n_core.engine.provision.index import DISTRIBUTION
from t2n_core.engine.provision.known import FILE, known_wheels
from t2n_core.engine.provision.store import EngineStore

_TAG = "-cp311-cp311-"
"""The tag of the wheels that are taken; see `t2n_core.engine.provision.index`."""


def main() -> None:
    """Rewrite the file; a wheel that the index names no more stays in it."""
    wheels = {wheel: record.sha256 for group in known_wheels().values() for wheel, record in group.items()}
    libraries = {wheel: record.library for group in known_wheels().values() for wheel, record in group.items()}
    for link in links():
        if _TAG in link.filename and link.hash_name == "sha256" and link.hash:
            wheels[link.filename] = link.hash
    for stored in EngineStore().list_stored():
        libraries[stored.manifest.wheel] = stored.manifest.library_sha256
    lines = (f"{wheel}\t{sha256}\t{libraries.get(wheel, '')}".rstrip() for wheel, sha256 in sorted(wheels.items()))
    path = Path(__file__).parents[1] / "t2n_core" / "engine" / "provision" / FILE
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def links() -> list[Link]:
    """Return the files of the project."""
    command = create_command("download")
    options, _ = command.parse_args([DISTRIBUTION])
    with command.main_context():
        collector = LinkCollector.create(command.get_default_session(options), options=options)
        pages = (
            collector.fetch_response(Link(url)) for url in collector.search_scope.get_index_urls_locations(DISTRIBUTION)
        )
        return [link for page in pages if page is not None for link in parse_links(page)]


if __name__ == "__main__":
    main()
