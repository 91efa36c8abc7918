"""scriptworker, as it comes from its makers, builds the demo's release; and the program that it runs for that."""

import pytest
import taskcluster

from conductor_app.taskcluster.commands import tasks as claims
from conductor_app.taskcluster.models import StandaloneTask
from examples.demo import build


def test_a_build_is_run_by_a_scriptworker_from_its_sources_to_its_release(server, monkeypatch):
    # It is stopped while it waits for work, and the server would wait on.
    monkeypatch.setattr(claims, "CLAIM_WAIT_SECONDS", 1.0)
    # A scriptworker takes its time to start.
    monkeypatch.setattr(build, "FLAKY", 1)
    lines = []

    found = build.run_build(server, lines.append, tests=1, workers=1)

    assert found == []
    assert any("test 1 exception (intermittent-task)" in line for line in lines)
    artifacts = taskcluster.Queue({"rootUrl": server}).listLatestArtifacts(StandaloneTask.objects.get(priority=5).pk)[
        "artifacts"
    ]
    assert {"public/release.json", "public/logs/live_backing.log"} <= {each["name"] for each in artifacts}


def test_a_build_with_another_result_reports_it():
    run = {"runId": 0, "state": "completed"}
    statuses = {"sources": {"state": "failed", "runs": [run]}, "test 7": {"state": "completed", "runs": [run]}}

    assert build.find_problems(statuses) == ["sources is failed.", "test 7 had 1 runs instead of two."]


def test_credentials_are_read_from_the_environment(monkeypatch):
    monkeypatch.setenv("TASKCLUSTER_CLIENT_ID", "me")
    assert build.taskcluster_credentials() == {}
    monkeypatch.setenv("TASKCLUSTER_ACCESS_TOKEN", "token")

    assert build.client_options("http://x")["credentials"] == {"clientId": "me", "accessToken": "token"}


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch):
    for name in ("TASKCLUSTER_CLIENT_ID", "TASKCLUSTER_ACCESS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
