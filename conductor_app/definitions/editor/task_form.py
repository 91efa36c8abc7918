"""A task definition as a form, with its retries and limits in words. Fields that the form lacks are kept."""

from typing import Any, cast

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.document.fields import TASK_DEFINITION
from ...utils.formatting import LazyText
from ...web.forms import format_json, parse_json_value
from ...web.pages import require_permission_on_any
from ..policies import policy_context
from .pages import DefinitionAdmin

RETRY_LOGICS = (
    ("FIXED", gettext_lazy("Fixed")),
    ("LINEAR_BACKOFF", gettext_lazy("Linear")),
    ("EXPONENTIAL_BACKOFF", gettext_lazy("Exponential")),
)
TIMEOUT_POLICIES = (
    ("TIME_OUT_WF", gettext_lazy("Time out the run")),
    ("RETRY", gettext_lazy("Make another attempt")),
    ("ALERT_ONLY", gettext_lazy("Only count the timeout")),
)
MAX_INTEGER = 2**31 - 1
CHOICE_FIELDS = ("retryLogic", "timeoutPolicy")
CHOICE_DEFAULTS = {name: default for name, _read, default in TASK_DEFINITION if name in CHOICE_FIELDS}
"""Defaults of choices that a document omits. The menus show them."""


def integer_field(label: str | LazyText, help_text: str | LazyText = "", least: int = 0) -> forms.IntegerField:
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
        gettext_lazy("Response timeout (s)"), gettext_lazy("The task is retried if its worker is silent this long")
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
        names = list(self.fields)
        cut = [names.index(name) for name in ("retryCount", "pollTimeoutSeconds", "concurrentExecLimit")]
        heads = (_("General"), _("Retries"), _("Time limits"), _("Limits"))
        begins, ends = [0, *cut], [*cut, len(names)]
        return [
            (head, [self[name] for name in names[begin:end]])
            for head, begin, end in zip(heads, begins, ends, strict=True)
        ]


class TaskFormPages(DefinitionAdmin):
    """Page of the form. Saving uses the editor's review, reason and merge."""

    def form_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.form_view)
        return [
            path("form/", view, name="taskdefinition_form_new"),
            path("<int:pk>/form/", view, name="taskdefinition_form"),
        ]

    def form_view(self, request: HttpRequest, pk: int | None = None) -> HttpResponse:
        """Edit a definition, or create one, in the form. It starts with the user's draft if there is one."""
        if pk is None:
            require_permission_on_any(request, self.add_permission)
        row = self.find_row(request, pk, self.change_permission) if pk is not None else None
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
                data = request.POST.copy()
                data["document"] = format_json(document)
                request.POST = cast(Any, data)
                return self._handle_editor(request, row)
        title = _("Edit %(name)s") % {"name": row.name} if row else self.new_title
        context = {
            "row": row,
            "form": form,
            "before": format_json(before),
            "draft": editing_start.draft,
            **policy_context(document),
        }
        return self.render_page(request, "task_form", title, base=self.base_revision(row) if row else "", **context)


def _parse_draft(text: str) -> dict[str, Any]:
    """Return the document of a draft, or an empty one if it is not a JSON object."""
    try:
        found = parse_json_value(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
