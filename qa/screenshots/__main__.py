"""Take screenshots of every screen in both sizes and themes: `python -m qa.screenshots`.

Serves its own database with the demo data, lets the demo's workers process their orders, and writes
var/screenshots/*.png. `ONLY=overview,run` selects screens. Console errors, horizontal
scrolling, other sizes of text than those of the design, and axe violations are listed at the end and make the command
fail. `IMAGES=1` writes the pictures of the documentation, docs/images/*.webp, and the film of the README instead.
"""

import os
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal
from urllib.error import URLError
from urllib.request import urlopen

import django
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, sync_playwright

from qa.screenshots.animation import animated_webp
from tests.browser.page_checks import (
    NARROW,
    RULES,
    WIDE,
    axe_violations,
    chromium,
    has_no_horizontal_scroll,
    other_text_sizes,
    protruding_texts,
)

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "var" / "screenshots"
PORT = int(os.environ.get("PORT", "8765"))
URL = f"http://127.0.0.1:{PORT}"
NAME, PASSWORD = "olga", "a-password-for-pictures"
TALLEST = 4000
IMAGES = ROOT / "docs" / "images"
DOCUMENTED = {
    "overview": "overview",
    "executions": "runs",
    "failed-run": "run",
    "timeline": "run-timeline",
    "canvas": "form-designer",
    "trends": "workflow",
}
"""The pictures of the documentation, each with its screen."""
FILM = ("failures", "failure-group", "run", "bulk-plan", "operation")
"""The scenes of the film: failures, one cause, a failed run, the plan of a retry, and a canary that has paused."""
SCENE_MS = 2500
IMAGE_SIZE: ViewportSize = {"width": 1280, "height": 800}
IMAGE_SCALE, IMAGE_QUALITY = 1.5, 55
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


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
            demo = [sys.executable, "-m", "examples.demo", "--url", URL]
            subprocess.run(demo, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            take = take_images if os.environ.get("IMAGES") else take_all_pictures
            complaints = take(program, requested_screens())
        finally:
            server.terminate()
            server.wait()
    if complaints:
        sys.exit("\n".join(complaints))


def create_scenery() -> None:
    """Create a week of returns in a database that no server uses yet."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "conductor_app.settings.embedded"
    django.setup()
    from conductor_app.processes.serving import prepare_server
    from qa.screenshots.demo_data import create_everything

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
        complaints += take_sign_in_pictures(browser)
        page = sign_in(browser)
        page.on("console", lambda said: complaints.append(f"{page.url}: {said.text}") if is_serious(said) else None)
        for name, path in screens.items():
            page.set_viewport_size(WIDE)
            open_screen(page, name, path)
            complaints += take_pictures(page, name)
            print(name, flush=True)
        browser.close()
    return complaints


def open_screen(page: Page, name: str, path: str) -> None:
    """Load a page with its parts, and prepare what its picture shows."""
    from .screens import PREPARATIONS

    page.goto(path)
    if page.locator("[data-load-now], [data-load], [data-code-editor]").count():
        page.wait_for_load_state("networkidle")
    if prepare := PREPARATIONS.get(name):
        prepare(page)


def take_images(program: str, screens: Mapping[str, str]) -> list[str]:
    """Write the pictures of the documentation in both themes, as WebP, which Chromium can encode."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = sign_in(browser, IMAGE_SCALE)
        page.set_viewport_size(IMAGE_SIZE)
        session = page.context.new_cdp_session(page)
        for name, screen in DOCUMENTED.items():
            open_screen(page, screen, screens[screen])
            for theme in THEMES:
                page.emulate_media(color_scheme=theme)
                shot = session.send("Page.captureScreenshot", {"format": "webp", "quality": IMAGE_QUALITY})
                (IMAGES / f"{name}-{theme}.webp").write_bytes(b64decode(shot["data"]))
        page = sign_in(browser)
        page.set_viewport_size(IMAGE_SIZE)
        session = page.context.new_cdp_session(page)
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            stills = []
            for screen in FILM:
                open_screen(page, screen, screens[screen])
                shot = session.send("Page.captureScreenshot", {"format": "webp", "quality": IMAGE_QUALITY})
                stills.append(b64decode(shot["data"]))
            film = animated_webp(stills, IMAGE_SIZE["width"], IMAGE_SIZE["height"], SCENE_MS)
            (IMAGES / f"film-{theme}.webp").write_bytes(film)
        browser.close()
    return []


def is_serious(said: ConsoleMessage) -> bool:
    """Return whether a console message is a problem. The 404 of the not-found screen is expected."""
    return said.type in ("error", "warning") and "404" not in said.text


def take_pictures(page: Page, name: str) -> list[str]:
    """Take screenshots of the page in both sizes and themes. Return its problems."""
    complaints = []
    for size, viewport in (("wide", WIDE), ("narrow", NARROW)):
        page.set_viewport_size(viewport)
        is_short = page.evaluate("document.documentElement.scrollHeight") < TALLEST
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            page.screenshot(path=TARGET / f"{name}-{size}-{theme}.png", full_page=is_short)
        found = axe_violations(page, RULES if size == "wide" else ["color-contrast"])
        found += [] if has_no_horizontal_scroll(page) else ["does not fit"]
        found += protruding_texts(page) + other_text_sizes(page)
        complaints += [f"{name}, {size}, dark: {fault}" for fault in found]
    return complaints


def take_sign_in_pictures(browser: Browser) -> list[str]:
    """Take screenshots of the sign-in page. Return its problems."""
    page = browser.new_context(base_url=URL, reduced_motion="reduce").new_page()
    page.goto("/admin/login/?next=/admin/")
    return take_pictures(page, "sign-in")


def sign_in(browser: Browser, scale: float = 1) -> Page:
    """Return a page that is signed in as olga."""
    context = browser.new_context(base_url=URL, reduced_motion="reduce", device_scale_factor=scale)
    page = context.new_page()
    page.goto("/admin/login/?next=/admin/")
    page.fill("#id_username", NAME)
    page.fill("#id_password", PASSWORD)
    page.click("#login-form button")
    return page


if __name__ == "__main__":
    main()
