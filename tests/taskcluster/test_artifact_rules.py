"""Rules for adding and replacing artifacts of an attempt (taskcluster §4.1)."""

from dataclasses import replace

import pytest

from conductor_app.core.errors import Conflict, Invalid
from conductor_app.core.snapshot import Attempt
from conductor_app.taskcluster.core.decisions import ArtifactValue, replace_artifact, require_writable_attempt
from conductor_app.taskcluster.core.snapshot import StandaloneTask

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


WRITABLE = {
    "while the attempt is leased": standalone(),
    "after an exception": standalone("EXPIRED", "claim-expired", minutes_ago=25),
    "after a cancellation": standalone("CANCELED", "canceled", minutes_ago=1),
}


@pytest.mark.parametrize("case", WRITABLE)
def test_an_artifact_may_be_added(case):
    assert require_writable_attempt(WRITABLE[case], 0, NOW + DAY, NOW).id == "a"


REFUSED = {
    "after completion": (standalone("COMPLETED", "completed"), 0, NOW, Conflict),
    "after a failure": (standalone("FAILED_FOR_GOOD", "failed"), 0, NOW, Conflict),
    "too long after an exception": (standalone("EXPIRED", "claim-expired", minutes_ago=26), 0, NOW, Conflict),
    "to a pending attempt": (standalone("PENDING", worker=""), 0, NOW, Invalid),
    "to an attempt that was never claimed": (standalone("CANCELED", "canceled", worker=""), 0, NOW, Invalid),
    "to an unknown attempt": (standalone(), 1, NOW, Invalid),
    "beyond the expiry of the task": (standalone(), 0, NOW + DAY + 1, Invalid),
    "already expired": (standalone(), 0, NOW - 15 * MINUTE - 1, Invalid),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_artifact_may_not_be_added(case):
    task, number, expires_at, error = REFUSED[case]

    with pytest.raises(error):
        require_writable_attempt(task, number, expires_at, NOW)


FILE = ArtifactValue("s3", "text/plain", NOW)
REFERENCE = ArtifactValue("reference", "text/plain", NOW, {"url": "http://a"})
LINK = ArtifactValue("link", "application/binary", NOW, {"artifact": "a"})
ERROR = ArtifactValue("error", "application/binary", NOW, {"reason": "r", "message": "m"})
ALLOWED = {
    "file by the same file": (FILE, FILE),
    "file by one with a later expiry": (FILE, replace(FILE, expires_at=NOW + 1)),
    "reference by one to another URL": (REFERENCE, replace(REFERENCE, details={"url": "http://b"})),
    "reference by a link": (REFERENCE, LINK),
    "link by the same link": (LINK, LINK),
    "error by the same error": (ERROR, ERROR),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_an_artifact_may_be_replaced(case):
    old, new = ALLOWED[case]

    assert replace_artifact(old, new) == replace(new, content_type=old.content_type)


CONFLICTS = {
    "file by one of another type": (FILE, replace(FILE, content_type="text/html")),
    "file by one with an earlier expiry": (FILE, replace(FILE, expires_at=NOW - 1)),
    "reference by one of another type": (REFERENCE, replace(REFERENCE, content_type="text/html")),
    "a stream by a link for a shorter time": (REFERENCE, replace(LINK, expires_at=NOW - 1)),
    "link by one to another artifact": (LINK, replace(LINK, details={"artifact": "b"})),
    "link by a reference": (LINK, REFERENCE),
    "error by another error": (ERROR, replace(ERROR, details={"reason": "r", "message": "n"})),
    "error by a file": (ERROR, FILE),
    "file by an object": (FILE, replace(FILE, kind="object")),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_an_artifact_may_not_be_replaced(case):
    with pytest.raises(Conflict):
        replace_artifact(*CONFLICTS[case])
