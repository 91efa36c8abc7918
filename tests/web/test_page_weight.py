"""Replies are sent compressed. tests/browser/test_page_weights.py measures the first visit to each page."""

import gzip

import pytest
from django.conf import settings
from django.test import Client, RequestFactory

from conductor_app.web.compression import StaticFiles

FONT = "/static/ops/fonts/inter.woff2"


def get(client: Client, address: str):
    return client.get(address, headers={"Accept-Encoding": "gzip"})


def get_file(address: str, encoding: str = "gzip", **headers: str):
    request = RequestFactory().get(address, headers={"Accept-Encoding": encoding, **headers})
    return StaticFiles(lambda _request: None)(request)


def size(response) -> int:
    return len(b"".join(response) if response.streaming else response.content)


@pytest.mark.parametrize("name, has_actions", [("run", True), ("accesskey", True), ("auditentry", False)])
def test_only_a_list_with_actions_loads_the_script_of_its_checkboxes(operator, name, has_actions):
    page = operator.get(f"/admin/conductor/{name}/").content.decode()

    assert ("admin/js/actions.js" in page) == ("jsi18n" in page) == has_actions


def test_copies_of_a_page_have_lengths_that_differ_by_random_bytes(operator):
    pages = [get(operator, "/admin/views/") for _ in range(20)]

    assert {page["Content-Encoding"] for page in pages} == {"gzip"}
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
