"""The number of steps of a definition is limited, before anything expensive is done with them."""

import json
from time import process_time

import pytest

from conductor_app.core.validation.checks import MAX_EXPRESSIONS, MAX_STEPS, has_too_many_steps, workflow_errors
from conductor_app.core.validation.lint import MAX_FINDINGS
from conductor_app.definitions.models import WorkflowDefinition
from conductor_app.definitions.resolved_definitions import resolve_inline
from conductor_app.definitions.sources.commands import plan_import
from conductor_app.definitions.validation import lint_workflow
from conductor_app.runs.models import Run
from tests.builders import simple

MESSAGE = f"A workflow definition can have at most {MAX_STEPS} steps. Use sub-workflows."


def document(count: int = MAX_STEPS + 1) -> dict:
    return {"name": "huge", "schemaVersion": 2, "tasks": [simple(f"a{number}") for number in range(count)]}


def messages(reply) -> list[str]:
    return [each["message"] for each in json.loads(reply.content)["validationErrors"]]


@pytest.mark.parametrize("path", ["/metadata/workflow/validate", "/metadata/workflow"])
def test_a_definition_with_too_many_steps_is_neither_valid_nor_saved(api, clock, path):
    reply = api.post(path, document())

    assert (reply.status_code, messages(reply)) == (400, [MESSAGE])
    assert not WorkflowDefinition.objects.exists()


def with_text(text: str) -> dict:
    return {"name": "huge", "schemaVersion": 2, "tasks": [{**simple("a"), "inputParameters": {"p": text}}]}


@pytest.mark.parametrize("path", ["/metadata/workflow/validate", "/metadata/workflow"])
def test_a_definition_with_too_many_expressions_is_neither_valid_nor_saved(api, clock, path):
    reply = api.post(path, with_text("${workflow.input.a}" * (MAX_EXPRESSIONS + 1)))

    message = f"A workflow definition can have at most {MAX_EXPRESSIONS} expressions. Use sub-workflows."
    assert (reply.status_code, messages(reply)) == (400, [message])
    assert not WorkflowDefinition.objects.exists()


HOSTILE = {
    "nested expressions": "${a" * 45_000 + "}" * 45_000,
    "unclosed expressions": "${" * 45_000,
    "different unknown references": "".join(f"${{a{number}.output}}" for number in range(45_000)),
    "a long path": "${a" + ".x" * 2_000_000 + "}",
    "brackets": "${a" + "[" * 4_000_000 + "}",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_expressions_are_checked_in_linear_time_and_errors_are_short(db, text):
    begun = process_time()

    found = [*workflow_errors(with_text(text)), *lint_workflow(with_text(text))]

    assert process_time() - begun < 5
    assert sum(len(each.message) for each in found) < 3_000_000


def test_a_definition_has_at_most_200_findings(db):
    assert len(lint_workflow(with_text("${nothing.output}" * 1_000))) == MAX_FINDINGS == 200


def test_a_definition_with_too_many_steps_is_not_updated(api, clock):
    reply = api.put("/metadata/workflow", [document()])

    assert (reply.status_code, messages(reply)) == (400, [MESSAGE])


def test_a_definition_with_too_many_steps_does_not_start(api, clock):
    reply = api.post("/workflow", {"name": "huge", "workflowDef": document()})

    assert (reply.status_code, messages(reply)) == (400, [MESSAGE])
    assert not Run.objects.exists()


def test_a_bundle_with_too_many_steps_is_not_imported(db):
    [item] = plan_import({"workflows": [document()], "tasks": []})

    assert [each.message for each in item.validation_errors] == [MESSAGE]


def test_a_definition_with_the_maximum_number_of_steps_is_valid():
    assert workflow_errors(document(MAX_STEPS)) == []


def test_lint_stops_at_the_first_look_at_a_definition_with_too_many_steps(db):
    assert lint_workflow({**document(), "outputParameters": {"x": "${nothing.output}"}}) == []


def half() -> list[dict]:
    return document(MAX_STEPS // 2)["tasks"]


NESTED = {
    "branches": {"type": "FORK_JOIN", "forkTasks": [half(), half()]},
    "cases": {"type": "SWITCH", "decisionCases": {"x": half()}, "defaultCase": half()},
    "a loop": {"type": "DO_WHILE", "loopOver": [*half(), *half()]},
    "an inline definition": {"type": "SUB_WORKFLOW", "subWorkflowParam": {"workflowDefinition": document(MAX_STEPS)}},
}


@pytest.mark.parametrize("case", NESTED)
def test_nested_steps_count(case):
    assert has_too_many_steps({"tasks": [{"name": "n", "taskReferenceName": "n", **NESTED[case]}]})


@pytest.mark.parametrize("tasks", [None, 1, {"tasks": 1}, [None], [[]], [{"subWorkflowParam": 1}], [{"type": []}]])
def test_a_malformed_definition_is_counted_without_an_exception(tasks):
    assert not has_too_many_steps({"tasks": tasks})


def test_an_inline_definition_that_a_run_computes_is_limited(db):
    assert resolve_inline(json.dumps(document())) == MESSAGE
