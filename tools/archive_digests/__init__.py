"""Texts of all archives that the suites export, to see what a redesign changes; no engine runs.

    python -m tools.archive_digests write before      # in the old checkout; the same line again goes on
    python -m tools.archive_digests write after       # in the new one
    python -m tools.archive_digests compare before after

A cell has an entry for each archive that it writes, or the refusal with its message. `compare` prints every cell that
differs, then the first graphs that differ as unified diffs, and ends with 1 if there is a difference.
"""
