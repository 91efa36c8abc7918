"""Artifacts on the pages."""

import re
from html import unescape

import pytest
from django.core.files.base import ContentFile
from django.test import Client

from conductor_app.access.tokens import UPLOAD, artifact_address
from conductor_app.taskcluster.commands import artifacts as artifact_contents
from conductor_app.taskcluster.models import Artifact
from tests.page_text import html, page_text

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


@pytest.fixture
def artifact_link(operator, clock, settings):
    """Return the path of the link on the page to an artifact that browsers load from another host."""
    settings.CONDUCTOR_ARTIFACT_URL = "https://files.example.net"
    kept(clock, "public/a.html")
    artifact_contents.store_content(TASK, 0, "public/a.html", ContentFile(b"<script>alert(1)</script>"))
    [address] = re.findall(r'href="https://files.example.net(/api/artifacts/[^"]*)"', html(operator.get(PAGE)))
    return unescape(address)


def test_artifacts_are_loaded_from_their_own_host(artifact_link):
    fetched = Client().get(artifact_link, headers={"host": "files.example.net"})

    assert b"".join(fetched.streaming_content) == b"<script>alert(1)</script>"
    assert "sandbox" in fetched["Content-Security-Policy"]


def test_the_host_of_the_pages_redirects_a_link_to_the_host_of_artifacts(artifact_link):
    found = Client().get(artifact_link)

    assert (found.status_code, found["Location"]) == (302, f"https://files.example.net{artifact_link}")


@pytest.mark.parametrize("path", ["/admin/", "/admin/login/", "/api/metadata/workflow", "/api/queue/v1/ping", "/"])
def test_the_host_of_artifacts_serves_nothing_more(operator, settings, path):
    settings.CONDUCTOR_ARTIFACT_URL = "https://files.example.net"

    assert operator.get(path, headers={"host": "FILES.example.net"}).status_code == 404
    assert operator.get(path).status_code != 404


def test_a_worker_uploads_to_the_host_of_its_request(settings):
    settings.CONDUCTOR_ARTIFACT_URL = "https://files.example.net"

    assert artifact_address(TASK, 0, "a", UPLOAD).startswith("/api/artifacts/")
