"""Files that are complete or as they were before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a draft that takes the place of `path` when the block ends; after an error `path` is as it was.

    Processes that write the same file at once each have a draft of their own. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid4().hex[:12]}.draft")
    try:
        with draft.open("xb") as sink:
            yield sink
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file, complete or not at all. Raises OSError."""
    with replacing(path) as sink:
        sink.write(content.encode() if isinstance(content, str) else content)


__all__ = ["replacing", "write_whole"]
