"""The form that starts a run: the input field by field or as JSON, and what else a start may say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.errors import Invalid
from ...core.schema_form import Field, form_of, read_form, rest, spread
from ...engine.labels import checked
from ...engine.runs import StartRequest
from ...models import WorkflowDefinition
from ..json_editor import JsonDocumentField, formatted

STRATEGIES = (
    ("FAIL", gettext_lazy("is refused, whatever became of the first run")),
    ("RETURN_EXISTING", gettext_lazy("starts nothing and leads to the first run")),
    ("FAIL_ON_RUNNING", gettext_lazy("is refused while the first run is open; afterwards it starts a new one")),
)
AS_FORM, AS_JSON = "form", "json"


class StartForm(forms.Form):
    """Everything about a start but its input."""

    correlation_id = forms.CharField(required=False, max_length=512, label=gettext_lazy("Correlation id"))
    priority = forms.IntegerField(required=False, min_value=0, max_value=99, label=gettext_lazy("Priority"), initial=0)
    idempotency_key = forms.CharField(required=False, max_length=255, label=gettext_lazy("Idempotency key"))
    idempotency_strategy = forms.ChoiceField(
        required=False, choices=STRATEGIES, initial="FAIL", label=gettext_lazy("Used again, it")
    )
    domains = forms.CharField(
        required=False,
        label=gettext_lazy("Domains"),
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": "charge_card = blue"}),
    )
    labels = forms.CharField(required=False, max_length=1400, label=gettext_lazy("Labels"))
    reason = forms.CharField(required=False, max_length=500, label=gettext_lazy("Reason"))

    def clean_labels(self) -> list[str]:
        """Labels with commas between them."""
        try:
            return checked(label for label in self.cleaned_data["labels"].split(",") if label.strip())
        except Invalid as refused:
            raise forms.ValidationError(refused.message) from refused

    def clean_domains(self) -> dict[str, str]:
        """`task = domain`, a line each."""
        pairs: dict[str, str] = {}
        for number, line in enumerate(self.cleaned_data["domains"].splitlines(), 1):
            if not line.strip():
                continue
            task, sign, domain = (part.strip() for part in line.partition("="))
            if not (sign and task and domain):
                raise forms.ValidationError(_("Line %(number)s is not like `task = domain`.") % {"number": number})
            pairs[task] = domain
        return pairs


class JsonInput(forms.Form):
    """The whole input as JSON."""

    input = JsonDocumentField(label=gettext_lazy("Input"), required=False)


@dataclass(slots=True)
class Shown:
    """One field as the template shows it: what stands in it, and what is wrong with it."""

    field: Field
    text: str
    errors: list[str]
    inner: "list[Shown]"

    @property
    def id(self) -> str:
        return "id_" + self.field.name.replace(".", "-")


class Start:
    """A start that is being put together, from an address or from what was sent."""

    def __init__(self, row: WorkflowDefinition, typed: Mapping[str, str] | None, given: Mapping[str, Any]) -> None:
        """`given`: what the form begins with: `input`, `correlation_id` …; `mode`: as form or as JSON."""
        schema = row.document.get("inputSchema")
        self.row, self.typed = row, typed
        self.fields = form_of(schema.get("data")) if isinstance(schema, Mapping) else ()
        self.document = given.get("input") or _first_input(row, self.fields)
        asked = typed.get("mode", AS_FORM) if typed is not None else given.get("mode", AS_FORM)
        is_form = bool(self.fields) and asked != AS_JSON and not (typed is None and rest(self.fields, self.document))
        self.mode = AS_FORM if is_form else AS_JSON
        self.form = StartForm(typed, initial={**given, "input": ""})
        self.json = JsonInput(typed if self.mode == AS_JSON else None, initial={"input": formatted(self.document)})
        self.wrong: dict[str, list[str]] = {}

    def is_valid(self) -> bool:
        """Whether a start can be asked for."""
        if self.mode == AS_FORM:
            self.document, wrong = read_form(self.fields, self.typed or {})
            self.wrong = {name: [message] for name, message in wrong.items()}
            return self.form.is_valid() and not wrong
        fits = self.json.is_valid()
        self.document = (self.json.cleaned_data.get("input") or {}) if fits else {}
        return self.form.is_valid() and fits

    def request(self) -> StartRequest:
        """The start as the engine hears it."""
        said = self.form.cleaned_data if self.form.is_bound else self.form.initial
        return StartRequest(
            name=self.row.name,
            version=self.row.version,
            input=self.document,
            correlation_id=said.get("correlation_id") or "",
            priority=said.get("priority") or 0,
            domains=said["domains"] if isinstance(said.get("domains"), dict) else {},
            labels=tuple(said["labels"]) if isinstance(said.get("labels"), list) else (),
            idempotency_key=said.get("idempotency_key") or None,
            idempotency_strategy=said.get("idempotency_strategy") or "FAIL",
        )

    def complain(self, path: str, message: str) -> None:
        """Show a complaint at the field that it speaks of, or above all fields."""
        names = {shown.field.name for shown in _flat(self.shown())} if self.mode == AS_FORM else set()
        name = path
        while name and name not in names:
            name = name.rpartition(".")[0]
        self.wrong.setdefault(name, []).append(message if name == path else f"{path}: {message}")

    def shown(self) -> list[Shown]:
        """The fields of the input."""
        texts = self.typed if self.typed is not None else spread(self.fields, self.document)
        return [self._shown(field, texts) for field in self.fields]

    def _shown(self, field: Field, texts: Mapping[str, str]) -> Shown:
        inner = [self._shown(each, texts) for each in field.fields]
        return Shown(field, texts.get(field.name, ""), self.wrong.get(field.name, []), inner)


def _flat(shown: list[Shown]):
    for each in shown:
        yield each
        yield from _flat(each.inner)


def _first_input(row: WorkflowDefinition, fields: tuple[Field, ...]) -> dict[str, Any]:
    """What a form begins with when nobody says: the defaults, or the names that the definition expects."""
    if fields:
        return {field.key: field.default for field in fields if field.default is not None}
    names = row.document.get("inputParameters")
    template = row.document.get("inputTemplate")
    known = template if isinstance(template, Mapping) else {}
    return {str(name): known.get(name, "") for name in names} if isinstance(names, list) else {}
