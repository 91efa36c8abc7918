"""Accessibility and layout checks: both widths, both themes, keyboard and screen reader."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page, ViewportSize

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text()
WIDE: ViewportSize = {"width": 1440, "height": 900}
NARROW: ViewportSize = {"width": 360, "height": 740}
MIDDLE_WIDTHS = (1280, 1024, 800)
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa")
CHROMIUMS = ("chromium-headless-shell", "chromium", "chromium-browser")
"""The first has no window to keep up: it does the same for half of the work."""


def chromium() -> str | None:
    """Return the path of the Chromium to use: CHROMIUM if set, otherwise Debian's."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUMS)), None)


def firefox() -> str | None:
    """Return the path of the Firefox to use: FIREFOX if set, otherwise Debian's."""
    return os.environ.get("FIREFOX") or shutil.which("firefox-esr")


def axe_violations(page: Page, only: Sequence[str] = RULES) -> list[str]:
    """Return the violations of the given rules that axe finds on a page."""
    # Into the page's own world by the debugger, past its policy: axe is the tester's, not the page's.
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    options = {"runOnly": list(only), "resultTypes": ["violations"], "preload": False}
    found = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]} ({len(each['nodes'])})" for each in found]


def assert_accessible(page: Page, only: Sequence[str] = RULES) -> None:
    """Assert that axe finds no violations."""
    assert axe_violations(page, only) == [], page.url


def has_no_horizontal_scroll(page: Page) -> bool:
    """Return whether the page fits its width."""
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def protruding_texts(page: Page) -> list[str]:
    """Return the texts that extend beyond the card that they are in, each with the excess in pixels."""
    return page.evaluate(
        """() => {
          const found = [];
          for (const card of document.querySelectorAll("main :is(.card, .results)")) {
            const edge = card.getBoundingClientRect().right + 1;
            for (const each of card.querySelectorAll("*")) {
              const hasText = [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
              if (!hasText || !each.checkVisibility({ visibilityProperty: true })) continue;
              const box = each.getBoundingClientRect();
              if (box.right <= edge || box.width < 2) continue;
              let outer = each.parentElement;
              while (outer !== card.parentElement && getComputedStyle(outer).overflowX === "visible") {
                outer = outer.parentElement;
              }
              if (outer === card.parentElement) {
                found.push(`${Math.round(box.right - edge)} px beyond its card: ${each.outerHTML.slice(0, 160)}`);
              }
            }
          }
          return found;
        }"""
    )


def other_text_sizes(page: Page) -> list[str]:
    """Return the sizes of text that are not of the design, each with an element that has it."""
    return page.evaluate(
        """() => {
          const style = getComputedStyle(document.documentElement), root = parseFloat(style.fontSize), found = {};
          const known = ["title", "large", "body", "small"].map((name) =>
            parseFloat(style.getPropertyValue(`--text-${name}`)) * root);
          for (const each of document.querySelectorAll("body *")) {
            const hasText = [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
            const isShown = hasText && each.getClientRects().length > 0;
            const size = parseFloat(getComputedStyle(each).fontSize);
            if (isShown && !known.includes(size)) found[size] ??= `text of ${size} px: ${each.outerHTML.slice(0, 160)}`;
          }
          return Object.values(found);
        }"""
    )


def assert_usable_by_everybody(page: Page, path: str) -> None:
    """Load a page once and assert that it fits all widths and is accessible in both themes.

    The content is checked in the wide light layout; the narrow dark layout is checked for width and contrast only.
    """
    page.set_viewport_size(WIDE)
    page.emulate_media(color_scheme="light")
    page.goto(path)
    for width in (WIDE["width"], *MIDDLE_WIDTHS):
        page.set_viewport_size({**WIDE, "width": width})
        assert has_no_horizontal_scroll(page), f"{path}, {width} px"
        assert protruding_texts(page) == [], f"{path}, {width} px"
    page.set_viewport_size(WIDE)
    assert other_text_sizes(page) == [], path
    assert_accessible(page)
    page.set_viewport_size(NARROW)
    page.emulate_media(color_scheme="dark")
    assert has_no_horizontal_scroll(page), f"{path}, narrow"
    assert protruding_texts(page) == [], f"{path}, narrow"
    assert_accessible(page, ["color-contrast"])
