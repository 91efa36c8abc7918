"""What a request is about, for the question who may: by its address, its query or its body."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from ...access.access_types import (
    APPLICATION,
    DOMAIN,
    FORM_TEMPLATE,
    SCHEDULE,
    SCHEMA,
    SECRET,
    TASK_DEF,
    VARIABLE,
    WORKFLOW,
    WORKFLOW_DEF,
)
from ...access.permissions import Thing, task_target
from ...core.errors import Invalid
from ...models import (
    AccessKey,
    Attempt,
    FormTemplate,
    Run,
    Schedule,
    SchemaDefinition,
    Secret,
    TaskDefinition,
    Variable,
    WorkflowDefinition,
    WorkflowTest,
)
from . import request_body

Finder = Callable[[Any, dict[str, str]], Iterable[Thing]]
AT_ONCE = 500
"""Names that one query looks for."""
KEPT = {
    WORKFLOW_DEF: WorkflowDefinition,
    TASK_DEF: TaskDefinition,
    SCHEDULE: Schedule,
    SCHEMA: SchemaDefinition,
    SECRET: Secret,
    VARIABLE: Variable,
    FORM_TEMPLATE: FormTemplate,
}


def named_in_address(target: str, part: str) -> Finder:
    """What a part of the address names."""
    return lambda request, parts: [{target: parts[part]}]


def named_in_query(target: str, parameter: str) -> Finder:
    """What a parameter of the query names, once or several times."""
    return lambda request, parts: [{target: name} for name in request.query.texts(parameter)]


def no_target(request: Any, parts: dict[str, str]) -> list[Thing]:
    """No thing that has a name: only a right over all of them will do."""
    return [{}]


def application_of_key(request: Any, parts: dict[str, str]) -> list[Thing]:
    """The application that a key belongs to; where there is no such key, nobody knows."""
    ids = AccessKey.objects.filter(pk=parts["key_id"]).values_list("application_id", flat=True)
    return [{APPLICATION: id} for id in ids] or [{}]


def queue(request: Any, parts: dict[str, str]) -> Thing:
    """What a poll asks for: a task type, in a domain or in none."""
    domain = request.query.text("domain")
    return {TASK_DEF: parts["task_type"]} | ({DOMAIN: domain} if domain else {})


def run(part: str) -> Finder:
    """The run, or the kept test, with this id; one that does not exist is left to the handler."""

    def find(request: Any, parts: dict[str, str]) -> list[Thing]:
        found = runs([parts[part]]) or WorkflowTest.objects.filter(pk=parts[part]).values_list("id", "name")
        return [{WORKFLOW: id, WORKFLOW_DEF: name} for id, name in found]

    return find


def runs(ids: list[str]) -> list[tuple[str, str]]:
    """Ids and definitions' names of those runs that there are."""
    return list(find_in_chunks(ids, lambda some: Run.objects.filter(pk__in=some).values_list("id", "name")))


def find_in_chunks(names: Iterable[str], find: Callable[[list[str]], Iterable[Any]]) -> Iterator[Any]:
    """What is found by these names, a part of them at a time: a body may list more than one query takes."""
    left = iter(names)
    while some := list(islice(left, AT_ONCE)):
        yield from find(some)


def listed_runs(request: Any, parts: dict[str, str]) -> list[Thing]:
    """The runs whose ids the body lists; what is no list is left to the handler."""
    ids = request_body.read_json(request)
    asked_for = [name_in(each) for each in ids if isinstance(each, str)] if isinstance(ids, list) else []
    return [{WORKFLOW: id, WORKFLOW_DEF: name} for id, name in runs(asked_for)]


def listed_in_body(target: str) -> Finder:
    """The names that the body lists; what is no list is left to the handler."""

    def find(request: Any, parts: dict[str, str]) -> list[Thing]:
        names = request_body.read_json(request)
        return [{target: name_in(each)} for each in names] if isinstance(names, list) else []

    return find


def correlated_definitions(request: Any, parts: dict[str, str]) -> list[Thing]:
    """The definitions whose runs are looked for by correlation ids."""
    names = request_body.read_object(request).get("workflowNames")
    return [{WORKFLOW_DEF: name_in(name)} for name in (names if isinstance(names, list) else [names])]


def attempt(part: str, *, must_exist: bool = False) -> Finder:
    """The attempt with this id: by its task and by its run. Where it must exist, nobody knows what it would be of."""

    def find(request: Any, parts: dict[str, str]) -> list[Thing]:
        return _tasks(Attempt.objects.of_runs().filter(pk=parts[part])) or ([{}] if must_exist else [])

    return find


def task_of_run(part: str) -> Finder:
    """The open tasks with the reference in the address, in the run that a part of it names."""

    def find(request: Any, parts: dict[str, str]) -> list[Thing]:
        ref = parts["ref"]
        open_ones = Attempt.objects.open().filter(run_id=parts[part])
        return _tasks(open_ones.filter(task__ref__in=[ref, ref.rpartition("__")[0], ref.partition("__")[0]]))

    return find


def task_in_query(request: Any, parts: dict[str, str]) -> list[Thing]:
    """The open tasks of the run and the reference that the query names."""
    return task_of_run("run")(
        request, {"run": request.query.text("workflowId"), "ref": request.query.text("taskRefName")}
    )


def open_tasks(run_id: str) -> list[Thing]:
    """The kinds of tasks that are open in a run."""
    return _tasks(Attempt.objects.open().filter(run_id=run_id).order_by().distinct())


def _tasks(attempts: Any) -> list[Thing]:
    rows = attempts.values_list("queue", "domain", "task__name", "run_id", "run__name")
    return [task_target(*row) for row in rows]


def started_definitions(request: Any, parts: dict[str, str]) -> tuple[list[Thing], list[Thing]]:
    """The definitions that a request to start names, and the one that it brings with it."""
    document = request_body.read_object(request) if request_body.read_bytes(request) or "name" not in parts else {}
    return definitions_started_by(document, parts.get("name"))


def definitions_started_by(document: dict[str, Any], name: str | None = None) -> tuple[list[Thing], list[Thing]]:
    """The same for the request to start itself. `name`: the address names it instead."""
    own = document.get("workflowDef")
    given = [name or document.get("name"), own.get("name") if isinstance(own, dict) else ""]
    names = [name_in(each) for each in given]
    found: list[Thing] = [{WORKFLOW_DEF: each} for each in names if each] or [{}]
    return found, found if isinstance(own, dict) else []


def definitions_in_body(target: str) -> Finder:
    """The definitions in the body, one or many."""

    def find(request: Any, parts: dict[str, str]) -> list[Thing]:
        sent = request_body.read_json(request)
        documents = sent if isinstance(sent, list) else [sent]
        if not all(isinstance(each, dict) for each in documents):
            raise Invalid("The request body must hold JSON objects.")
        return [{target: name_in(each.get("name"))} for each in documents]

    return find


def new_and_old(target: str, found: list[Thing]) -> tuple[list[Thing], list[Thing]]:
    """Those that there are not yet, and those that there are."""
    names = {thing[target] for thing in found}
    rows = KEPT[target].objects
    known = set(find_in_chunks(names, lambda some: rows.filter(name__in=some).values_list("name", flat=True)))
    new = [thing for thing in found if thing[target] not in known]
    return new, [thing for thing in found if thing[target] in known]


def name_in(value: Any) -> str:
    """A name that a body gives, as those who read the body read it."""
    return value.replace("\0", "") if isinstance(value, str) else "" if value is None else str(value)
