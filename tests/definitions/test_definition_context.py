"""Data that the linter needs besides the definition."""

import pytest

from conductor_app.core.validation.lint import lint_definition
from conductor_app.definitions.models import WorkflowDefinition
from conductor_app.definitions.validation import definition_context
from tests.builders import simple, sub_workflow
from tests.scenario import claim_and_report, claim_next, define_task, define_workflow, start_run_of


@pytest.fixture(autouse=True)
def database(clock, db):
    """Give every test a database and a clock."""


def lint_messages(name: str) -> list[str]:
    document = WorkflowDefinition.objects.get(name=name).document
    return [finding.message for finding in lint_definition(document, definition_context([document]))]


def test_recent_outputs_of_a_task_are_known():
    start_run_of(simple("charge"), simple("ship", inputParameters={"x": "${charge.output.reciept.number}"}))
    claim_and_report("charge", output={"receipt": {"number": 7}})

    assert any(
        "Did you mean `receipt`?" in message and "recent outputs of `charge`" in message
        for message in lint_messages("order")
    )


def test_members_of_only_some_recent_outputs_are_known():
    for output in ({"receipt": 1}, {"voucher": 2}):
        start_run_of(simple("charge"), simple("ship", inputParameters={"x": "${charge.output.voucher}"}))
        claim_and_report("charge", output=output)

    assert not any("voucher" in message for message in lint_messages("order"))


def test_sub_workflows_offer_the_outputs_of_their_newest_version():
    define_workflow("billing", simple("bill"), outputParameters={"invoice": "${bill.output.id}"})
    sub = sub_workflow("bill", "billing")
    define_workflow("order", sub, simple("ship", inputParameters={"x": "${bill.output.invoise}"}))

    assert any("Did you mean `invoice`?" in message for message in lint_messages("order"))


def test_known_task_types_include_every_scheduled_one():
    define_task("charge")
    define_workflow("order", simple("charge"))
    assert "No worker has ever polled `charge`." in lint_messages("order")

    claim_next("charge")
    assert lint_messages("order") == []


def test_the_queries_do_not_grow_with_the_definitions(django_assert_num_queries):
    documents = []
    for number in range(4):
        define_workflow(f"order{number}", simple("charge"))
        documents.append(WorkflowDefinition.objects.get(name=f"order{number}").document)

    with django_assert_num_queries(3):
        definition_context(documents, with_examples=False)
