"""Take screenshots of every screen in both sizes and themes: `python -m tests.browser.screenshots`.

Serves its own database with the demo data, lets the demo's workers process their orders, and writes
var/screenshots/*.png. `ONLY=overview,run` selects screens; `LANGUAGE=de` selects German. Console errors, horizontal
scrolling and axe violations are listed at the end and make the command fail.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.request import urlopen

import django
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.browser.page_checks import NARROW, RULES, WIDE, axe_violations, chromium, has_no_horizontal_scroll

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "var" / "screenshots"
PORT = int(os.environ.get("PORT", "8765"))
URL = f"http://127.0.0.1:{PORT}"
NAME, PASSWORD = "olga", "a-password-for-pictures"
TALLEST = 4000


def main() -> None:
    """Create the demo data, start the server, run the demo, and take the screenshots."""
    program = chromium()
    if not program:
        sys.exit("There is no Chromium here; CHROMIUM may name one.")
    TARGET.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="conductor-pictures-") as folder:
        named = {"DJANGO_SUPERUSER_USERNAME": NAME, "DJANGO_SUPERUSER_PASSWORD": PASSWORD}
        os.environ |= named | {"VAR_DIR": folder, "PORT": str(PORT), "ENVIRONMENT_NAME": "demo"}
        create_scenery()
        server = subprocess.Popen([sys.executable, "manage.py", "serve"], cwd=ROOT, stdout=subprocess.DEVNULL)
        try:
            wait_for_server()
            demo = [sys.executable, "manage.py", "demo", "--url", URL]
            subprocess.run(demo, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            complaints = take_all_pictures(program, requested_screens())
        finally:
            server.terminate()
            server.wait()
    if complaints:
        sys.exit("\n".join(complaints))


def create_scenery() -> None:
    """Create a week of returns in a database that no server uses yet."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "conductor_app.settings.embedded"
    django.setup()
    from conductor_app.management.first_run import prepare_server
    from tests.browser.demo_data import create_everything

    prepare_server()
    create_everything()


def wait_for_server() -> None:
    """Wait until the server replies."""
    for _ in range(120):
        try:
            urlopen(f"{URL}/health", timeout=2)
            return
        except (URLError, OSError):
            time.sleep(0.5)
    sys.exit("The server did not begin to answer.")


def requested_screens() -> dict[str, str]:
    """Return the URLs of the selected screens, or of all screens."""
    from .screens import screen_addresses

    known = screen_addresses()
    wanted = os.environ.get("ONLY", ",".join(known)).split(",")
    return {name: known[name] for name in wanted}


def take_all_pictures(program: str, screens: Mapping[str, str]) -> list[str]:
    """Take screenshots of every screen in each size and theme. Return the problems."""
    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = sign_in(browser)
        page.on("console", lambda said: complaints.append(f"{page.url}: {said.text}") if is_serious(said) else None)
        for name, path in screens.items():
            page.set_viewport_size(WIDE)
            page.goto(path)
            if page.locator("[data-load-now], [data-code-editor]").count():
                page.wait_for_load_state("networkidle")
            complaints += take_pictures(page, name)
            print(name, flush=True)
        browser.close()
    return complaints


def is_serious(said: ConsoleMessage) -> bool:
    """Return whether a console message is a problem. The 404 of the not-found screen is expected."""
    return said.type in ("error", "warning") and "404" not in said.text


def take_pictures(page: Page, name: str) -> list[str]:
    """Take screenshots of the page in both sizes and themes. Return its problems."""
    complaints = []
    for size, viewport in (("wide", WIDE), ("narrow", NARROW)):
        page.set_viewport_size(viewport)
        is_short = page.evaluate("document.documentElement.scrollHeight") < TALLEST
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            page.screenshot(path=TARGET / f"{name}-{size}-{theme}.png", full_page=is_short)
        found = axe_violations(page, RULES if size == "wide" else ["color-contrast"])
        found += [] if has_no_horizontal_scroll(page) else ["does not fit"]
        complaints += [f"{name}, {size}, dark: {fault}" for fault in found]
    return complaints


def sign_in(browser: Browser) -> Page:
    """Return a page that is signed in as olga, after a check of the sign-in page."""
    page = browser.new_context(base_url=URL, reduced_motion="reduce").new_page()
    page.goto("/admin/login/?next=/admin/")
    take_pictures(page, "login")
    page.fill("#id_username", NAME)
    page.fill("#id_password", PASSWORD)
    page.click("form .button.default")
    if os.environ.get("LANGUAGE", "en") != "en":
        page.locator("#user-tools summary").click()
        page.locator(f"[name=language][value={os.environ['LANGUAGE']}]").click()
    return page


if __name__ == "__main__":
    main()
