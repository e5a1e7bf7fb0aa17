"""A real Chromium without a window. Where there is none the tests are skipped, unless T2N_REQUIRE_BROWSER is set."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def _missing(reason: str) -> None:
    if os.environ.get("T2N_REQUIRE_BROWSER"):
        pytest.fail(f"{reason}, and T2N_REQUIRE_BROWSER is set", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium: of T2N_CHROMIUM, or the one on the path."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("the package `playwright` is not installed (pip install playwright)")
    path = os.environ.get("T2N_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        _missing("there is no Chromium on this machine (apt-get install chromium, or set T2N_CHROMIUM)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield chromium
        chromium.close()


class Visit:
    """One report in a tab, and all that it said or asked for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._listeners = {
            "console": lambda message: self.complaints.append(f"{message.type}: {message.text}"),
            "pageerror": lambda error: self.complaints.append(str(error)),
            "request": lambda request: self.requests.append(request.url),
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)

    def open(self, index: Path, state: str = "") -> Any:
        """The page, when it is ready."""
        self.page.goto(f"{index.as_uri()}{state}")
        self.page.wait_for_selector("html[data-ready]", timeout=20_000)
        return self.page

    def end(self) -> None:
        """Leave the tab empty for the next visit."""
        self.page.goto("about:blank")
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)


@pytest.fixture(scope="session")
def tab(browser: Any) -> Callable[[dict[str, Any]], Any]:
    """A function from the options of a tab to the tab, which all tests with these options share."""
    tabs: dict[str, Any] = {}

    def find(options: dict[str, Any]) -> Any:
        name = repr(options)
        if name not in tabs:
            tabs[name] = browser.new_context(**options).new_page()
        return tabs[name]

    return find


@pytest.fixture
def visit(tab: Callable[[dict[str, Any]], Any], request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A visit; behind each test that the report complained of nothing and asked for nothing but files."""
    options = {"viewport": {"width": 1400, "height": 900}, **getattr(request, "param", {})}
    browser_visit = Visit(tab(options))
    yield browser_visit
    browser_visit.end()
    browser_visit.page.set_viewport_size(options["viewport"])
    assert browser_visit.complaints == []
    files = [url for url in browser_visit.requests if not url.startswith("data:")]
    assert [url for url in files if not (url.startswith("file:") and "/index.html" in url)] == [], (
        "the page is one file"
    )


SCREENS = [{"width": width, "scheme": scheme} for width in (390, 800, 1400) for scheme in ("light", "dark")]


@pytest.fixture(params=SCREENS, ids=lambda screen: f"{screen['width']}-{screen['scheme']}")
def screen(visit: Visit, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A visit at the width of a phone, a tablet or a desktop, light or dark; the page never scrolls sideways."""
    visit.page.set_viewport_size({"width": request.param["width"], "height": 900})
    visit.page.emulate_media(color_scheme=request.param["scheme"])
    yield visit
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= request.param["width"]
    visit.page.emulate_media(color_scheme="light")
