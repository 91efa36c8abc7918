"""A task definition as a form, with drawings of its retries and limits.

Retry schedule and time limits of a task definition, as drawings and sentences.

Drawings of a task definition: its retry schedule and its time limits.

A task definition as a form with drawings of its retries and limits. Fields that the form lacks are kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.definition import DEFAULT_TYPE, TIME_OUT_RUN, Policy
from ...core.document.fields import TASK_DEFINITION
from ...core.document.reading import read_policy
from ...core.timers import delay_seconds
from ...utils.formatting import SECOND, format_duration
from ...web.forms import format_json, parse_json_value
from ...web.pages import require_permission

MAX_DRAWN = 9
TASK_TIMES_OUT = (
    gettext_lazy("the task times out if no worker claims it in time"),
    gettext_lazy("the task times out if it is not completed in time"),
)
CONSEQUENCES = {
    TIME_OUT_RUN: (
        gettext_lazy("the run times out if no worker claims the task in time"),
        gettext_lazy("the run times out if the task is not completed in time"),
    ),
    "RETRY": (
        gettext_lazy("the task is retried if no worker claims it in time"),
        gettext_lazy("the task is retried if it is not completed in time"),
    ),
    "ALERT_ONLY": (
        gettext_lazy("counted in the metrics if no worker claims the task in time"),
        gettext_lazy("counted in the metrics if the task is not completed in time"),
    ),
}
"""Effect of a timeout, by timeout policy: on a pending task and on a task in progress."""


@dataclass(frozen=True, slots=True)
class PolicyAttempt:
    """One attempt of the retry schedule, with its position in percent of the width."""

    x: str
    from_x: str
    label: str
    is_last: bool
    is_high: bool


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """The attempts that are drawn, and the schedule as a sentence."""

    attempts: tuple[PolicyAttempt, ...]
    sentence: str
    height: int = 56


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """One time limit of a task. Left edge and width are in percent."""

    name: str
    span: str
    meaning: str
    left: str
    width: str


def policy_of(document: Mapping[str, Any]) -> Policy:
    """Return the policy of a task definition."""
    return read_policy(
        {"type": DEFAULT_TYPE, "name": str(document.get("name") or ""), "taskDefinition": dict(document)}
    )


def retry_schedule(policy: Policy) -> RetrySchedule:
    """Return when each attempt starts after the first, if every attempt fails immediately."""
    begins = [0]
    for number in range(min(policy.retries, MAX_DRAWN - 1)):
        begins.append(begins[-1] + delay_seconds(policy, number))
    places = [4 + 90 * begin / (begins[-1] or 1) for begin in begins]
    if begins[-1] == 0:
        places = [4 + 90 * place / max(len(begins) - 1, 1) for place in range(len(begins))]
    last = policy.retries
    attempts = tuple(
        PolicyAttempt(
            f"{places[place]:.2f}%",
            f"{places[max(place - 1, 0)]:.2f}%",
            f"{place + 1}." if place == 0 else f"+{format_duration(begin * SECOND)}",
            place == last,
            place % 2 == 1 and len(begins) > 4,
        )
        for place, begin in enumerate(begins)
    )
    return RetrySchedule(attempts, _describe(policy, begins))


def _describe(policy: Policy, begins: list[int]) -> str:
    if not policy.retries:
        return _("1 attempt, no retries.")
    count, more = policy.retries + 1, policy.retries + 1 - len(begins)
    if begins[-1] == 0:
        return _("%(count)s attempts, retried immediately.") % {"count": count}
    delays = ", ".join(format_duration((after - before) * SECOND) for before, after in pairwise(begins))
    if more:
        delays = _("%(delays)s, and %(more)s more") % {"delays": delays, "more": more}
    if policy.jitter_ms:
        delays = _("%(delays)s, each plus up to %(span)s jitter") % {
            "delays": delays,
            "span": format_duration(policy.jitter_ms),
        }
    if more:
        return _("%(count)s attempts, retried after %(delays)s.") % {"count": count, "delays": delays}
    sentence = _("%(count)s attempts, retried after %(delays)s. The last one starts %(total)s after the first failure.")
    return sentence % {"count": count, "delays": delays, "total": format_duration(begins[-1] * SECOND)}


def time_limits(policy: Policy) -> list[TimeLimit]:
    """Return the time limits of a policy: for polling, response, one attempt and all attempts."""
    untaken, undone = CONSEQUENCES.get(policy.timeout_policy, TASK_TIMES_OUT)
    rows = [
        (_("Poll timeout"), policy.poll_seconds, str(untaken)),
        (_("Response timeout"), policy.lease_seconds, _("the task is retried if its worker is silent this long")),
        (_("Timeout per attempt"), policy.timeout_seconds, str(undone)),
        (
            _("Total timeout"),
            policy.total_seconds,
            _("measured from the first attempt; then the task fails without retry"),
        ),
    ]
    longest = max((seconds for _name, seconds, _meaning in rows), default=0) or 1
    return [
        TimeLimit(name, format_duration(seconds * SECOND), meaning, "0%", f"{max(100 * seconds / longest, 1):.1f}%")
        for name, seconds, meaning in rows
        if seconds
    ]


def task_drawings(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context of `ops/definitions/task_drawings.html`. The document may be invalid."""
    policy = policy_of(document)
    return {"drawn": {"schedule": retry_schedule(policy), "limits": time_limits(policy)}}


