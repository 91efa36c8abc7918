"""Parsing and documents of human tasks and user form templates, as the JavaScript SDK defines them."""

from collections.abc import Iterable, Mapping
from typing import Any

from ..core.document.fields import (
    ChoiceOf,
    DocumentPosition,
    FieldSpec,
    IntegerOf,
    ListOf,
    NamedTable,
    ObjectOf,
    read_boolean,
    read_mapping,
    read_text,
    texts,
)
from ..core.errors import ValidationError, ValidationFailed
from ..core.human_tasks import FORM_TEMPLATE as TEMPLATE_FIELDS
from ..core.human_tasks import USER_TYPES, Assignee, format_assignees, human_task_definition
from ..web.api.documents import TAGS, fields_of_type
from ..web.api.requests import read_request
from .models import FormTemplate
from .queries import (
    MAX_SHOWN,
    MAX_VALUES,
    SEARCHED_ROWS,
    STATES,
    HumanTaskEntry,
    HumanTaskFilter,
    HumanTaskPage,
    InboxFilter,
    UserFilter,
)
from .queries import STATES as HUMAN_STATES

ADMIN, INBOX = "ADMIN", "INBOX"
DEFAULT_SIZE = 15
USER = NamedTable("HumanTaskUser", FieldSpec("userType", read_text, ""), FieldSpec("user", read_text, ""))
ASSIGNMENT = NamedTable(
    "HumanTaskAssignment", FieldSpec("assignee", ObjectOf(USER)), FieldSpec("slaMinutes", IntegerOf(), 0)
)
SEARCH = NamedTable(
    "HumanTaskSearch",
    FieldSpec("states", ListOf(ChoiceOf(*STATES)), list),
    FieldSpec("assignees", ListOf(ObjectOf(USER)), list),
    FieldSpec("claimants", ListOf(ObjectOf(USER)), list),
    FieldSpec("definitionNames", texts, list),
    FieldSpec("displayNames", texts, list),
    FieldSpec("taskRefNames", texts, list),
    FieldSpec("workflowNames", texts, list),
    FieldSpec("workflowIds", texts, list),
    FieldSpec("taskInputQuery", read_text, ""),
    FieldSpec("taskOutputQuery", read_text, ""),
    FieldSpec("fullTextQuery", read_text, ""),
    FieldSpec("searchType", ChoiceOf(ADMIN, INBOX, ""), ADMIN),
    FieldSpec("updateStartTime", IntegerOf(64), 0),
    FieldSpec("updateEndTime", IntegerOf(64), 0),
    FieldSpec("start", IntegerOf(), 0),
    FieldSpec("size", IntegerOf(), DEFAULT_SIZE),
)
LIST_FILTERS = ("states", "assignees", "claimants", "definitionNames", "displayNames", "taskRefNames", "workflowNames",
         "workflowIds")  # fmt: skip
SEARCH_PATH = "searchHumanTasks.search"


def parse_search(document: Mapping[str, Any], inbox: InboxFilter) -> tuple[HumanTaskFilter, int, int]:
    """Return the filters of a HumanTaskSearch with its start and size. `inbox`: the filters of an INBOX search."""
    # Clients send empty texts and nulls for filters that are not set.
    set_filters = {name: value for name, value in document.items() if value not in (None, "")}
    fields = read_request(set_filters, SEARCH, SEARCH_PATH, _check_search)
    filters = HumanTaskFilter(
        states=tuple(dict.fromkeys(fields["states"])),
        assignees=parse_users(fields["assignees"]),
        claimants=parse_users(fields["claimants"]),
        definition_names=parse_names(fields["definitionNames"]),
        display_names=parse_names(fields["displayNames"]),
        refs=parse_names(fields["taskRefNames"]),
        workflow_names=parse_names(fields["workflowNames"]),
        workflow_ids=parse_names(fields["workflowIds"]),
        input_query=fields["taskInputQuery"].strip(),
        output_query=fields["taskOutputQuery"].strip(),
        words=fields["fullTextQuery"].strip(),
        updated_from=fields["updateStartTime"],
        updated_to=fields["updateEndTime"],
        inbox=inbox if fields["searchType"] == INBOX else None,
    )
    return filters, fields["start"], min(fields["size"], MAX_SHOWN)


def _check_search(fields: dict[str, Any], position: DocumentPosition) -> None:
    for name in LIST_FILTERS:
        if len(fields.get(name) or ()) > MAX_VALUES:
            position.at(name).add_error(f"must have at most {MAX_VALUES} values")
    for name in ("assignees", "claimants"):
        for number, each in enumerate(fields.get(name) or ()):
            if each and each["userType"] not in ("", *USER_TYPES):
                position.at(f"{name}[{number}].userType").add_error(f"must be one of {', '.join(USER_TYPES)}")
    if not 0 <= fields.get("start", 0) <= SEARCHED_ROWS * len(STATES):
        position.at("start").add_error("must not be negative or beyond the searchable range", fields["start"])
    if fields.get("size", 0) < 0:
        position.at("size").add_error("must not be negative", fields["size"])


def parse_users(fields: Iterable[Mapping[str, str]]) -> tuple[UserFilter, ...]:
    """Return the users of the search. Entries without name and type are ignored."""
    return tuple(UserFilter(each["user"], each["userType"]) for each in fields if each["user"] or each["userType"])


