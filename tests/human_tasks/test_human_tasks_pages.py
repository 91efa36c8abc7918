"""Human tasks: the inbox of tasks that only a person can answer."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.runs.commands import control
from tests.access.users import client_with
from tests.builders import human, set_variable, step_of
from tests.page_text import html, page_text, run_url
from tests.scenario import define_task, define_workflow, newest_attempt_of, reload_run, start_run

INBOX = "/admin/human-tasks/"
SCHEMA = {
    "type": "object",
    "required": ["approved"],
    "properties": {
        "approved": {"type": "boolean", "title": "Is it approved?"},
        "limit": {"type": "integer", "maximum": 5000},
        "lines": {"type": "array"},
    },
}


@pytest.fixture
def waiting_run(clock, db):
    verdict = set_variable("verdict", was="${approve.output.approved}")
    define_workflow("order", human("approve", inputParameters={"total": "${workflow.input.total}"}), verdict)
    return start_run("order", correlation_id="order-4711", input={"total": 1999})


def task_of(run):
    return f"{INBOX}{newest_attempt_of(run, 'approve').pk}/"


def test_the_inbox_lists_open_tasks_with_their_runs(operator, waiting_run):
    page = page_text(operator.get(INBOX))

    assert "approve order v1 order-4711" in page


def test_the_inbox_is_searched_by_what_it_shows(operator, waiting_run):
    for text, count in [("4711", 1), ("ORDER", 1), ("refund", 0)]:
        found = operator.get(INBOX, {"q": text})

        assert len(found.context["rows"]) == count, text
        assert ("No results" in page_text(found)) is not bool(count), text
        assert f"?assigned=mine&amp;q={text}" in html(found), text


def test_an_empty_inbox_explains_human_tasks(operator, db):
    assert "No open human tasks" in page_text(operator.get(INBOX))


def test_a_task_displays_its_input_and_the_fields_read_later(operator, waiting_run):
    page = operator.get(task_of(waiting_run))

    assert "total 1999" in page_text(page) and "Read by later steps approved" in page_text(page)
    assert "&quot;approved&quot;: null" in html(page)


def test_an_open_task_has_waited_and_not_run(operator, waiting_run, clock):
    clock.advance(seconds=4 * 3600)

    panel = page_text(operator.get(run_url(waiting_run, task="approve")))

    assert "attempt 1, waiting 4 h" in panel and "working 4 h" not in panel


def test_a_completion_is_audited_with_its_reason(operator, waiting_run):
    said = {"output": '{"approved": true}', "reason": "a good customer", "outcome": "COMPLETED"}

    page = operator.post(task_of(waiting_run), said, follow=True)

    assert "Completed approve of order" in page_text(page) and "No open human tasks" in page_text(page)
    assert (reload_run(waiting_run).status, reload_run(waiting_run).variables) == ("COMPLETED", {"was": True})
    entry = AuditEntry.objects.get(action="complete_task")
    assert (entry.actor, entry.object_id, entry.reason) == ("olga", waiting_run.pk, "a good customer")


def test_a_task_can_be_failed_with_a_reason(operator, waiting_run):
    page = operator.post(task_of(waiting_run), {"output": "", "reason": "too dear", "outcome": "FAILED"}, follow=True)

    assert "Marked approve of order-4711 as failed. Open run" in page_text(page)
    assert reload_run(waiting_run).status == "FAILED"
    assert newest_attempt_of(waiting_run, "approve").reason == "too dear"


def test_an_invalid_completion_is_rejected_without_changes(operator, waiting_run):
    for said in [{"output": "[1]"}, {"output": "{"}, {"output": "{}", "outcome": "SKIPPED"}]:
        page = operator.post(task_of(waiting_run), {"outcome": "COMPLETED", **said}, follow=True)

        assert 'class="error"' in html(page), said
        assert reload_run(waiting_run).status == "RUNNING", said


def text_of_refusal(response):
    """Return the text of a page that refuses an answer."""
    assert response.status_code == 409
    response.status_code = 200
    return page_text(response)


def test_a_task_of_an_ended_run_takes_no_answer(operator, waiting_run):
    address = task_of(waiting_run)
    control.terminate_run(waiting_run.pk, "ann")

    assert "This task ended" in page_text(operator.get(address))
    refused = operator.post(address, {"outcome": "COMPLETED", "output": "{}"})
    assert "Not saved. This task ended" in text_of_refusal(refused)


@pytest.mark.parametrize(
    "typed",
    [{"output": '{"limit": 7}', "outcome": "COMPLETED"}, {"do": "comment", "reason": "limit 7, please"}],
    ids=["answer", "comment"],
)
def test_a_second_answer_is_refused_with_the_first_one_and_kept_for_copying(operator, waiting_run, typed):
    address = task_of(waiting_run)
    first = {"output": '{"approved": true}', "reason": "a good customer", "outcome": "COMPLETED"}
    client_with("view_run", "change_run", name="ann").post(address, first)

    shown = page_text(operator.get(address))
    refused = operator.post(address, typed)

    assert "ann completed this task" in shown and "approved true" in shown and "ot saved" not in shown
    text = text_of_refusal(refused)
    assert "Not saved. ann completed this task" in text and "a good customer" in text and "approved true" in text
    assert typed.get("reason", '"limit": 7') in text
    assert AuditEntry.objects.filter(action="complete_task").count() == 1


def test_a_viewer_sees_the_task_and_cannot_complete_it(viewer, waiting_run):
    page = page_text(viewer.get(task_of(waiting_run)))

    assert "You need the permission to change runs. Operators have it." in page and "Complete" not in page
    assert viewer.post(task_of(waiting_run), {"outcome": "COMPLETED", "output": "{}"}).status_code == 403
    assert reload_run(waiting_run).status == "RUNNING"


def test_a_viewer_is_offered_no_answer_and_sees_for_whom_the_task_waits(viewer, operator, waiting_run):
    for address in (INBOX, run_url(waiting_run), run_url(waiting_run, task="approve")):
        assert ">Answer</a>" in html(operator.get(address)), address
        page = viewer.get(address)
        assert ">Answer</a>" not in html(page) and "anyone" in page_text(page), address


def test_a_run_without_a_correlation_id_has_the_name_that_the_list_of_runs_gives_it(operator, waiting_run):
    run = start_run("order", input={"total": 4700})

    found = operator.get(INBOX, {"q": "4700"})

    assert len(found.context["rows"]) == 1 and "approve order v1 total 4700" in page_text(found)
    assert "Run order v1 total 4700" in page_text(operator.get(task_of(run)))


def test_the_inbox_requires_permission_to_view_runs(db):
    assert client_with().get(INBOX).status_code == 403


def test_the_page_of_the_run_leads_to_the_answer(operator, waiting_run):
    assert task_of(waiting_run) in html(operator.get(run_url(waiting_run, task="approve")))


def test_the_inbox_takes_few_queries(viewer, waiting_run, django_assert_max_num_queries):
    # Four of the statements read the viewer's grants, which a process caches for a second.
    for _ in range(20):
        start_run("order")
    with django_assert_max_num_queries(14):
        viewer.get(INBOX)


@pytest.fixture(params=["by the task's definition", "by the question itself"])
def with_schema(request, clock, db):
    """Return a task whose output must match a schema."""
    is_defined = request.param == "by the task's definition"
    if is_defined:
        define_task("approve", retryCount=0, outputSchema={"type": "JSON", "data": SCHEMA}, enforceSchema=True)
    inputs = {} if is_defined else {"__humanTaskDefinition": {"jsonSchema": SCHEMA}}
    define_workflow("order", human("approve", inputParameters=inputs))
    return start_run("order")


def test_a_form_is_built_from_the_schema(operator, with_schema):
    page = operator.get(task_of(with_schema))
    assert "Is it approved?" in page_text(page) and 'name="output.limit"' in html(page)

    typed = {"mode": "form", "output.approved": "true", "output.limit": "1200", "output.lines": "[1]"}
    operator.post(task_of(with_schema), {**typed, "outcome": "COMPLETED"})

    assert reload_run(with_schema).status == "COMPLETED"
    assert newest_attempt_of(with_schema, "approve").output == {"approved": True, "limit": 1200, "lines": [1]}


def test_an_invalid_value_is_reported_at_its_field_without_failing_the_task(operator, with_schema):
    for typed, message in [
        ({"output.approved": "true", "output.limit": "9999"}, "maximum"),
        ({"output.approved": "true", "output.limit": "many"}, "Enter a whole number."),
        ({"output.limit": "9"}, "approved"),
    ]:
        page = operator.post(task_of(with_schema), {"mode": "form", **typed, "outcome": "COMPLETED"})

        assert 'class="error"' in html(page) and f'value="{typed["output.limit"]}"' in html(page), typed
        assert message in " ".join([*page.context["answer"].form_errors, *page.context["fields"][1].errors]), typed
        assert reload_run(with_schema).status == "RUNNING", typed


def test_a_json_completion_is_validated_by_the_schema(operator, with_schema):
    switched = operator.post(task_of(with_schema), {"mode": "form", "output.approved": "true", "mode.to": "json"})
    assert switched.context["answer"].mode == "json" and "&quot;approved&quot;: true" in switched.content.decode()

    said = {"mode": "json", "outcome": "COMPLETED"}
    page = operator.post(task_of(with_schema), {**said, "output": '{"limit": 1}'})
    assert "approved" in page.context["answer"].form_errors[0] and "&quot;limit&quot;: 1" in html(page)

    operator.post(task_of(with_schema), {**said, "output": '{"approved": false}'})
    assert newest_attempt_of(with_schema, "approve").output == {"approved": False}


def test_failing_a_task_requires_no_form_values(operator, with_schema):
    operator.post(task_of(with_schema), {"mode": "form", "reason": "too dear", "outcome": "FAILED"})

    assert reload_run(with_schema).status == "FAILED"


# Two buttons that decide ----------------------------------------------------------------------------------------------


def route(field: str, *cases: str):
    """Return a SWITCH that reads one member of the answer."""
    bodies = {case: [set_variable(f"on_{case}", way=case)] for case in cases}
    return step_of(
        "SWITCH",
        "route",
        evaluatorType="value-param",
        expression="value",
        inputParameters={"value": f"${{approve.output.{field}}}"},
        decisionCases=bodies,
    )


def start_with(*later, schema=None):
    """Start a run whose human task is followed by the given steps."""
    question = {"__humanTaskDefinition": {"jsonSchema": schema}} if schema else {}
    define_workflow("order", human("approve", inputParameters=question), *later)
    return start_run("order")


@pytest.mark.parametrize(("pressed", "way"), [("true", "true"), ("false", "false")])
def test_a_task_without_a_schema_is_approved_or_rejected_if_a_switch_reads_one_field(operator, clock, pressed, way):
    run = start_with(route("approved", "true", "false"))
    page = page_text(operator.get(task_of(run)))

    operator.post(task_of(run), {"decision": pressed, "mode": "form"})

    assert "Approve Reject" in page
    assert (reload_run(run).status, reload_run(run).variables) == ("COMPLETED", {"way": way})


def test_the_buttons_fill_in_one_field_and_the_form_has_the_others(operator, clock):
    run = start_with(route("approved", "true"), schema=SCHEMA)
    page = operator.get(task_of(run))

    operator.post(task_of(run), {"decision": "true", "mode": "form", "output.limit": "70"})

    assert "Approve Reject" in page_text(page) and "Is it approved?" not in page_text(page)
    assert newest_attempt_of(run, "approve").output == {"approved": True, "limit": 70}


@pytest.mark.parametrize(
    ("pressed", "done", "label"), [("true", "Approved", "Approve"), ("false", "Rejected", "Reject")]
)
def test_a_decision_is_named_in_the_message_and_in_the_audit_log(operator, clock, pressed, done, label):
    define_workflow("order", human("approve"), route("approved", "true", "false"))
    run = start_run("order", correlation_id="REV-1")

    page = operator.post(task_of(run), {"decision": pressed, "mode": "form"}, follow=True)

    assert f"{done} approve of REV-1. Open run" in page_text(page) and run_url(run) in html(page)
    assert AuditEntry.objects.get(action="complete_task").facts == {"after": {"decision": label}}
    assert f"decision – → {label}" in page_text(operator.get("/admin/conductor/auditentry/"))


def test_a_decision_that_does_not_approve_is_named_by_its_button(operator, clock):
    run = start_with(route("is_fraud", "true", "false"))

    page = operator.post(task_of(run), {"decision": "false", "mode": "form"}, follow=True)

    assert "Completed approve of order with “is_fraud: no”. Open run" in page_text(page)


def test_a_rejected_form_keeps_the_task_open(operator, clock):
    run = start_with(route("approved", "true"), schema=SCHEMA)

    page = operator.post(task_of(run), {"decision": "true", "mode": "form", "output.limit": "many"})

    assert "Enter a whole number" in page_text(page) and reload_run(run).status == "RUNNING"


def test_another_value_than_the_two_is_refused(operator, clock):
    run = start_with(route("approved", "true"), schema=SCHEMA)

    operator.post(task_of(run), {"decision": "maybe", "mode": "form"})

    assert reload_run(run).status == "RUNNING"


def test_a_field_that_does_not_approve_is_named_on_its_buttons(operator, clock):
    run = start_with(route("is_fraud", "true", "false"))

    page = page_text(operator.get(task_of(run)))

    assert "is_fraud: yes is_fraud: no" in page and "Approve" not in page


def test_two_cases_become_two_buttons(operator, clock):
    run = start_with(route("grade", "REJECTED", "APPROVED"))
    page = page_text(operator.get(task_of(run)))

    operator.post(task_of(run), {"decision": "REJECTED", "mode": "form"})

    assert "Approve Reject" in page and reload_run(run).variables == {"way": "REJECTED"}


@pytest.mark.parametrize(
    "later",
    [
        (route("approved", "a", "b", "c"),),
        (
            route("approved", "true"),
            {**route("grade", "true"), "taskReferenceName": "other", "decisionCases": {"x": []}},
        ),
        (),
    ],
    ids=["three cases", "two fields", "no switch"],
)
def test_a_task_without_one_deciding_field_is_completed_as_before(operator, clock, later):
    run = start_with(*later)

    page = page_text(operator.get(task_of(run)))

    assert "Complete Fail the task" in page and "Approve" not in page


def test_the_only_field_of_a_form_decides(operator, clock):
    run = start_with(schema={"properties": {"accepted": {"type": "boolean"}}})

    assert "Approve Reject" in page_text(operator.get(task_of(run)))
