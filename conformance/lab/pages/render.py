"""Pages of Markdown from templates and rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2

from conformance.lab.pages.tables import escape


@functools.cache
def _environment() -> jinja2.Environment:
    """Return the environment of the templates: blocks leave no line, and `{{ 2.5|to(".2f") }}` formats a number."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"to": format, "cell": escape}
    return environment


def render(template: str, functions: tuple[Callable[..., Any], ...] = (), /, **values: Any) -> str:
    """Return the text of a template, by default of a page, which may call `functions` by their names."""
    helpers = {function.__name__: function for function in functions}
    file = template if "." in template else f"{template}.md"
    return _environment().get_template(f"{file}.j2").render(helpers | values)