def parse_names(fields: Iterable[str]) -> tuple[str, ...]:
    """Return the names that are searched for, without empty ones."""
    return tuple(dict.fromkeys(name for name in fields if name))


def parse_assignments(documents: Iterable[Mapping[str, Any]]) -> list[Assignee]:
    """Return the assignees of a list of HumanTaskAssignment."""
    found, errors = [], []
    for number, document in enumerate(documents):
        path = f"reassignTask.assignments[{number}]"
        fields = read_request(dict(document), ASSIGNMENT, path)
        to = fields.get("assignee") or {}
        kind, who = to.get("userType", ""), to.get("user", "").strip()
        if kind not in USER_TYPES:
            message = f"must be one of {', '.join(USER_TYPES)}"
            errors.append(ValidationError(f"{path}.assignee.userType", message, kind))
        if not who or len(who) > 255:
            errors.append(ValidationError(f"{path}.assignee.user", "must have from 1 to 255 characters", who))
        if fields["slaMinutes"] < 0:
            errors.append(ValidationError(f"{path}.slaMinutes", "must not be negative", fields["slaMinutes"]))
        is_group, is_external = kind.endswith("GROUP"), kind.startswith("EXTERNAL")
        found.append(Assignee(who, is_group, fields["slaMinutes"], is_external))
    if errors:
        raise ValidationFailed(errors)
    return found


def human_task_document(
    entry: HumanTaskEntry, input: Mapping[str, Any], output: Mapping[str, Any], template: FormTemplate | None = None
) -> dict[str, Any]:
    """Return a HumanTaskEntry. `template`: shown as `fullTemplate`."""
    task_view, attempt = entry.task_view, entry.task_view.attempt
    definition = dict(human_task_definition(input))
    if task_view.assignees:
        definition["assignments"] = format_assignees(task_view.assignees)
    if template is not None:
        definition["fullTemplate"] = form_template_document(template)
    document: dict[str, Any] = {
        "taskId": attempt.pk,
        "taskRefName": str(attempt.task),
        "definitionName": attempt.task.name,
        "displayName": task_view.title,
        "workflowId": attempt.run_id,
        "workflowName": attempt.own_run.name,
        "state": entry.state,
        "humanTaskDef": definition,
        "input": input,
        "output": output,
        "createdBy": attempt.own_run.started_by,
        "createdOn": attempt.scheduled_at,
        "updatedBy": entry.updated_by,
        "updatedOn": entry.updated_at,
    }
    if to := task_view.assignment.assignee:
        document["assignee"] = {"userType": to.user_type, "user": to.who}
    if task_view.claimed_by:
        kind = "EXTERNAL_USER" if task_view.is_claimer_external else "CONDUCTOR_USER"
        document["claimant"] = {"userType": kind, "user": task_view.claimed_by}
    return document


def search_result_document(found: HumanTaskPage, results: list[dict[str, Any]], start: int) -> dict[str, Any]:
    """Return a HumanTaskSearchResult. Fields beyond Conductor's are present only if they have a value."""
    document: dict[str, Any] = {
        "totalHits": found.total,
        "results": results,
        "start": start,
        "hits": len(results),
        "pageSizeLimit": MAX_SHOWN,
    }
    if not found.is_exact:
        document["totalHitsIsLowerBound"] = True
    if found.since is not None:
        document["searchedSince"] = found.since
    return document


def form_template_document(row: FormTemplate) -> dict[str, Any]:
    people = {"createdBy": row.created_by, "updatedBy": row.updated_by if row.updated_at else ""}
    times = {"createTime": row.created_at, "updateTime": row.updated_at}
    facts = {name: value for name, value in {**people, **times}.items() if value}
    return {**row.document, "name": row.name, "version": row.version, **facts}


FORM_TEMPLATE = NamedTable(
    "HumanTaskTemplate",
    *(TAGS if field.name == "tags" else field for field in TEMPLATE_FIELDS),
    *fields_of_type(read_text, "createdBy", "updatedBy"),
    *fields_of_type(IntegerOf(64), "createTime", "updateTime"),
)
HUMAN_TASK = NamedTable(
    "HumanTaskEntry",
    *fields_of_type(read_text, "taskId", "taskRefName", "workflowId", "workflowName", "definitionName", "displayName",
           "createdBy",
            "updatedBy"),
    FieldSpec("state", ChoiceOf(*HUMAN_STATES)),
    FieldSpec("assignee", ObjectOf(USER)),
    FieldSpec("claimant", ObjectOf(USER)),
    *fields_of_type(read_mapping, "humanTaskDef", "input", "output"),
    *fields_of_type(IntegerOf(64), "createdOn", "updatedOn"),
)  # fmt: skip
HUMAN_TASK_PAGE = NamedTable(
    "HumanTaskSearchResult",
    *fields_of_type(IntegerOf(64), "totalHits", "searchedSince"),
    *fields_of_type(IntegerOf(), "start", "hits", "pageSizeLimit"),
    FieldSpec("totalHitsIsLowerBound", read_boolean),
    FieldSpec("results", ListOf(ObjectOf(HUMAN_TASK))),
)
