"""The first visit to a page: what a browser without a cache receives, compressed."""

import gzip
import re

import pytest
from django.conf import settings
from django.test import Client, RequestFactory

from conductor_app.web.compression import StaticFiles
from tests.builders import simple
from tests.page_text import run_url
from tests.scenario import start_run_of

KILOBYTE = 1024
MOST, MOST_WITH_EDITOR = 200 * KILOBYTE, 220 * KILOBYTE
FONT = "/static/ops/fonts/inter.woff2"
PAGES = (
    *("/admin/", "/admin/queues/", "/admin/workers/", "/admin/failures/", "/admin/system/", "/admin/people/"),
    *(f"/admin/conductor/{name}/" for name in ("run", "workflowdefinition", "auditentry", "accesskey", "schedule")),
    *("/admin/auth/user/", "/admin/auth/user/add/", "/admin/conductor/grant/add/"),
)
EDITORS = ("/admin/conductor/workflowdefinition/add/", "/admin/conductor/taskdefinition/add/")
ADMIN_SCRIPTS = re.compile(r"jquery|xregexp|RelatedObjectLookups|urlify|prepopulate", re.I)


def get(client: Client, address: str):
    return client.get(address, headers={"Accept-Encoding": "gzip"})


def get_file(address: str, encoding: str = "gzip", **headers: str):
    request = RequestFactory().get(address, headers={"Accept-Encoding": encoding, **headers})
    return StaticFiles(lambda _request: None)(request)


def size(response) -> int:
    return len(b"".join(response) if response.streaming else response.content)


def files_of(page: str) -> set[str]:
    """Return the addresses of the files that a browser loads with a page."""
    found = re.findall(r'<(?:script|link|img|use)\b[^>]*?\b(?:src|href)="([^"#]+)', page)
    return {address for address in found if not address.startswith("data:")} | {FONT}


def check_first_visit(client: Client, address: str, most: int = MOST) -> None:
    response = get(client, address)
    assert response.status_code == 200 and response["Content-Encoding"] == "gzip", address
    page = gzip.decompress(response.content).decode()
    addresses = re.findall(r'<script[^>]*src="([^"]+)"', page)
    assert [each for each in addresses if ADMIN_SCRIPTS.search(each)] == [] or "/grant/" in address, address
    scripts = [get(client, file) for file in files_of(page) if not file.startswith(settings.STATIC_URL)]
    files = [get_file(file) for file in files_of(page) if file.startswith(settings.STATIC_URL)]
    assert size(response) + sum(map(size, [*scripts, *files])) < most, address


def test_the_first_visit_to_a_page_is_below_200_kilobytes_and_loads_no_needless_script_of_the_admin(operator):
    for address in PAGES:
        check_first_visit(operator, address)


def test_the_first_visit_to_an_editor_adds_its_script_and_none_of_the_admin(operator):
    for address in EDITORS:
        check_first_visit(operator, address, MOST_WITH_EDITOR)


def test_the_first_visit_to_the_page_of_a_run_is_below_200_kilobytes(operator, clock):
    check_first_visit(operator, run_url(start_run_of(simple("ship"))))


@pytest.mark.parametrize("name, has_actions", [("run", True), ("accesskey", True), ("auditentry", False)])
def test_only_a_list_with_actions_loads_the_script_of_its_checkboxes(operator, name, has_actions):
    page = operator.get(f"/admin/conductor/{name}/").content.decode()

    assert ("admin/js/actions.js" in page) == ("jsi18n" in page) == has_actions


def test_copies_of_a_page_have_lengths_that_differ_by_random_bytes(operator):
    pages = [get(operator, "/admin/views/") for _ in range(20)]

    assert len({len(page.content) for page in pages}) > 3


def test_a_reply_to_a_form_is_not_compressed(operator):
    created = operator.post(
        "/admin/conductor/accesskey/add/", {"application": "team"}, headers={"Accept-Encoding": "gzip"}
    )

    assert "Key created" in created.content.decode() and "Content-Encoding" not in created


def test_a_reply_to_a_program_is_not_compressed(client, db):
    assert "Content-Encoding" not in get(client, "/api/metadata/workflow")


SCRIPT = f"{settings.STATIC_URL}ops/page.js"


def test_a_static_file_is_sent_compressed_and_as_it_is():
    compressed, plain = get_file(SCRIPT), get_file(SCRIPT, "identity")

    assert gzip.decompress(compressed.content) == b"".join(plain)
    assert int(compressed["Content-Length"]) == len(compressed.content) < int(plain["Content-Length"]) / 2
    assert compressed["ETag"] == plain["ETag"] and compressed["Vary"] == plain["Vary"] == "Accept-Encoding"


def test_a_static_file_that_a_browser_has_is_not_sent_again():
    again = get_file(SCRIPT, **{"If-None-Match": get_file(SCRIPT)["ETag"]})

    assert again.status_code == 304 and size(again) == 0


def test_a_font_is_not_compressed_twice():
    assert "Content-Encoding" not in get_file(FONT)
