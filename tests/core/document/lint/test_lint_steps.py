"""Findings on steps that are valid, but hardly what their author means."""

from pathlib import Path

import pytest
import yaml

from conductor_app.core.definition import walk
from conductor_app.core.validation.findings import NO_ADDRESS, UNREAD_ANSWER, WARNING, LintContext
from conductor_app.core.validation.lint import lint_definition
from tests.builders import fork, human, loop, noop, simple, step_of, switch

SHOP = Path(__file__).parents[4] / "examples" / "shop" / "orders" / "workflows" / "order.yaml"
FORM = {"__humanTaskDefinition": {"jsonSchema": {"properties": {"approved": {"type": "boolean"}}}}}
APPROVAL = human("approval", inputs=FORM)
READS = simple("pay", inputParameters={"approved": "${approval.output.approved}"})


def lint(*steps, known=None, **fields):
    """Return the findings of this module's kinds."""
    found = lint_definition({"name": "order", "tasks": list(steps), **fields}, known)
    return [each for each in found if each.kind in (NO_ADDRESS, UNREAD_ANSWER)]


def call(type="HTTP", **inputs):
    return step_of(type, "call", inputParameters=inputs)


@pytest.mark.parametrize("type", ["HTTP", "HTTP_POLL"])
@pytest.mark.parametrize(
    ("inputs", "place"),
    [({"method": "GET"}, "uri"), ({"uri": ""}, "uri"), ({"http_request": {"method": "GET"}}, "http_request.uri")],
)
def test_a_request_without_an_address_is_a_warning(type, inputs, place):
    [finding] = lint(call(type, **inputs))

    assert (finding.severity, finding.path) == (WARNING, f"tasks[0].inputParameters.{place}")
    assert finding.message == "`call` has no URL, so it fails. Enter the address that it calls as URL (`uri`)."


@pytest.mark.parametrize(
    "address",
    [
        "https://example.com",
        "http://www.example.org/a?b",
        "https://Example.net:8080/${workflow.input.id}",
        "example.com",
    ],
)
def test_the_address_of_a_sample_is_a_warning(address):
    for step in (call(uri=address), call(http_request={"uri": address}), call("CALL_MCP_TOOL", mcpServer=address)):
        [finding] = lint(step)
        assert finding.written == address and "exists only for examples" in finding.message


@pytest.mark.parametrize(
    "inputs",
    [
        {"uri": "https://api.example.com.acme.io/"},
        {"uri": "https://stock.example.org/items"},
        {"uri": "https://example.community"},
        {"uri": "https://acme.io/?next=https://example.com"},
        {"uri": "${workflow.input.address}"},
        {"http_request": "${workflow.input.request}"},
        {"http_request": {"uri": "${workflow.input.address}"}},
        {"http_request": {"method": "GET"}, "uri": "https://acme.io"},
    ],
)
def test_other_addresses_and_expressions_are_no_findings(inputs):
    assert lint(call(**inputs)) == []


def test_an_address_in_the_input_template_of_the_task_definition_counts():
    template = {"inputTemplate": {"uri": "https://acme.io"}}

    assert lint(call(method="GET"), known=LintContext(tasks={"call": template})) == []
    assert lint({**call(method="GET"), "taskDefinition": template}) == []


def test_an_answer_that_no_step_reads_is_a_warning_that_names_what_to_do():
    [finding] = lint(APPROVAL, simple("pay"))

    assert (finding.severity, finding.path) == (WARNING, "tasks[0].inputParameters")
    assert "No step reads the answer of `approval`" in finding.message
    assert "Add a Switch that reads `${approval.output.approved}`" in finding.message


def test_an_answer_that_is_neither_read_nor_in_the_outputs_is_a_warning():
    assert lint(APPROVAL, outputParameters={"a": "${workflow.input.a}"})


def test_an_answer_that_the_form_does_not_ask_for_is_a_finding():
    reads = simple("pay", inputParameters={"approved": "${approval.output.aproved}"})
    [finding] = lint_definition({"name": "order", "tasks": [APPROVAL, reads]})

    assert (finding.severity, finding.meant) == (WARNING, "approval.output.approved")


@pytest.mark.parametrize(
    ("steps", "fields"),
    [
        ([APPROVAL, READS], {}),
        ([APPROVAL], {}),
        ([APPROVAL, simple("pay")], {"outputParameters": {"by": "${approval.output}"}}),
        ([human("approval", inputs={}), simple("pay")], {}),
        ([*fork([APPROVAL], [noop("b")]), simple("p", inputParameters={"a": "${join.output}"})], {}),
        ([loop("again", APPROVAL, times=2), simple("p", inputParameters={"all": "${again.output}"})], {}),
        ([{**loop("again", APPROVAL, times=2), "loopCondition": "!$.approval['approved']"}, simple("p")], {}),
        ([APPROVAL, switch("route", {"true": [simple("pay")]}, inputs={"v": "${approval.output.approved}"})], {}),
    ],
    ids=["read", "last", "output", "no form", "read in the join", "read in the loop", "loop condition", "switch"],
)
def test_an_answer_that_may_be_read_is_no_finding(steps, fields):
    assert lint(*steps, **fields) == []


def test_the_definitions_of_the_examples_have_no_such_findings():
    pytest.importorskip("conductor")
    from conductor.client.http.api_client import ApiClient

    from examples.demo.workflows import workflow_definitions

    built = [each.to_workflow_def() for each in workflow_definitions(None)]
    documents = [*map(ApiClient().sanitize_for_serialization, built), yaml.safe_load(SHOP.read_text(encoding="utf-8"))]
    assert any(step["type"] == "HUMAN" for document in documents for step in _steps(document))
    assert [lint(*document["tasks"], outputParameters=document.get("outputParameters")) for document in documents] == [
        []
    ] * 4


def _steps(document):
    return [spot.step for spot in walk(document["tasks"])]
