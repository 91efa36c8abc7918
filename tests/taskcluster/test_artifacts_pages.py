"""The host of artifacts, which is not that of the pages."""

import pytest
from django.core.files.base import ContentFile
from django.test import Client

from conductor_app.access.tokens import DOWNLOAD, UPLOAD, artifact_address
from conductor_app.taskcluster.commands import artifacts as artifact_contents
from conductor_app.taskcluster.models import Artifact

TASK = "AAAAAAAAQAKAAAAAAAAAAA"


@pytest.fixture
def artifact_link(db, clock, settings):
    """Return the path of the address of an artifact that browsers load from another host."""
    settings.CONDUCTOR_ARTIFACT_URL = "https://files.example.net"
    now = clock.now()
    facts = {"content_type": "text/html", "created_at": now, "expires_at": now + 3_600_000}
    Artifact.objects.create(task_id=TASK, number=0, name="public/a.html", kind="s3", **facts)
    artifact_contents.store_content(TASK, 0, "public/a.html", ContentFile(b"<script>alert(1)</script>"))
    return artifact_address(TASK, 0, "public/a.html", DOWNLOAD).removeprefix("https://files.example.net")


def test_artifacts_are_loaded_from_their_own_host(artifact_link):
    fetched = Client().get(artifact_link, headers={"host": "files.example.net"})

    assert b"".join(fetched.streaming_content) == b"<script>alert(1)</script>"
    assert "sandbox" in fetched["Content-Security-Policy"]


def test_the_host_of_the_pages_redirects_a_link_to_the_host_of_artifacts(artifact_link):
    found = Client().get(artifact_link)

    assert (found.status_code, found["Location"]) == (302, f"https://files.example.net{artifact_link}")


def test_the_host_of_artifacts_serves_nothing_more(operator, settings):
    settings.CONDUCTOR_ARTIFACT_URL = "https://files.example.net"
    for path in ["/admin/", "/admin/login/", "/api/metadata/workflow", "/api/queue/v1/ping", "/"]:
        assert operator.get(path, headers={"host": "FILES.example.net"}).status_code == 404, path
        assert operator.get(path).status_code != 404, path


def test_a_worker_uploads_to_the_host_of_its_request(settings):
    settings.CONDUCTOR_ARTIFACT_URL = "https://files.example.net"

    assert artifact_address(TASK, 0, "a", UPLOAD).startswith("/api/artifacts/")
