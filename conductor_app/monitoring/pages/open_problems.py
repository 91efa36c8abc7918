"""What the header of every page says about the work: failed runs, and queues without workers.

A page shows the counts of this process. The header counts when it refreshes, so that no page runs a statement for it.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from time import monotonic

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ...access.visibility import may, sees_all_runs, visible
from ...bulk.selections import UNSUCCESSFUL_STATUSES
from ...runs.models import Run
from ...runs.pages.list import FAILED_RECENTLY
from ...tasks.queries.queue_states import queues_without_workers
from ...utils import clock, process_state
from ...utils.formatting import DAY
from ...web.badges import format_lower_bound
from .overview import visible_queues

MAX_COUNTED = 1_000
KEPT_SECONDS, SHOWN_SECONDS = 3, 30
"""How long a count is not repeated, and how long pages show it until their header has counted anew."""
MAX_USERS = 500
VIEW_RUN = "conductor.view_run"
ALL_RUNS, NOT_SIGNED_IN = 0, -1
"""The keys of the users who see all runs, and of a user who is not signed in. The key of any other user is its id."""


@dataclass(frozen=True, slots=True)
class OpenProblems:
    """Runs that failed within 24 hours and are failed, up to MAX_COUNTED, and queues with tasks and no worker."""

    failed: int = 0
    queues: int = 0

    @property
    def total(self) -> str:
        """Return how many runs and queues have problems, with a plus sign if more runs failed."""
        counted = min(self.failed, MAX_COUNTED)
        return format_lower_bound(counted + self.queues, self.failed > MAX_COUNTED)

    @property
    def links(self) -> list[tuple[str, str]]:
        """Return a text for each kind of problem that exists, and the address of what it counts."""
        failed = format_lower_bound(min(self.failed, MAX_COUNTED), self.failed > MAX_COUNTED)
        queues = ngettext("%(count)s queue without workers", "%(count)s queues without workers", self.queues)
        runs = reverse("admin:conductor_run_changelist", query={"status": UNSUCCESSFUL_STATUSES, **FAILED_RECENTLY})
        attention = f"{reverse('admin:index')}#attention"
        found = [(_("%(count)s failed now") % {"count": failed}, runs)] if self.failed else []
        return [*found, (queues % {"count": self.queues}, attention)] if self.queues else found


_counted: process_state.Slot[dict[Hashable, tuple[float, OpenProblems]]] = process_state.slot(dict)


def known_problems(request: HttpRequest) -> tuple[OpenProblems | None, bool]:
    """Return what this process has counted for the user within SHOWN_SECONDS, or None. Runs no statement.

    Also returns True if it was counted within KEPT_SECONDS.
    """
    if not may(request.user, VIEW_RUN):
        return OpenProblems(), True
    return _counted_within(request, SHOWN_SECONDS), _counted_within(request, KEPT_SECONDS) is not None


def count_problems(request: HttpRequest) -> OpenProblems:
    """Return the problems with the work that the user may see.

    Runs two statements, and a third if a queue is not polled, at most every KEPT_SECONDS for all who see all runs, and
    for each other user. The header of the overview and of a page after an action asks for a count of its own.
    """
    if not may(request.user, VIEW_RUN):
        return OpenProblems()
    if "fresh" not in request.GET and (kept := _counted_within(request, KEPT_SECONDS)) is not None:
        return kept
    now = clock.now()
    failed = Run.objects.filter(status__in=UNSUCCESSFUL_STATUSES, ended_at__gte=now - DAY).order_by()
    problems = OpenProblems(
        visible(failed).values("pk")[: MAX_COUNTED + 1].count(),
        len(queues_without_workers(visible_queues(), now)),
    )
    counted = _counted.value
    if len(counted) >= MAX_USERS:
        counted.clear()
    counted[_key(request)] = monotonic(), problems
    return problems


def _counted_within(request: HttpRequest, seconds: int) -> OpenProblems | None:
    counted_at, problems = _counted.value.get(_key(request), (0.0, None))
    return problems if problems is not None and monotonic() - counted_at < seconds else None


def _key(request: HttpRequest) -> Hashable:
    return ALL_RUNS if sees_all_runs() else request.user.pk or NOT_SIGNED_IN
