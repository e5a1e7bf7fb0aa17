"""The file of records of one run: begun afresh, or continued where an interrupted run stopped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pytest_t2n.control.earlier import Interrupted, read_interrupted, rewrite
from pytest_t2n.records.file import RecordFile, encode
from pytest_t2n.records.folder import MATRIX_FILE, check_folder, remove_report
from pytest_t2n.records.run_line import start_time
from pytest_t2n.records.schema import SCHEMA, EndLine, GraphLine, Record, RunLine
from t2n_core.files import write_whole


class RunFile:
    """`matrix.jsonl` in the folder of a report, or a file without a name; each record is written when it is there."""

    def __init__(
        self,
        folder: Path | None,
        run: RunLine,
        *,
        resume: bool = False,
        accept: Callable[[Interrupted], object] = lambda earlier: None,
        root: Path = Path(),
    ) -> None:
        """Write the line of the run, after which its records follow.

        Args:
            folder: the folder of the report.
            run: the line of the run.
            resume: keep what an interrupted run left in the folder.
            accept: called with that before the file is changed; refuses it by an exception.
            root: the folder to which the names of read files are relative.

        Raises:
            InputError: what an interrupted run left cannot be kept.
            OSError: the folder cannot be written.
        """
        path = folder / MATRIX_FILE if folder is not None else None
        self.kept: Interrupted | None = None
        """The part of an interrupted run that the file goes on with."""
        self._graphs: set[str] = set()
        if resume and path is not None and path.exists():
            earlier = read_interrupted(path, run, root)
            accept(earlier)
            if earlier.cells:
                self._graphs = rewrite(path, run, earlier)
                self.kept = earlier
        if folder is not None:
            check_folder(folder)
        self.records = RecordFile(path, append=self.kept is not None)
        if folder is not None:
            remove_report(folder)
        self.failure: OSError | None = None
        """The error of the first record that could not be written; it and later ones stay in memory."""
        if self.kept is None:
            self.append(run)

    def append(self, record: Record, line: str | None = None) -> OSError | None:
        """Write a record unless it is a graph that the file has, and return the error if it is the first one.

        `line` is the record's JSON if that is there.
        """
        if isinstance(record, GraphLine):
            if record.key in self._graphs:
                return None
            self._graphs.add(record.key)
        failure = self.records.append((encode(record) if line is None else line).encode())
        self.failure = failure or self.failure
        return failure

    def replace_run(self, run: RunLine) -> None:
        """Replace the line of the run, whose further engines its cells named; a full disk leaves the line as it is."""
        earlier = self.records
        if earlier.path is None or not earlier.path.is_file():
            return
        lines = [run, *(record for record in earlier.records() if not isinstance(record, RunLine))]
        with suppress(OSError):
            write_whole(earlier.path, "".join(f"{encode(record)}\n" for record in lines))
            self.records = RecordFile(earlier.path, append=True)
            earlier.close()

    def end(self, stopped: str) -> OSError | None:
        """Write the last line, and return the error if it is the first one.

        `stopped` is why the run stopped early, if it did.
        """
        return self.append(EndLine(SCHEMA, start_time(), stopped))
