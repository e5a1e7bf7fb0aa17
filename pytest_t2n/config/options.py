"""Options of a session, as metadata of the fields of its settings: help, counterpart in the ini file, reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from t2n_core.errors import InputError

if TYPE_CHECKING:
    import pytest

Reader: TypeAlias = "Callable[[pytest.Config, str], Any]"
"""Returns the value of an option by its `dest`; None for the default. Raises InputError."""
IN_FOLDER: Final = "as {option}; relative to the root directory"
_OPTION: Final = "option"


@dataclass(frozen=True, slots=True)
class Option:
    """The option `--t2n-NAME` of the command line, and `t2n_name` of the ini file."""

    help: str
    read: Reader
    metavar: str
    """Empty for a flag."""
    repeated: bool
    """True for an option that may be given several times, and has one value per line in the ini file."""
    ini: str | None
    """The help of the counterpart in the ini file; None where there is none."""

    def add(self, dest: str, parser: pytest.Parser, group: pytest.OptionGroup) -> None:
        """Add the option to its group, and the counterpart to the ini file."""
        option = f"--{dest.replace('_', '-')}"
        action: dict[str, Any] = {"action": "append"} if self.repeated else {}
        value = {"metavar": self.metavar, **action} if self.metavar else {"action": "store_true", "default": None}
        group.addoption(option, help=self.help, **value)
        if self.ini is not None:
            kind: Any = "linelist" if self.repeated else None if self.metavar else "bool"
            default = {"linelist": [], "bool": False}.get(kind, "")
            parser.addini(dest, self.ini.format(option=option), type=kind, default=default)


def option(
    help: str,
    read: Reader | None = None,
    *,
    default: Any = None,
    metavar: str = "",
    repeated: bool = False,
    ini: str | None = "as {option}",
) -> Any:
    """Return the field of an option, a flag if it has no reader."""
    if read is None:
        read, default = read_flag if ini is not None else read_given_flag, False
    return field(default=default, metadata={_OPTION: Option(help, read, metavar, repeated, ini)})


def options_of(settings: type) -> Iterator[tuple[str, str, Option]]:
    """Yield the name of each field that is an option, its `dest`, and the option."""
    for setting in fields(settings):
        if _OPTION in setting.metadata:
            yield setting.name, f"t2n_{setting.name}", setting.metadata[_OPTION]


def read_flag(config: pytest.Config, dest: str) -> bool:
    """Return a flag of the command line or the ini file."""
    value = config.getoption(dest)
    return bool(config.getini(dest) if value is None else value)


def read_given_flag(config: pytest.Config, dest: str) -> bool:
    """Return a flag of the command line."""
    return bool(config.getoption(dest))


def read_text(config: pytest.Config, dest: str) -> str:
    """Return a text of the command line or the ini file."""
    value = config.getoption(dest)
    return str(config.getini(dest) if value is None else value).strip()


def read_path(config: pytest.Config, dest: str) -> Path | None:
    """Return an absolute path: from the command line relative to the start folder, from the ini file to the root."""
    if config.getoption(dest):
        return read_given_path(config, dest)
    in_ini = str(config.getini(dest)).strip()
    return config.rootpath / Path(in_ini).expanduser() if in_ini else None


def read_given_path(config: pytest.Config, dest: str) -> Path | None:
    """Return an absolute path of the command line."""
    value = config.getoption(dest)
    return config.invocation_params.dir / Path(value).expanduser() if value else None


def read_paths(config: pytest.Config, dest: str) -> tuple[Path, ...]:
    """Return absolute paths, relative to the same folders as in `read_path`."""
    values = config.getoption(dest)
    folder = config.invocation_params.dir if values else config.rootpath
    return tuple(folder / Path(value).expanduser() for value in values or config.getini(dest))


def parsed(parse: Callable[[str], Any]) -> Reader:
    """Return the reader of a text that a function parses, which raises InputError or ValueError."""

    def read(config: pytest.Config, dest: str) -> Any:
        text = read_text(config, dest)
        return parse_given(parse, text, dest) if text else None

    return read


def parse_given(parse: Callable[[str], Any], text: str, dest: str) -> Any:
    """Return the parsed text; raise InputError with the option's name if parsing fails."""
    try:
        return parse(text)
    except (InputError, ValueError) as exc:
        raise InputError(f"--{dest.replace('_', '-')}: {exc}") from None
