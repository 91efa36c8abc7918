"""A browser for the operators' pages, shared by these tests. A page fails its test on any console error.

    def test_something(page, live):          # `live`: the URL of a server on the test database; `page` is signed in
        page.goto("/admin/")                 # URLs are relative to it
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()

Wait for conditions (`expect`), never for time. For timers of a page, install a clock before it loads
(`page.clock.install()`) and advance it (`page.clock.fast_forward(3000)`). Without the browser, the tests are skipped
with the reason. BROWSER=firefox runs them in Firefox (`make test-firefox`).
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.browser.page_checks import WIDE, chromium, firefox
from tests.clients.live_server import running_server

HARMLESS = ("net::ERR_ABORTED",)
"""Browser messages about requests that were aborted by leaving a page."""

# Playwright runs a loop of its own in the tests' thread; Django would take the tests for asynchronous code.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")


@pytest.fixture(scope="package")
def browser(tmp_path_factory):
    """Yield a browser. Its event loop ends with these tests, because others run their own loops."""
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = LAUNCHERS[os.environ.get("BROWSER", "chromium")](playwright, tmp_path_factory.mktemp("home"))
        yield browser
        browser.close()


def _launch_chromium(playwright, home: Path):
    if not (found := chromium()):
        pytest.skip("there is no Chromium here; CHROMIUM may name one")
    return playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])


def _launch_firefox(playwright, home: Path):
    """Launch an unmodified Firefox, which Playwright controls by WebDriver BiDi.

    Firefox refuses to start if the home directory belongs to another user.
    """
    if not (found := firefox()):
        pytest.skip("there is no Firefox here; FIREFOX may name one")
    return playwright.firefox.launch(executable_path=found, channel="moz-firefox", env=os.environ | {"HOME": str(home)})


LAUNCHERS = {"chromium": _launch_chromium, "firefox": _launch_firefox}


@pytest.fixture
def live(transactional_db) -> Iterator[str]:
    """Yield the URL of a live server on the test database."""
    with running_server() as url:
        yield url


class Pages:
    """Open signed-in pages and record their console errors."""

    def __init__(self, browser, url: str) -> None:
        self.browser, self.url = browser, url
        self.contexts, self.validation_errors = [], []

    def open(self, user: User | None, *, size=WIDE, scheme: str = "light"):
        """Open a new page in a new session, signed in as the user if one is given."""
        context = self.browser.new_context(
            base_url=self.url, viewport=size, color_scheme=scheme, reduced_motion="reduce"
        )
        if user:
            client = Client()
            client.force_login(user)
            value = client.cookies["sessionid"].value
            context.add_cookies([{"name": "sessionid", "value": value, "url": self.url}])
        self.contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.validation_errors.append(str(error)))
        return page

    def _hear(self, message) -> None:
        if message.type in ("error", "warning") and not any(each in message.text for each in HARMLESS):
            self.validation_errors.append(f"{message.type}: {message.text}")

    def close(self) -> None:
        for context in self.contexts:
            context.close()


@pytest.fixture
def pages(browser, live) -> Iterator[Pages]:
    """Yield a factory of pages of any size, theme and user. A console error on any of them fails the test."""
    opened = Pages(browser, live)
    yield opened
    opened.close()
    assert opened.validation_errors == []


@pytest.fixture
def olga(transactional_db) -> User:
    """Return a user with all permissions."""
    return User.objects.create_superuser("olga", password="x")


@pytest.fixture
def page(pages, olga):
    """Return a wide page in the light theme, signed in as olga."""
    return pages.open(olga)
