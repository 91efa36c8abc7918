"""Validation of queue limits, alerts and roles, as folders of definitions contain them."""

import re
from typing import Any

from ...alerts import ALERT_KINDS, BUDGET, DAY_MINUTES, SPENT_PERCENT, QuietHours, find_rule_problem
from ...budget_periods import PERIODS, SCOPES
from ...cron.zones import parse_zone
from ...errors import Invalid, ValidationError
from .document_fields import FieldSpec, FieldTable, ObjectOf, read_document
from .values import (
    ChoiceOf,
    DocumentPosition,
    IntegerOf,
    ListOf,
    ValueRefused,
    read_mapping,
    read_name,
    read_text,
    texts,
)

TIME_OF_DAY = re.compile(r"(\d{1,2}):(\d\d)", re.ASCII)
MAX_VIEW_NAME_LENGTH = 120
MAX_CONDITIONS = 10
Document = dict[str, Any]


def read_time_of_day(value: Any, place: DocumentPosition) -> str:
    """Return a time such as 07:30.

    Raises:
        ValueRefused: when it is not a time of day.
    """
    found = TIME_OF_DAY.fullmatch(value) if isinstance(value, str) else None
    if found is None or int(found[1]) > 23 or int(found[2]) > 59:
        raise ValueRefused('must be a time of day in quotation marks, such as "22:00"')
    return f"{int(found[1]):02d}:{found[2]}"


QUEUE_LIMIT: FieldTable = (
    FieldSpec("name", read_name),
    FieldSpec("concurrentExecLimit", IntegerOf(), 0),
    FieldSpec("rateLimitPerFrequency", IntegerOf(), 0),
    FieldSpec("rateLimitFrequencyInSeconds", IntegerOf(), 1),
)
LIMIT_FIELDS = tuple(spec.name for spec in QUEUE_LIMIT if spec.name != "name")
"""The limits of a queue, which are fields of its task definition."""

QUIET_HOURS: FieldTable = (
    FieldSpec("from", read_time_of_day),
    FieldSpec("until", read_time_of_day),
    FieldSpec("zone", read_text, "UTC"),
)
BUDGET_REFERENCE: FieldTable = (
    FieldSpec("scope", ChoiceOf(*SCOPES)),
    FieldSpec("name", read_text, ""),
    FieldSpec("period", ChoiceOf(*PERIODS)),
)
CONDITION: FieldTable = (
    FieldSpec("type", ChoiceOf(*ALERT_KINDS)),
    FieldSpec("threshold", IntegerOf(), 1),
    FieldSpec("windowMinutes", IntegerOf(), 60),
    FieldSpec("repeatMinutes", IntegerOf(), 60),
    FieldSpec("targets", texts, list),
    FieldSpec("quietHours", ObjectOf(QUIET_HOURS)),
    FieldSpec("budget", ObjectOf(BUDGET_REFERENCE)),
)
ALERT: FieldTable = (
    FieldSpec("name", read_text),
    FieldSpec("selection", read_mapping, dict),
    FieldSpec("conditions", ListOf(ObjectOf(CONDITION)), list),
)
ROLE: FieldTable = (FieldSpec("name", read_text), FieldSpec("permissions", texts, list))


def read_queue_limit(document: Document) -> tuple[Document, list[ValidationError]]:
    """Return the limits of a queue with converted fields, and all validation errors."""
    place = DocumentPosition()
    read = _read(document, QUEUE_LIMIT, place)
    for name in LIMIT_FIELDS:
        least = 1 if name == "rateLimitFrequencyInSeconds" else 0
        if read[name] < least:
            place.at(name).add_error(f"must be greater than or equal to {least}", read[name])
    return read, place.validation_errors


def read_alert(document: Document) -> tuple[Document, list[ValidationError]]:
    """Return an alert with converted fields, and all validation errors except those of the selection."""
    place = DocumentPosition()
    read = _read(document, ALERT, place)
    if len(read.get("name") or "") > MAX_VIEW_NAME_LENGTH:
        place.at("name").add_error(f"must have at most {MAX_VIEW_NAME_LENGTH} characters", read["name"])
    if not 1 <= len(read["conditions"]) <= MAX_CONDITIONS:
        place.at("conditions").add_missing(f"An alert must have 1 to {MAX_CONDITIONS} conditions")
    for number, condition in enumerate(read["conditions"]):
        if condition is not None:
            _fill_budget_condition(condition, document["conditions"][number])
            _check_condition(condition, place.at(f"conditions[{number}]"))
    return read, place.validation_errors


