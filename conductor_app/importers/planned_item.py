"""One definition of the source, and what the import does with it."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class CompatibilityFinding:
    """A difference between the source and this server. `path`: the step or field.

    `is_blocking`: it cannot work here before something is done.
    """

    path: str
    text: str
    is_blocking: bool = False

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        return f"{'!' if self.is_blocking else '-'} {place}{self.text}"


class Verdict(StrEnum):
    """How a definition of the source compares with what is here."""

    NEW = "new"
    UNCHANGED = "unchanged"
    DIFFERENT = "different"
    INVALID = "invalid"


class OnConflict(StrEnum):
    """What is done with a definition that differs from the one of the same name that is here."""

    SKIP = "skip"
    REPLACE = "replace"
    NEW_VERSION = "new-version"
    FAIL = "fail"


class Outcome(StrEnum):
    """What the import has done with a definition."""

    CREATED = "created"
    REPLACED = "replaced"
    NEW_VERSION = "saved as a new version"
    SKIPPED = "skipped"
    FAILED = "failed"
    UNCHANGED = "unchanged"


@dataclass(slots=True)
class PlannedItem:
    """One definition. `changes`: what would change here. `reason`: why it is invalid, or could not be saved.

    `position`: of its document in the spool. `planned`: the outcome that the plan announces.
    """

    kind: str
    name: str
    version: int | None
    verdict: Verdict
    planned: Outcome
    position: int
    changes: tuple[str, ...] = ()
    reason: str = ""
    findings: tuple[CompatibilityFinding, ...] = ()
    outcome: Outcome | None = None

    @property
    def title(self) -> str:
        return self.name if self.version is None else f"{self.name}, version {self.version}"

    @property
    def changes_something(self) -> bool:
        return self.planned in (Outcome.CREATED, Outcome.REPLACED, Outcome.NEW_VERSION)

    @property
    def is_left_out(self) -> bool:
        """Return True if this server does not have what the source has, also after the import."""
        return (self.outcome or self.planned) in (Outcome.SKIPPED, Outcome.FAILED)
