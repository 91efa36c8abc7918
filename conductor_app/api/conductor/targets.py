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
from ...access.permissions import Target, task_target
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

TargetFinder = Callable[[Any, dict[str, str]], Iterable[Target]]
CHUNK_SIZE = 500
"""Names that one query looks for."""
MODEL_BY_TARGET_TYPE = {
    WORKFLOW_DEF: WorkflowDefinition,
    TASK_DEF: TaskDefinition,
    SCHEDULE: Schedule,
    SCHEMA: SchemaDefinition,
    SECRET: Secret,
    VARIABLE: Variable,
    FORM_TEMPLATE: FormTemplate,
}


def named_in_address(target_type: str, url_kwarg: str) -> TargetFinder:
    """What a part of the address names."""
    return lambda request, url_kwargs: [{target_type: url_kwargs[url_kwarg]}]


def named_in_query(target_type: str, parameter: str) -> TargetFinder:
    """What a parameter of the query names, once or several times."""
    return lambda request, url_kwargs: [{target_type: name} for name in request.query.texts(parameter)]


def no_target(request: Any, url_kwargs: dict[str, str]) -> list[Target]:
    """No thing that has a name: only a right over all of them will do."""
    return [{}]


def application_of_key(request: Any, url_kwargs: dict[str, str]) -> list[Target]:
    """The application that a key belongs to; where there is no such key, nobody knows."""
    ids = AccessKey.objects.filter(pk=url_kwargs["key_id"]).values_list("application_id", flat=True)
    return [{APPLICATION: id} for id in ids] or [{}]


def polled_queue(request: Any, url_kwargs: dict[str, str]) -> Target:
    """What a poll asks for: a task type, in a domain or in none."""
    domain = request.query.text("domain")
    return {TASK_DEF: url_kwargs["task_type"]} | ({DOMAIN: domain} if domain else {})


def run_in_address(url_kwarg: str) -> TargetFinder:
    """The run, or the kept test, with this id; one that does not exist is left to the handler."""

    def find(request: Any, url_kwargs: dict[str, str]) -> list[Target]:
        found = find_run_names([url_kwargs[url_kwarg]]) or WorkflowTest.objects.filter(
            pk=url_kwargs[url_kwarg]
        ).values_list("id", "name")
        return [{WORKFLOW: id, WORKFLOW_DEF: name} for id, name in found]

    return find


def find_run_names(ids: list[str]) -> list[tuple[str, str]]:
    """Ids and definitions' names of those runs that there are."""
    return list(find_in_chunks(ids, lambda chunk: Run.objects.filter(pk__in=chunk).values_list("id", "name")))


def find_in_chunks(names: Iterable[str], find: Callable[[list[str]], Iterable[Any]]) -> Iterator[Any]:
    """What is found by these names, a part of them at a time: a body may list more than one query takes."""
    remaining = iter(names)
    while chunk := list(islice(remaining, CHUNK_SIZE)):
        yield from find(chunk)


def runs_in_body(request: Any, url_kwargs: dict[str, str]) -> list[Target]:
    """The runs whose ids the body lists; what is no list is left to the handler."""
    ids = request_body.read_json(request)
    asked_for = [normalize_name(each) for each in ids if isinstance(each, str)] if isinstance(ids, list) else []
    return [{WORKFLOW: id, WORKFLOW_DEF: name} for id, name in find_run_names(asked_for)]


def names_in_body(target_type: str) -> TargetFinder:
    """The names that the body lists; what is no list is left to the handler."""

    def find(request: Any, url_kwargs: dict[str, str]) -> list[Target]:
        names = request_body.read_json(request)
        return [{target_type: normalize_name(each)} for each in names] if isinstance(names, list) else []

    return find


def correlated_definitions(request: Any, url_kwargs: dict[str, str]) -> list[Target]:
    """The definitions whose runs are looked for by correlation ids."""
    names = request_body.read_object(request).get("workflowNames")
    return [{WORKFLOW_DEF: normalize_name(name)} for name in (names if isinstance(names, list) else [names])]


def attempt_in_address(url_kwarg: str, *, must_exist: bool = False) -> TargetFinder:
    """The attempt with this id: by its task and by its run. Where it must exist, nobody knows what it would be of."""

    def find(request: Any, url_kwargs: dict[str, str]) -> list[Target]:
        return _task_targets(Attempt.objects.of_runs().filter(pk=url_kwargs[url_kwarg])) or ([{}] if must_exist else [])

    return find


def open_tasks_by_reference(url_kwarg: str) -> TargetFinder:
    """The open tasks with the reference in the address, in the run that a part of it names."""

    def find(request: Any, url_kwargs: dict[str, str]) -> list[Target]:
        ref = url_kwargs["ref"]
        open_ones = Attempt.objects.open().filter(run_id=url_kwargs[url_kwarg])
        return _task_targets(open_ones.filter(task__ref__in=[ref, ref.rpartition("__")[0], ref.partition("__")[0]]))

    return find


def task_in_query(request: Any, url_kwargs: dict[str, str]) -> list[Target]:
    """The open tasks of the run and the reference that the query names."""
    return open_tasks_by_reference("run")(
        request, {"run": request.query.text("workflowId"), "ref": request.query.text("taskRefName")}
    )


def open_tasks_of_run(run_id: str) -> list[Target]:
    """The kinds of tasks that are open in a run."""
    return _task_targets(Attempt.objects.open().filter(run_id=run_id).order_by().distinct())


def _task_targets(attempts: Any) -> list[Target]:
    rows = attempts.values_list("queue", "domain", "task__name", "run_id", "run__name")
    return [task_target(*row) for row in rows]


def started_definitions(request: Any, url_kwargs: dict[str, str]) -> tuple[list[Target], list[Target]]:
    """The definitions that a request to start names, and the one that it brings with it."""
    document = request_body.read_object(request) if request_body.read_bytes(request) or "name" not in url_kwargs else {}
    return definitions_started_by(document, url_kwargs.get("name"))


def definitions_started_by(document: dict[str, Any], name: str | None = None) -> tuple[list[Target], list[Target]]:
    """The same for the request to start itself. `name`: the address names it instead."""
    own = document.get("workflowDef")
    given = [name or document.get("name"), own.get("name") if isinstance(own, dict) else ""]
    names = [normalize_name(each) for each in given]
    found: list[Target] = [{WORKFLOW_DEF: each} for each in names if each] or [{}]
    return found, found if isinstance(own, dict) else []


def definitions_in_body(target_type: str) -> TargetFinder:
    """The definitions in the body, one or many."""

    def find(request: Any, url_kwargs: dict[str, str]) -> list[Target]:
        sent = request_body.read_json(request)
        documents = sent if isinstance(sent, list) else [sent]
        if not all(isinstance(each, dict) for each in documents):
            raise Invalid("The request body must hold JSON objects.")
        return [{target_type: normalize_name(each.get("name"))} for each in documents]

    return find


def split_new_and_existing(target_type: str, found: list[Target]) -> tuple[list[Target], list[Target]]:
    """Those that there are not yet, and those that there are."""
    names = {target[target_type] for target in found}
    rows = MODEL_BY_TARGET_TYPE[target_type].objects
    known = set(find_in_chunks(names, lambda chunk: rows.filter(name__in=chunk).values_list("name", flat=True)))
    new = [target for target in found if target[target_type] not in known]
    return new, [target for target in found if target[target_type] in known]


def normalize_name(value: Any) -> str:
    """A name that a body gives, as those who read the body read it."""
    return value.replace("\0", "") if isinstance(value, str) else "" if value is None else str(value)
