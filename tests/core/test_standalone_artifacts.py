"""When an artifact may be added to an attempt, and what may replace it (taskcluster §4.1)."""

from dataclasses import replace

import pytest

from conductor_app.core.errors import Conflict, Invalid
from conductor_app.core.snapshot import Attempt
from conductor_app.core.standalone.artifacts import ArtifactValue, replace_artifact, require_writable_attempt
from conductor_app.core.standalone.snapshot import StandaloneTask

NOW = 1_800_000_000_000
MINUTE = 60_000
DAY = 24 * 60 * MINUTE


def standalone(status="LEASED", reason="", worker="here/w1", minutes_ago=0):
    ended_at = None if status in ("LEASED", "PENDING") else NOW - minutes_ago * MINUTE
    attempt = Attempt(
        id="a", number=0, status=status, reason=reason, worker=worker, ended_at=ended_at, seq=0, queue="p/w",
        scheduled_at=NOW, visible_at=NOW, due_at=NOW, updated_at=NOW,
    )  # fmt: skip
    return StandaloneTask(
        id="t", group_id="t", queue="p/w", deadline_at=NOW + DAY, expires_at=NOW + DAY, created_at=NOW,
        attempts=(attempt,),
    )  # fmt: skip


POSSIBLE = {
    "while it runs": standalone(),
    "after an exception": standalone("EXPIRED", "claim-expired", minutes_ago=25),
    "after it was canceled": standalone("CANCELED", "canceled", minutes_ago=1),
}


@pytest.mark.parametrize("case", POSSIBLE)
def test_an_artifact_may_be_added(case):
    assert require_writable_attempt(POSSIBLE[case], 0, NOW + DAY, NOW).id == "a"


REFUSED = {
    "after it was completed": (standalone("COMPLETED", "completed"), 0, NOW, Conflict),
    "after it failed": (standalone("FAILED_FOR_GOOD", "failed"), 0, NOW, Conflict),
    "too long after an exception": (standalone("EXPIRED", "claim-expired", minutes_ago=26), 0, NOW, Conflict),
    "to what nobody works on": (standalone("PENDING", worker=""), 0, NOW, Invalid),
    "to what nobody ever worked on": (standalone("CANCELED", "canceled", worker=""), 0, NOW, Invalid),
    "to a run that is not there": (standalone(), 1, NOW, Invalid),
    "for longer than the task": (standalone(), 0, NOW + DAY + 1, Invalid),
    "that has expired": (standalone(), 0, NOW - 15 * MINUTE - 1, Invalid),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_artifact_may_not_be_added(case):
    task, number, expires_at, error = REFUSED[case]

    with pytest.raises(error):
        require_writable_attempt(task, number, expires_at, NOW)


FILE = ArtifactValue("s3", "text/plain", NOW)
STREAM = ArtifactValue("reference", "text/plain", NOW, {"url": "http://a"})
LINK = ArtifactValue("link", "application/binary", NOW, {"artifact": "a"})
FAULT = ArtifactValue("error", "application/binary", NOW, {"reason": "r", "message": "m"})
ALLOWED = {
    "a file again": (FILE, FILE),
    "a file for longer": (FILE, replace(FILE, expires_at=NOW + 1)),
    "a stream elsewhere": (STREAM, replace(STREAM, details={"url": "http://b"})),
    "a stream by a link": (STREAM, LINK),
    "a link again": (LINK, LINK),
    "a fault again": (FAULT, FAULT),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_an_artifact_may_be_replaced(case):
    old, new = ALLOWED[case]

    assert replace_artifact(old, new) == replace(new, content_type=old.content_type)


CONFLICTS = {
    "a file of another type": (FILE, replace(FILE, content_type="text/html")),
    "a file for a shorter time": (FILE, replace(FILE, expires_at=NOW - 1)),
    "a stream of another type": (STREAM, replace(STREAM, content_type="text/html")),
    "a stream by a link for a shorter time": (STREAM, replace(LINK, expires_at=NOW - 1)),
    "a link to another": (LINK, replace(LINK, details={"artifact": "b"})),
    "a link by a stream": (LINK, STREAM),
    "another fault": (FAULT, replace(FAULT, details={"reason": "r", "message": "n"})),
    "a fault by a file": (FAULT, FILE),
    "a file by an object": (FILE, replace(FILE, kind="object")),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_an_artifact_may_not_be_replaced(case):
    with pytest.raises(Conflict):
        replace_artifact(*CONFLICTS[case])