RETRY_LOGICS = (
    ("FIXED", gettext_lazy("Fixed")),
    ("LINEAR_BACKOFF", gettext_lazy("Linear")),
    ("EXPONENTIAL_BACKOFF", gettext_lazy("Exponential")),
)
TIMEOUT_POLICIES = (
    ("TIME_OUT_WF", gettext_lazy("TIME_OUT_WF – time out the run")),
    ("RETRY", gettext_lazy("RETRY – make another attempt")),
    ("ALERT_ONLY", gettext_lazy("ALERT_ONLY – count only")),
)
MAX_INTEGER = 2**31 - 1

CHOICE_FIELDS = ("retryLogic", "timeoutPolicy")
CHOICE_DEFAULTS = {name: default for name, _read, default in TASK_DEFINITION if name in CHOICE_FIELDS}
"""Defaults of choices that a document omits. The menus show them."""


def integer_field(label: Any, help_text: Any = "", least: int = 0) -> forms.IntegerField:
    """Return a field for an optional whole number. The server's default applies if it is empty."""
    return forms.IntegerField(required=False, min_value=least, max_value=MAX_INTEGER, label=label, help_text=help_text)


class TaskForm(forms.Form):
    """The most common fields of a task definition, under the names that they have in the document."""

    name = forms.CharField(max_length=255, label=gettext_lazy("Name"))
    description = forms.CharField(required=False, max_length=2_000, label=gettext_lazy("Description"))
    ownerEmail = forms.CharField(required=False, max_length=255, label=gettext_lazy("Owner"))

    retryCount = integer_field(gettext_lazy("Retry count"))
    retryDelaySeconds = integer_field(gettext_lazy("Retry delay (s)"))
    retryLogic = forms.ChoiceField(required=False, choices=RETRY_LOGICS, label=gettext_lazy("Backoff"))
    backoffScaleFactor = integer_field(
        gettext_lazy("Backoff factor"),
        gettext_lazy(
            "Factor of each delay in exponential backoff, from the first retry on. With 1, each delay doubles."
        ),
        1,
    )
    maxRetryDelaySeconds = integer_field(gettext_lazy("Maximum delay (s)"), gettext_lazy("0 = unlimited"))
    backoffJitterMs = integer_field(
        gettext_lazy("Jitter (ms)"), gettext_lazy("Maximum random time added to each delay")
    )

    pollTimeoutSeconds = integer_field(gettext_lazy("Poll timeout (s)"), gettext_lazy("0 = unlimited"))
    responseTimeoutSeconds = integer_field(
        gettext_lazy("Response timeout (s)"), gettext_lazy("Lease expires if the worker is silent this long")
    )
    timeoutSeconds = integer_field(gettext_lazy("Attempt timeout (s)"), gettext_lazy("0 = unlimited"))
    totalTimeoutSeconds = integer_field(gettext_lazy("Total timeout (s)"), gettext_lazy("0 = unlimited"))
    timeoutPolicy = forms.ChoiceField(required=False, choices=TIMEOUT_POLICIES, label=gettext_lazy("Timeout policy"))

    concurrentExecLimit = integer_field(gettext_lazy("Concurrency limit"), gettext_lazy("0 = unlimited"))
    rateLimitPerFrequency = integer_field(gettext_lazy("Rate limit"), gettext_lazy("Per window; 0 = unlimited"))
    rateLimitFrequencyInSeconds = integer_field(gettext_lazy("Rate limit window (s)"), least=1)

    def document(self, before: dict[str, Any]) -> dict[str, Any]:
        """Return the document with the typed values, without empty fields and unchanged defaults."""
        values = {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}
        unchanged = {
            name: values.pop(name, before[name]) for name in before if name in values or name not in self.fields
        }
        return unchanged | {name: value for name, value in values.items() if CHOICE_DEFAULTS.get(name) != value}

    def field_groups(self) -> list[tuple[str, list[Any]]]:
        """Return the fields in the groups of the page."""
        names = list(self.fields)
        cut = [names.index(name) for name in ("retryCount", "pollTimeoutSeconds", "concurrentExecLimit")]
        heads = (_("General"), _("Retries"), _("Time limits"), _("Limits"))
        begins, ends = [0, *cut], [*cut, len(names)]
        return [
            (head, [self[name] for name in names[begin:end]])
            for head, begin, end in zip(heads, begins, ends, strict=True)
        ]


class TaskFormPages:
    """Page of the form. Saving uses the editor's review, reason and merge."""

    def form_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.form_view)
        return [
            path("form/", view, name="taskdefinition_form_new"),
            path("<int:pk>/form/", view, name="taskdefinition_form"),
        ]

    def form_view(self, request: HttpRequest, pk: int | None = None) -> HttpResponse:
        """Edit a definition, or create one, in the form. It starts with the user's draft if there is one."""
        require_permission(request, self.add_permission if pk is None else self.change_permission)
        row = self.find_row(request, pk) if pk is not None else None
        if "document" in request.POST:
            # The review posts the document back to the page that opened it.
            return self._handle_editor(request, row)
        editing_start = self._load_editing_start(request, row)
        before = _parse_draft(request.POST.get("before") or editing_start.text)
        form = TaskForm(request.POST if request.method == "POST" else None, initial=before)
        document = before
        if request.method == "POST" and form.is_valid():
            document = form.document(before)
            if request.POST.get("step") == "review":
                request.POST = request.POST.copy()
                request.POST["document"] = format_json(document)
                return self._handle_editor(request, row)
        title = _("Edit %(name)s") % {"name": row.name} if row else self.new_title
        context = {
            "row": row,
            "form": form,
            "before": format_json(before),
            "draft": editing_start.draft,
            **task_drawings(document),
        }
        return self.render_page(request, "task_form", title, base=self.base_revision(row) if row else "", **context)


def _parse_draft(text: str) -> dict[str, Any]:
    """Return the document of a draft, or an empty one if it is not a JSON object."""
    try:
        found = parse_json_value(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
