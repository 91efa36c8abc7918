"""Form templates of human tasks: lookups, and commands that save and delete them.

A template has a name and a version. Each change is written to the audit log.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import IntegrityError
from django.db.models import Max

from ..core.errors import Conflict, NotFound, ValidationError, ValidationFailed
from ..core.human_tasks import named_template, read_form_template
from ..core.primitives import JsonValue
from ..core.step_types.waiting import Human
from ..db.database import transaction
from ..definitions.schemas import schema_error
from ..definitions.store import record_definition_change
from ..utils import clock
from .models import FormTemplate

KIND = "form_template"
MAX_AT_ONCE = 500


def find_template(name: str, version: int = 0) -> FormTemplate:
    """Return a template; the newest version if `version` is 0."""
    rows = FormTemplate.objects.filter(name=name)
    row = (rows.filter(version=version) if version else rows.order_by("-version")).first()
    if row is None:
        raise NotFound(f"No such form template: {name}" + (f", version {version}" if version else ""))
    return row


def template_of(input: Mapping[str, Any]) -> FormTemplate | None:
    """Return the template that the input of a HUMAN task names, or None if it names none or a deleted one."""
    named = named_template(input)
    if named is None:
        return None
    try:
        return find_template(*named)
    except NotFound:
        return None


def named_templates(definition: JsonValue) -> set[tuple[str, int]]:
    """Return name and version of each template that the HUMAN steps of a workflow definition use."""
    found: set[tuple[str, int]] = set()
    left = [definition]
    while left:
        value = left.pop()
        if isinstance(value, list):
            left += value
        elif isinstance(value, Mapping):
            given = value.get("inputParameters")
            if value.get("type") == Human.type and isinstance(given, Mapping) and (named := named_template(given)):
                found.add(named)
            left += value.values()
    return found


def save_templates(
    documents: Sequence[Mapping[str, Any]], by: str, *, new_version: bool = False, reason: str = ""
) -> list[FormTemplate]:
    """Save form templates, or none if one is refused. Returns the rows in the order of the documents.

    A document without a version (or with 0) replaces the newest version, or becomes version 1. `new_version`: save
    each as the version after the newest one.

    Raises:
        ValidationFailed: when one of the documents is invalid; with the errors of all.
        Conflict: when a concurrent request saves the same version.
    """
    if len(documents) > MAX_AT_ONCE:
        raise ValidationFailed(
            [ValidationError("", f"At most {MAX_AT_ONCE} templates can be saved at once (got {len(documents)}).")]
        )
    read = [(read_form_template(document), number) for number, document in enumerate(documents)]
    is_list = len(documents) > 1
    validation_errors = [
        ValidationError(f"[{number}].{each.path}" if is_list else each.path, each.message, each.value)
        for (document, found), number in read
        for each in (*found, *template_schema_errors(document))
    ]
    if validation_errors:
        raise ValidationFailed(validation_errors)
    with transaction.atomic():
        return [_save_one(document, by, new_version, reason) for (document, _), _ in read]


def validate_template(document: Mapping[str, Any]) -> list[ValidationError]:
    read, found = read_form_template(document)
    return [*found, *template_schema_errors(read)]


def template_schema_errors(document: Mapping[str, Any]) -> list[ValidationError]:
    schema = document.get("jsonSchema")
    fault = schema_error(schema) if isinstance(schema, dict) else ""
    return [ValidationError("jsonSchema", f"is not a usable JSON schema: {fault}")] if fault else []


def _save_one(document: dict[str, Any], by: str, new_version: bool, reason: str) -> FormTemplate:
    now, name = clock.now(), document.pop("name")
    given = document.pop("version")
    newest = FormTemplate.objects.filter(name=name).aggregate(newest=Max("version"))["newest"] or 0
    version = newest + 1 if new_version else given or newest or 1
    row = FormTemplate.objects.select_for_update().filter(name=name, version=version).first()
    action = "overwrite" if row else "create"
    if row is None:
        row = FormTemplate(name=name, version=version, created_at=now, created_by=by[:255])
    else:
        row.updated_at, row.updated_by = now, by[:255]
    row.document = document
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise Conflict(f"The form template {name}, version {version}, already exists.") from None
    record_definition_change(KIND, f"{name}:{version}", action, by, reason, now)
    return row


def delete_template(name: str, version: int | None, by: str, reason: str = "") -> None:
    """Delete one version of a form template, or all. Open tasks that use it are shown without it."""
    with transaction.atomic():
        rows = FormTemplate.objects.filter(name=name)
        chosen = rows if version is None else rows.filter(pk=find_template(name, version).pk)
        versions = list(chosen.values_list("version", flat=True))
        if not versions:
            raise NotFound(f"No such form template: {name}")
        chosen.delete()
        for each in versions:
            record_definition_change(KIND, f"{name}:{each}", "delete", by, reason, clock.now())
