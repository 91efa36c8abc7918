"""Rows for the handlers of a TRY_CATCH step: which failures each one handles."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from ...core.step_structure import as_steps
from ...core.step_tree import walk
from ...core.step_types.try_catch import MATCHED, match_errors
from .form_rows import NumberedRow

PREFIX = "handler"
MAX_HANDLERS = 50


@dataclass(slots=True)
class HandlerRow(NumberedRow):
    """One handler. `texts`: by member of its `match`. `number`: its index before the edit; empty for a new one."""

    prefix: str
    number: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    is_removed: bool = False
    errors: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        return self.texts.get("status", "")

    @property
    def reason(self) -> str:
        return self.texts.get("reason", "")

    @property
    def task_refs(self) -> str:
        return self.texts.get("taskRef", "")

    @property
    def task_types(self) -> str:
        return self.texts.get("taskType", "")


def rows_of_handlers(step: Mapping[str, Any]) -> list[HandlerRow]:
    """Return the rows for a TRY_CATCH step, and an empty row for another handler."""
    cases = as_steps(step.get("catchCases"))[:MAX_HANDLERS]
    rows = [HandlerRow(f"{PREFIX}.{n}", str(n), _format_match(case)) for n, case in enumerate(cases)]
    return [*rows, HandlerRow(f"{PREFIX}.{len(rows)}")]


def submitted_handlers(submitted: Mapping[str, str]) -> list[HandlerRow]:
    """Return the rows of a submitted form."""
    rows = []
    for number in range(MAX_HANDLERS + 1):
        key = f"{PREFIX}.{number}"
        if f"{key}.number" not in submitted:
            break
        texts = {name: submitted.get(f"{key}.{name}", "").strip() for name in MATCHED}
        rows.append(HandlerRow(key, submitted[f"{key}.number"], texts, f"{key}.remove" in submitted))
    return rows


def apply_handlers(step: Mapping[str, Any], rows: list[HandlerRow]) -> list[Any]:
    """Return the handlers of the rows, followed by those that the form does not show. Errors are added to their rows.

    A handler whose texts are unchanged stays as it is written.
    """
    before = as_steps(step.get("catchCases"))
    refs = {spot.ref for spot in walk(as_steps(step.get("tryTasks")))}
    cases = []
    for row in rows:
        case = before[int(row.number)] if _is_index(row.number, before) else None
        if case is None and not any(row.texts.values()):
            continue
        if row.is_removed:
            if isinstance(case, Mapping) and case.get("tasks"):
                row.errors.append(_("Delete the steps of the handler first."))
            continue
        cases.append(_apply_row(case, row, refs))
    return [*cases, *before[MAX_HANDLERS:]]


def _apply_row(case: Any, row: HandlerRow, refs: set[str]) -> Any:
    texts = {name: text for name, text in row.texts.items() if text}
    if case is not None and texts == _format_match(case):
        return case
    match = {name: _parse_texts(name, text) for name, text in texts.items()}
    row.errors.extend(match_errors(match, refs))
    others = dict(case) if isinstance(case, Mapping) else {"tasks": []}
    return {"match": match, **{name: value for name, value in others.items() if name != "match"}}


def _is_index(number: str, cases: list[Any]) -> bool:
    return number.isdecimal() and len(number) < 4 and int(number) < len(cases)


def _format_match(case: Any) -> dict[str, str]:
    match = case.get("match") if isinstance(case, Mapping) else None
    if not isinstance(match, Mapping):
        return {}
    return {name: _format_texts(match[name]) for name in MATCHED if match.get(name) not in (None, "")}


def _format_texts(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _parse_texts(name: str, text: str) -> Any:
    if name == "reason":
        return text
    values = [each.strip() for each in text.split(",") if each.strip()]
    return values[0] if len(values) == 1 else values
