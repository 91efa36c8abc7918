"""Whether a page can be used by everybody: in both widths and themes, with keys and by ear."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text()
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 360, "height": 740}
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa")
CHROMIUMS = ("chromium-headless-shell", "chromium", "chromium-browser")
"""The first has no window to keep up: it does the same for half of the work."""


def chromium() -> str | None:
    """The Chromium that looks at pages: what CHROMIUM names, else one of Debian's."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUMS)), None)


def axe_violations(page: Page, only: Sequence[str] = RULES) -> list[str]:
    """What axe finds to complain of on a page, by these rules."""
    # Into the page's own world by the debugger, past its policy: axe is the tester's, not the page's.
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    options = {"runOnly": list(only), "resultTypes": ["violations"], "preload": False}
    found = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]} ({len(each['nodes'])})" for each in found]


def assert_accessible(page: Page, only: Sequence[str] = RULES) -> None:
    """Axe finds nothing."""
    assert axe_violations(page, only) == [], page.url


def has_no_horizontal_scroll(page: Page) -> bool:
    """Whether the page fits its width."""
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def assert_usable_by_everybody(page: Page, path: str) -> None:
    """A page, loaded once, fits both widths and can be used by everybody in both themes.

    What it holds is looked at while it is wide and light; narrow and dark, only its width and its colours differ.
    """
    page.set_viewport_size(WIDE)
    page.emulate_media(color_scheme="light")
    page.goto(path)
    assert has_no_horizontal_scroll(page), path
    assert_accessible(page)
    page.set_viewport_size(NARROW)
    page.emulate_media(color_scheme="dark")
    assert has_no_horizontal_scroll(page), f"{path}, narrow"
    assert_accessible(page, ["color-contrast"])
