"""Artifacts, the files of attempts: when one can be added, and what can replace it (taskcluster §4.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import Conflict, Invalid
from ..frozen import fast_replace
from ..snapshot import NEVER, Attempt
from .rules import attempt_state
from .snapshot import StandaloneTask

S3, OBJECT, REFERENCE, LINK, ERROR = ("s3", "object", "reference", "link", "error")
MINUTE_MS = 60_000
DRIFT_MS = 15 * MINUTE_MS
LATE_MS = 25 * MINUTE_MS
"""The period in which a worker can still upload artifacts, above all its log, after its attempt was ended for it."""


@dataclass(frozen=True)
class ArtifactValue:
    """An artifact. `details`: the target of a reference, the name of a linked artifact, or an error."""

    kind: str
    content_type: str
    expires_at: int
    details: Mapping[str, Any] = field(default_factory=dict)
    content_length: int | None = None


def require_writable_attempt(standalone: StandaloneTask, number: int, expires_at: int, now: int) -> Attempt:
    """Return the attempt that an artifact is added to.

    Raises:
        Invalid: when there is no claimed attempt with this number, or the expiry is invalid
        Conflict: when the attempt no longer accepts artifacts.
    """
    if expires_at < now - DRIFT_MS:
        raise Invalid("The expiry of an artifact must be in the future.")
    if number >= len(standalone.attempts):
        raise Invalid(f"Task {standalone.id} has no run {number}.")
    attempt = standalone.attempts[number]
    if not attempt.worker:
        raise Invalid(f"Run {number} of task {standalone.id} was never claimed.")
    if expires_at > standalone.expires_at:
        raise Invalid("An artifact must not expire later than its task.")
    is_late = now - (NEVER if attempt.ended_at is None else attempt.ended_at) > LATE_MS
    if attempt_state(attempt) not in ("running", "exception") or is_late:
        raise Conflict(
            f"Run {number} of task {standalone.id} no longer accepts artifacts, because it is {attempt_state(attempt)}."
        )
    return attempt


def replace_artifact(old: ArtifactValue, new: ArtifactValue) -> ArtifactValue:
    """Return the artifact after it was created again.

    Raises:
        Conflict: when it would change an existing artifact.
    """
    if not _may_replace(old, new):
        raise Conflict("A different artifact with this name already exists.")
    # A log that was streamed and then stored keeps its type.
    return fast_replace(new, content_type=old.content_type) if new.kind == LINK else new


def _may_replace(old: ArtifactValue, new: ArtifactValue) -> bool:
    if new.expires_at < old.expires_at:
        return False
    if (old.kind, new.kind) == (REFERENCE, LINK):
        return True
    if old.kind != new.kind or (new.kind != LINK and old.content_type != new.content_type):
        return False
    return new.kind == REFERENCE or all(old.details.get(name) == value for name, value in new.details.items())
