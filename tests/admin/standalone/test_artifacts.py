"""Artifacts on the pages."""

import re
from html import unescape

import pytest
from django.core.files.base import ContentFile
from django.test import Client

from conductor_app.engine.standalone import artifact_contents
from conductor_app.models import Artifact
from tests.admin.page_text import html, page_text

TASK = "AAAAAAAAQAKAAAAAAAAAAA"
PAGE = "/admin/conductor/artifact/"


def kept(clock, name, kind="s3", **details) -> Artifact:
    now = clock.now()
    facts = {"content_type": "text/html", "created_at": now, "expires_at": now + 3_600_000}
    return Artifact.objects.create(task_id=TASK, number=0, name=name, kind=kind, details=details, **facts)


def test_stored_artifacts_are_listed_with_links(operator, clock):
    kept(clock, "public/a b<i>.html")
    kept(clock, "public/log", "reference", url="http://worker/log")
    kept(clock, "public/lost", "error", reason="file-missing-on-worker", message="It is not there.")
    kept(clock, "public/late")
    artifact_contents.store_content(TASK, 0, "public/a b<i>.html", ContentFile(b"<script>alert(1)</script>"))

    page = operator.get(PAGE, {"q": TASK})

    shown = page_text(page)
    for word in ("public/a b<i>.html", "25 B", "http://worker/log", "It is not there.", "not uploaded yet"):
        assert word in shown, word
    [address] = re.findall(r'href="(/api/artifacts/[^"]*)"', html(page))
    fetched = Client().get(unescape(address))
    assert b"".join(fetched.streaming_content) == b"<script>alert(1)</script>"
    assert "sandbox" in fetched["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["add/", "1/change/", "1/delete/"])
def test_artifacts_are_read_only(operator, clock, path):
    assert operator.get(f"{PAGE}{path}").status_code in (302, 403)
