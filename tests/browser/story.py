"""A story of an operator in a browser: each click is counted, and what is shown fits the window."""

from playwright.sync_api import Locator, Page

MISPLACED = """() => {
  const root = document.documentElement, width = root.clientWidth, found = [];
  if (root.scrollWidth > width) found.push(`${root.scrollWidth} px in ${width} px`);
  for (const menu of document.querySelectorAll("details[open]:is(.action-menu, .menu, .filter)")) {
    const box = menu.querySelector(":scope > :not(summary)").getBoundingClientRect();
    if (box.left < 0 || box.right > width) found.push(`${menu.innerText.slice(0, 40)}: ${box.left} to ${box.right}`);
  }
  return found;
}"""


class Story:
    """Use a page with at most `most` clicks or taps. Typing does not count; a selection from a list is a click."""

    def __init__(self, page: Page, most: int) -> None:
        self.page, self.most, self.clicks = page, most, 0

    def click(self, place: Locator, *, opens: str = "") -> None:
        """Check the layout, click a place, and wait for the address that it opens, if given.

        The address is needed where the next place is also on the page that is left.
        """
        self._count(place)
        place.click()
        if opens:
            self.page.wait_for_url(opens)

    def select(self, place: Locator, **option: str) -> None:
        """Select an option."""
        self._count(place)
        place.select_option(**option)

    def open_page(self, name: str) -> None:
        """Open a page from the menu, which is one click more where the menu is folded."""
        if (burger := self.page.locator("#top .burger")).is_visible():
            self.click(burger)
        self.click(self.page.locator("#nav-sidebar").get_by_role("link", name=name, exact=True))

    def check_layout(self) -> None:
        """Assert that nothing is wider than the window and no open popover leaves it."""
        self.page.wait_for_load_state()
        assert self.page.evaluate(MISPLACED) == [], self.page.url

    def _count(self, place: Locator) -> None:
        place.wait_for()
        self.check_layout()
        self.clicks += 1
        assert self.clicks <= self.most, f"click {self.clicks} of at most {self.most}: {place}"
