"""Human tasks and user form templates, in and out, as the JavaScript SDK's HumanTask resource writes them."""

from collections.abc import Iterable, Mapping
from typing import Any

from ....core.document.checks.fields import FieldSpec, FieldTable, ObjectOf
from ....core.document.checks.values import ChoiceOf, DocumentPosition, IntegerOf, ListOf, read_text, texts
from ....core.errors import ValidationError, ValidationFailed
from ....core.human_task import USER_TYPES, Assignee, format_assignees, human_task_definition
from ....insight.human_tasks import (
    LOOKED_AT,
    MOST_SHOWN,
    MOST_VALUES,
    STATES,
    HumanTaskEntry,
    HumanTaskFilter,
    HumanTaskPage,
    InboxFilter,
    UserFilter,
)
from ....models import FormTemplate
from .requests import read_request

ADMIN, INBOX = "ADMIN", "INBOX"
DEFAULT_SIZE = 15
USER: FieldTable = (FieldSpec("userType", read_text, ""), FieldSpec("user", read_text, ""))
ASSIGNMENT: FieldTable = (FieldSpec("assignee", ObjectOf(USER)), FieldSpec("slaMinutes", IntegerOf(), 0))
SEARCH: FieldTable = (
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
LISTS = ("states", "assignees", "claimants", "definitionNames", "displayNames", "taskRefNames", "workflowNames",
         "workflowIds")  # fmt: skip
PLACE = "searchHumanTasks.search"


def parse_search(document: Mapping[str, Any], inbox: InboxFilter) -> tuple[HumanTaskFilter, int, int]:
    """Return the filters of a HumanTaskSearch with its start and size; `inbox` counts where INBOX is asked for.

    Raises:
        ValidationFailed: with every complaint.
    """
    # Clients send empty texts and nulls for filters that are not set.
    given = {name: value for name, value in document.items() if value not in (None, "")}
    read = read_request(given, SEARCH, PLACE, _check)
    asked = HumanTaskFilter(
        states=tuple(dict.fromkeys(read["states"])),
        assignees=parse_users(read["assignees"]),
        claimants=parse_users(read["claimants"]),
        definition_names=parse_names(read["definitionNames"]),
        display_names=parse_names(read["displayNames"]),
        refs=parse_names(read["taskRefNames"]),
        workflow_names=parse_names(read["workflowNames"]),
        workflow_ids=parse_names(read["workflowIds"]),
        input_query=read["taskInputQuery"].strip(),
        output_query=read["taskOutputQuery"].strip(),
        words=read["fullTextQuery"].strip(),
        updated_from=read["updateStartTime"],
        updated_to=read["updateEndTime"],
        inbox=inbox if read["searchType"] == INBOX else None,
    )
    return asked, read["start"], min(read["size"], MOST_SHOWN)


def _check(read: dict[str, Any], place: DocumentPosition) -> None:
    for name in LISTS:
        if len(read.get(name) or ()) > MOST_VALUES:
            place.at(name).add_error(f"must have at most {MOST_VALUES} values")
    for name in ("assignees", "claimants"):
        for number, each in enumerate(read.get(name) or ()):
            if each and each["userType"] not in ("", *USER_TYPES):
                place.at(f"{name}[{number}].userType").add_error(f"must be one of {', '.join(USER_TYPES)}")
    if not 0 <= read.get("start", 0) <= LOOKED_AT * len(STATES):
        place.at("start").add_error("must not be negative or past the end of what is searched", read["start"])
    if read.get("size", 0) < 0:
        place.at("size").add_error("must not be negative", read["size"])


def parse_users(read: Iterable[Mapping[str, str]]) -> tuple[UserFilter, ...]:
    """Return the users that are searched for; one without a name and a type is none."""
    return tuple(UserFilter(each["user"], each["userType"]) for each in read if each["user"] or each["userType"])


def parse_names(read: Iterable[str]) -> tuple[str, ...]:
    """Return the names that are searched for, without empty ones."""
    return tuple(dict.fromkeys(name for name in read if name))


def parse_assignments(documents: Iterable[Mapping[str, Any]]) -> list[Assignee]:
    """Return the assignees of a list of HumanTaskAssignment.

    Raises:
        ValidationFailed: where an assignment is malformed or names no user or group.
    """
    found, complaints = [], []
    for number, document in enumerate(documents):
        path = f"reassignTask.assignments[{number}]"
        read = read_request(dict(document), ASSIGNMENT, path, lambda read, place: None)
        to = read.get("assignee") or {}
        kind, who = to.get("userType", ""), to.get("user", "").strip()
        if kind not in USER_TYPES:
            said = f"must be one of {', '.join(USER_TYPES)}"
            complaints.append(ValidationError(f"{path}.assignee.userType", said, kind))
        if not who or len(who) > 255:
            complaints.append(ValidationError(f"{path}.assignee.user", "must have from 1 to 255 characters", who))
        if read["slaMinutes"] < 0:
            complaints.append(ValidationError(f"{path}.slaMinutes", "must not be negative", read["slaMinutes"]))
        is_group, is_external = kind.endswith("GROUP"), kind.startswith("EXTERNAL")
        found.append(Assignee(who, is_group, read["slaMinutes"], is_external))
    if complaints:
        raise ValidationFailed(complaints)
    return found


def human_task(
    entry: HumanTaskEntry, input: Mapping[str, Any], output: Mapping[str, Any], template: FormTemplate | None = None
) -> dict[str, Any]:
    """Return a HumanTaskEntry. `template`: shown as `fullTemplate`."""
    ask, attempt = entry.ask, entry.ask.attempt
    definition = dict(human_task_definition(input))
    if ask.line:
        definition["assignments"] = format_assignees(ask.line)
    if template is not None:
        definition["fullTemplate"] = form_template(template)
    document: dict[str, Any] = {
        "taskId": attempt.pk,
        "taskRefName": str(attempt.task),
        "definitionName": attempt.task.name,
        "displayName": ask.title,
        "workflowId": attempt.run_id,
        "workflowName": attempt.run.name,
        "state": entry.state,
        "humanTaskDef": definition,
        "input": input,
        "output": output,
        "createdBy": attempt.run.started_by,
        "createdOn": attempt.scheduled_at,
        "updatedBy": entry.updated_by,
        "updatedOn": entry.updated_at,
    }
    if to := ask.standing.assignee:
        document["assignee"] = {"userType": to.user_type, "user": to.who}
    if ask.taken_by:
        kind = "EXTERNAL_USER" if ask.is_taker_external else "CONDUCTOR_USER"
        document["claimant"] = {"userType": kind, "user": ask.taken_by}
    return document


def search_result(found: HumanTaskPage, results: list[dict[str, Any]], start: int) -> dict[str, Any]:
    """Return a HumanTaskSearchResult; what goes beyond it is said only where there is something to say."""
    document: dict[str, Any] = {
        "totalHits": found.total,
        "results": results,
        "start": start,
        "hits": len(results),
        "pageSizeLimit": MOST_SHOWN,
    }
    if not found.is_exact:
        document["totalHitsIsLowerBound"] = True
    if found.since is not None:
        document["searchedSince"] = found.since
    return document


def form_template(row: FormTemplate) -> dict[str, Any]:
    """Return a HumanTaskTemplate."""
    people = {"createdBy": row.created_by, "updatedBy": row.updated_by if row.updated_at else ""}
    moments = {"createTime": row.created_at, "updateTime": row.updated_at}
    facts = {name: value for name, value in {**people, **moments}.items() if value}
    return {**row.document, "name": row.name, "version": row.version, **facts}
