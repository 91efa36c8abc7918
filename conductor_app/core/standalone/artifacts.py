"""Artifacts: what workers keep of their attempts. When one may be added, and what may replace it (taskcluster §4.1)."""

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
"""How long a worker whose attempt was ended for it may still bring what it has: its log, above all."""


@dataclass(frozen=True)
class ArtifactValue:
    """One artifact. `details`: where a reference leads, the name of what is linked, what went wrong."""

    kind: str
    content_type: str
    expires_at: int
    details: Mapping[str, Any] = field(default_factory=dict)
    content_length: int | None = None


def require_writable_attempt(standalone: StandaloneTask, number: int, expires_at: int, now: int) -> Attempt:
    """The attempt that the artifact is added to. Raises Invalid and Conflict."""
    if expires_at < now - DRIFT_MS:
        raise Invalid("An artifact must not have expired before it is created.")
    if number >= len(standalone.attempts):
        raise Invalid(f"Task {standalone.id} has no run {number}.")
    attempt = standalone.attempts[number]
    if not attempt.worker:
        raise Invalid(f"Run {number} of task {standalone.id} was never claimed.")
    if expires_at > standalone.expires_at:
        raise Invalid("An artifact must expire before its task does, or with it.")
    is_late = now - (NEVER if attempt.ended_at is None else attempt.ended_at) > LATE_MS
    if attempt_state(attempt) not in ("running", "exception") or is_late:
        raise Conflict(
            f"Run {number} of task {standalone.id} takes no artifacts any more: it is {attempt_state(attempt)}."
        )
    return attempt


def replace_artifact(old: ArtifactValue, new: ArtifactValue) -> ArtifactValue:
    """The artifact when it is created once more; raises Conflict where that would make it another."""
    if not _may_replace(old, new):
        raise Conflict("There is an artifact of this name already, and it is another one.")
    # A log that streamed and was then kept has the type that it had.
    return fast_replace(new, content_type=old.content_type) if new.kind == LINK else new


def _may_replace(old: ArtifactValue, new: ArtifactValue) -> bool:
    if new.expires_at < old.expires_at:
        return False
    if (old.kind, new.kind) == (REFERENCE, LINK):
        return True
    if old.kind != new.kind or (new.kind != LINK and old.content_type != new.content_type):
        return False
    return new.kind == REFERENCE or all(old.details.get(name) == value for name, value in new.details.items())
