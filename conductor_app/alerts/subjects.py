"""What alerts can measure besides the runs of a view. The slice of a subject, such as budgets, registers it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from ..core.errors import Invalid
from ..utils import process_state
from .models import Alert


@dataclass(frozen=True, slots=True)
class SubjectMeasure:
    """A measured percentage, and a sentence about it."""

    percent: int = 0
    sentence: str = "there is nothing to measure"


class AlertSubject:
    """A subject of alerts of one kind. An alert refers to one object of the subject, or to all of them.

    This class is the subject of a kind that this server does not have: it has no objects, and no alert on it fires.
    """

    permission = ""
    """The permission to see its objects."""
    noun: Any = ""
    label: Any = ""
    """The condition in the form of an alert."""
    page = "views"
    """The page that the link in a notification leads to."""

    def exists(self, reference: Mapping[str, str]) -> bool:
        """Return True if there is the object that an alert refers to."""
        return False

    def describe(self, reference: Mapping[str, str] | None) -> str:
        """Return the name of an object, or that of all objects."""
        return " ".join(filter(None, reference.values())) if reference else ""

    def choices(self) -> list[tuple[int, str]]:
        """Return the objects with their ids in the form of an alert."""
        return []

    def find(self, id: int) -> dict[str, str]:
        """Return what refers to the object with an id from the form.

        Raises:
            Invalid: when there is no such object.
        """
        raise Invalid(_("This server has no such subject of alerts."))

    def measure(self, alert: Alert, since: int, now: int) -> SubjectMeasure:
        """Return the highest percentage among the objects of an alert. `since`: the beginning of its window."""
        return SubjectMeasure()

    def past_percents(self, alert: Alert, moments: Sequence[int]) -> list[int]:
        """Return the highest percentage at each of these times."""
        return [0] * len(moments)


_subjects: process_state.Wiring[Mapping[str, AlertSubject]] = process_state.wiring({})


def register_subject(kind: str, subject: AlertSubject) -> None:
    """Register the subject of a kind of alerts."""
    _subjects.value = {**_subjects.value, kind: subject}


def subject_of(kind: str) -> AlertSubject:
    """Return the subject of a kind of alerts."""
    return _subjects.value.get(kind) or AlertSubject()


def registered_subjects() -> Mapping[str, AlertSubject]:
    """Return the subjects by the kinds of their alerts."""
    return _subjects.value
