"""`python -m tests.browser.screenshots`: pictures of every screen, in both sizes and themes, over the demo's data.

Starts a server of its own, lets the demo's workers fulfil their orders twice, and writes var/screenshots/*.png.
`ONLY=overview,run` looks at some of them.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "var" / "screenshots"
PORT = int(os.environ.get("PORT", "8765"))
URL = f"http://127.0.0.1:{PORT}"
NAME, PASSWORD = "olga", "a-password-for-pictures"
SIZES = {"wide": {"width": 1440, "height": 900}, "narrow": {"width": 360, "height": 740}}

SCREENS = {
    "overview": "/admin/",
    "runs": "/admin/conductor/run/",
    "runs-filtered": "/admin/conductor/run/?status=FAILED&task=charge_card:FAILED",
    "run": "{failed}",
    "run-timeline": "{retried}?task=-",
    "run-diagram": "{failed}?tab=diagram&task=-",
    "run-tasks": "{failed}?tab=tasks&task=-",
    "run-data": "{failed}?tab=data&task=-",
    "run-events": "{failed}?tab=events&task=-",
    "plan": "/admin/runs/{run_id}/plan/",
    "compare": "/admin/runs/{run_id}/compare/",
    "failures": "/admin/failures/",
    "views": "/admin/views/",
    "operations": "/admin/bulk/",
    "waiting": "/admin/waiting/",
    "groups": "/admin/conductor/group/",
    "group": "{group}",
    "group-timeline": "{group}?tab=timeline",
    "group-diagram": "{group}?tab=diagram",
    "stand-alone-task": "{alone}",
    "queues": "/admin/queues/",
    "workers": "/admin/workers/",
    "workflows": "/admin/conductor/workflowdefinition/",
    "tasks": "/admin/conductor/taskdefinition/",
    "schedules": "/admin/conductor/schedule/",
    "events": "/admin/events/",
    "audit": "/admin/conductor/auditentry/",
    "system": "/admin/system/",
    "retention": "/admin/retention/",
    "sweeps": "/admin/sweeps/",
    "preferences": "/admin/preferences/",
}
"""Each screen's address; what stands between braces is looked up among what the demo has done."""


def main() -> None:
    """Serve, play, look."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        sys.exit("There is no Chromium here; CHROMIUM may name one.")
    TARGET.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="conductor-pictures-") as folder:
        named = {"DJANGO_SUPERUSER_USERNAME": NAME, "DJANGO_SUPERUSER_PASSWORD": PASSWORD}
        environment = os.environ | named | {"VAR_DIR": folder, "PORT": str(PORT), "ENVIRONMENT_NAME": "demo"}
        server = subprocess.Popen(
            [sys.executable, "manage.py", "serve"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
        )
        try:
            wait_for_it()
            for _ in range(2):
                demo = [sys.executable, "manage.py", "demo", "--url", URL]
                subprocess.run(demo, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
            take(chromium)
        finally:
            server.terminate()
            server.wait()


def wait_for_it() -> None:
    """Until the server answers."""
    for _ in range(120):
        try:
            urlopen(f"{URL}/health", timeout=2)
            return
        except (URLError, OSError):
            time.sleep(0.5)
    sys.exit("The server did not begin to answer.")


def take(chromium: str) -> None:
    """Every screen in every size and theme."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        state, screens = None, SCREENS
        for size, viewport in SIZES.items():
            for scheme in ("light", "dark"):
                context = browser.new_context(base_url=URL, viewport=viewport, color_scheme=scheme, storage_state=state)
                page = context.new_page()
                if state is None:
                    sign_in(page)
                    state, screens = context.storage_state(), found(page)
                for name, path in screens.items():
                    page.goto(path)
                    page.wait_for_load_state("networkidle")
                    page.screenshot(path=TARGET / f"{name}-{size}-{scheme}.png", full_page=size == "narrow")
                    print(f"{name}-{size}-{scheme}.png", flush=True)
                context.close()
        browser.close()


def sign_in(page: Page) -> None:
    page.goto("/admin/login/?next=/admin/")
    page.fill("#id_username", NAME)
    page.fill("#id_password", PASSWORD)
    page.click("[type=submit]")


def found(page: Page) -> dict[str, str]:
    """The addresses, with what the demo has done: runs of which one fails and one is retried, and its last build."""
    runs = "/admin/conductor/run/"
    group = linked(page, "/admin/conductor/group/", "#result_list .field-name a")
    known = {
        "failed": linked(page, f"{runs}?status=FAILED&name=order_fulfilment", "#result_list tbody .field-run a"),
        "retried": linked(
            page, f"{runs}?correlation_id=A-1004&name=parcel_delivery", "#result_list tbody .field-run a"
        ),
        "group": group,
        "alone": linked(page, f"{group}?q=test 7", "[data-rows] th a"),
    }
    known["run_id"] = known["failed"].split("/")[-3]
    wanted = os.environ.get("ONLY", ",".join(SCREENS)).split(",")
    return {name: path.format(**known) for name, path in SCREENS.items() if name in wanted}


def linked(page: Page, list_of: str, link: str) -> str:
    """Where the first such link of a list leads."""
    page.goto(list_of)
    return page.locator(link).first.evaluate("link => link.pathname")


if __name__ == "__main__":
    main()