def _fill_budget_condition(condition: Document, given: Document) -> None:
    """Set the defaults of a condition on budgets, whose numbers are not those of a condition on runs."""
    if condition.get("type") == BUDGET:
        defaults = {"threshold": SPENT_PERCENT, "repeatMinutes": DAY_MINUTES}
        condition |= {name: value for name, value in defaults.items() if given.get(name) is None}


def _check_condition(condition: Document, place: DocumentPosition) -> None:
    _check_fields(condition, CONDITION, place)
    if not condition.get("type"):
        place.at("type").add_missing(f"Missing type: one of {', '.join(ALERT_KINDS)}")
        return
    if not condition["targets"]:
        place.at("targets").add_missing("Missing targets: the names of alert targets")
    numbers = (condition[name] for name in ("threshold", "windowMinutes", "repeatMinutes"))
    if problem := find_rule_problem(condition["type"], *numbers):
        place.add_error(problem)
    if (budget := condition.get("budget")) is not None:
        _check_budget(condition["type"], budget, place.at("budget"))
    if (hours := condition.get("quietHours")) is not None:
        _check_quiet_hours(hours, place.at("quietHours"))


def _check_budget(kind: str, budget: Document, place: DocumentPosition) -> None:
    _check_fields(budget, BUDGET_REFERENCE, place)
    if kind != BUDGET:
        place.add_error(f"belongs to a condition of the type {BUDGET}")
    for name in ("scope", "period"):
        if not budget.get(name):
            place.at(name).add_missing(f"Missing {name} of the budget")


def _check_quiet_hours(hours: Document, place: DocumentPosition) -> None:
    _check_fields(hours, QUIET_HOURS, place)
    for name in ("from", "until"):
        if not hours.get(name):
            place.at(name).add_missing(f'Missing {name}: a time of day such as "22:00"')
    try:
        parse_zone(hours["zone"])
    except Invalid as refused:
        place.at("zone").add_error(refused.message, hours["zone"])


def quiet_hours_of(condition: Document) -> QuietHours | None:
    """Return the quiet hours of a valid condition; None if it has none."""
    hours = condition.get("quietHours")
    return hours and QuietHours(_minutes(hours["from"]), _minutes(hours["until"]), hours["zone"])


def quiet_hours_document(quiet: QuietHours | None) -> Document:
    """Return quiet hours as the field of a condition; an empty document for none."""
    if quiet is None:
        return {}
    times = (f"{minutes // 60:02d}:{minutes % 60:02d}" for minutes in (quiet.begins, quiet.ends))
    return {"quietHours": dict(zip(("from", "until"), times, strict=True)) | {"zone": quiet.zone}}


def _minutes(time: str) -> int:
    hour, minute = time.split(":")
    return (int(hour) * 60 + int(minute)) % DAY_MINUTES


def read_role(document: Document) -> tuple[Document, list[ValidationError]]:
    """Return a role with sorted permissions, and all validation errors except those of the names."""
    place = DocumentPosition()
    read = _read(document, ROLE, place)
    read["permissions"] = sorted({name for name in read["permissions"] if name is not None})
    return read, place.validation_errors


def _read(document: Document, table: FieldTable, place: DocumentPosition) -> Document:
    read = read_document(document, table, place)
    if not (read.get("name") or "").strip():
        place.at("name").add_missing("Missing name", document.get("name"))
    _check_fields(read, table, place)
    return read


def _check_fields(document: Document, table: FieldTable, place: DocumentPosition) -> None:
    """Report unknown fields. These documents have no other readers that may know them."""
    known = [spec.name for spec in table]
    for name in sorted(document.keys() - known):
        place.at(name).add_error(f"is unknown. Use: {', '.join(known)}", document[name])
