"""A task definition as a form: its retries, time limits and limits, drawn; what the form does not show stays."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.document.checks.field_specs import TASK_DEFINITION
from ..error_messages import require_permission
from ..form_parsing import parse_json_value
from ..json_editor import format_json
from .task_drawings import task_drawings

RETRY_LOGICS = (
    ("FIXED", gettext_lazy("the same each time")),
    ("LINEAR_BACKOFF", gettext_lazy("longer by the same amount each time")),
    ("EXPONENTIAL_BACKOFF", gettext_lazy("multiplied each time")),
)
TIMEOUT_POLICIES = (
    ("TIME_OUT_WF", gettext_lazy("the run times out")),
    ("RETRY", gettext_lazy("another attempt is made")),
    ("ALERT_ONLY", gettext_lazy("it is only counted")),
)
MAX_INTEGER = 2**31 - 1

CHOICE_FIELDS = ("retryLogic", "timeoutPolicy")
CHOICE_DEFAULTS = {name: default for name, _read, default in TASK_DEFINITION if name in CHOICE_FIELDS}
"""What holds where a document says nothing: the form's menus show it then."""


def integer_field(label: Any, help_text: Any = "", least: int = 0) -> forms.IntegerField:
    """A whole number that may be left out: then the server's own holds."""
    return forms.IntegerField(required=False, min_value=least, max_value=MAX_INTEGER, label=label, help_text=help_text)


class TaskForm(forms.Form):
    """What most authors say of a task; the names are those of the document."""

    name = forms.CharField(max_length=255, label=gettext_lazy("Name"))
    description = forms.CharField(required=False, max_length=2_000, label=gettext_lazy("Description"))
    ownerEmail = forms.CharField(required=False, max_length=255, label=gettext_lazy("Owner"))

    retryCount = integer_field(gettext_lazy("Retries after a failure"))
    retryDelaySeconds = integer_field(gettext_lazy("Seconds before a retry"))
    retryLogic = forms.ChoiceField(required=False, choices=RETRY_LOGICS, label=gettext_lazy("That delay is"))
    backoffScaleFactor = integer_field(
        gettext_lazy("Growth factor"),
        gettext_lazy(
            "Above 1, a multiplied delay grows by this factor each time, the first one too; otherwise it doubles."
        ),
        1,
    )
    maxRetryDelaySeconds = integer_field(gettext_lazy("Longest delay in seconds"), gettext_lazy("0: without a bound."))
    backoffJitterMs = integer_field(
        gettext_lazy("Spread in milliseconds"), gettext_lazy("Each delay is longer by so much at most.")
    )

    pollTimeoutSeconds = integer_field(gettext_lazy("Seconds in the queue"), gettext_lazy("0: as long as it takes."))
    responseTimeoutSeconds = integer_field(
        gettext_lazy("Seconds for the worker to answer"), gettext_lazy("Who says nothing for so long has lost it.")
    )
    timeoutSeconds = integer_field(gettext_lazy("Seconds for one attempt"), gettext_lazy("0: without a bound."))
    totalTimeoutSeconds = integer_field(gettext_lazy("Seconds for all attempts"), gettext_lazy("0: without a bound."))
    timeoutPolicy = forms.ChoiceField(required=False, choices=TIMEOUT_POLICIES, label=gettext_lazy("When time is over"))

    concurrentExecLimit = integer_field(gettext_lazy("Tasks at a time"), gettext_lazy("0: any number."))
    rateLimitPerFrequency = integer_field(gettext_lazy("Tasks in a window"), gettext_lazy("0: any number."))
    rateLimitFrequencyInSeconds = integer_field(gettext_lazy("Seconds of the window"), least=1)

    def document(self, before: dict[str, Any]) -> dict[str, Any]:
        """The document with what was typed; a field that is left empty is left out, and so is a choice nobody made."""
        values = {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}
        kept = {name: values.pop(name, before[name]) for name in before if name in values or name not in self.fields}
        return kept | {name: value for name, value in values.items() if CHOICE_DEFAULTS.get(name) != value}

    def field_groups(self) -> list[tuple[str, list[Any]]]:
        """The fields as the page shows them."""
        names = list(self.fields)
        cut = [names.index(name) for name in ("retryCount", "pollTimeoutSeconds", "concurrentExecLimit")]
        heads = (_("What it is"), _("Retries"), _("Time limits"), _("Limits"))
        begins, ends = [0, *cut], [*cut, len(names)]
        return [
            (head, [self[name] for name in names[begin:end]])
            for head, begin, end in zip(heads, begins, ends, strict=True)
        ]


class TaskFormPages:
    """The page of the form; saving goes the editor's way: review, reason, merge."""

    def form_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.form_view)
        return [
            path("form/", view, name="taskdefinition_form_new"),
            path("<int:pk>/form/", view, name="taskdefinition_form"),
        ]

    def form_view(self, request: HttpRequest, pk: int | None = None) -> HttpResponse:
        """The form of a definition, new or not, begun with its draft."""
        require_permission(request, self.change_permission)
        row = self.find_row(request, pk) if pk is not None else None
        if "document" in request.POST:
            # The review comes back to where it was asked for.
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
    """The document of a draft, as far as it is one."""
    try:
        found = parse_json_value(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
