"""The search of the documentation, in a browser, finds the page that answers a question first."""

import functools
import http.server
import subprocess
from threading import Thread
from urllib.parse import quote

import pytest

from tests.documentation.test_site import PYTHON, ROOT

QUESTIONS = {
    "rerun with changed input": "how-to/failed-and-waiting-runs.html",
    "why is my run waiting": "how-to/failed-and-waiting-runs.html",
    "retry delay backoff": "how-to/handle-failures.html",
    "pause a schedule": "how-to/write-schedules.html",
    "back up the database": "how-to/back-up-and-restore.html",
    "move from SQLite to PostgreSQL": "how-to/back-up-and-restore.html",
    "limit concurrency": "how-to/limits.html",
    "webhook signature": "how-to/event-handlers-and-webhooks.html",
    "SDK methods that work": "reference/sdk-compatibility.html",
    "use secret in task": "how-to/secrets-and-environment.html",
    "Kubernetes Helm": "how-to/deploy.html",
    "human approval": "how-to/human-tasks.html",
    "single sign-on OpenID": "how-to/sign-in.html",
    "migrate from Conductor": "how-to/migrate-from-conductor.html",
    "Prometheus alerts": "how-to/monitor.html",
}

pytestmark = pytest.mark.skipif(
    not PYTHON.exists(), reason="`make .venv/for-docs` installs the tools of the documentation."
)


class SilentHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the address of the documentation."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([PYTHON, "-m", "mkdocs", "build", "--quiet", "--site-dir", folder], cwd=ROOT, check=True)
    handler = functools.partial(SilentHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_question_finds_its_page_first(browser, site):
    page = browser.new_page()
    found = {}
    for question in QUESTIONS:
        page.goto(f"{site}/index.html?q={quote(question)}")
        first = page.locator(".md-search-result__link").first
        first.wait_for(state="attached")
        found[question] = first.get_attribute("href").split("?")[0].split("#")[0].removeprefix(f"{site}/")
    page.close()

    assert found == QUESTIONS
