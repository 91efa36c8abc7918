"""A run is started by hand: from a form that the schema draws, or from JSON; as a client would start it."""

import json
from html import unescape

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.definitions import commands as definition_commands
from conductor_app.definitions import schemas
from conductor_app.definitions.models import WorkflowDefinition
from conductor_app.runs.models import Run
from tests.builders import simple
from tests.page_text import html, page_text
from tests.scenario import define_workflow, start_run

WORKFLOWS = "/admin/conductor/workflowdefinition/"
SCHEMA = {
    "type": "object",
    "required": ["order"],
    "properties": {
        "order": {"type": "string", "title": "Order number"},
        "amount": {"type": "number", "minimum": 0},
        "way": {"enum": ["express", "standard"], "default": "standard"},
        "lines": {"type": "array"},
    },
}


@pytest.fixture
def order(clock, db):
    define_workflow("order", simple("ship"), inputSchema={"type": "JSON", "data": SCHEMA}, enforceSchema=True)
    return WorkflowDefinition.objects.get(name="order")


@pytest.fixture
def plain(clock, db):
    define_workflow("plain", simple("ship"), inputParameters=["order"])
    return WorkflowDefinition.objects.get(name="plain")


def address(row, **asked):
    query = "&".join(f"{name}={value}" for name, value in asked.items())
    return f"{WORKFLOWS}{row.pk}/start/" + (f"?{query}" if query else "")


def send(client, row, mode="form", **typed):
    names = {name: (f"input.{name}" if name in SCHEMA["properties"] else name) for name in typed}
    return client.post(address(row), {"mode": mode, **{names[name]: text for name, text in typed.items()}})


def test_the_form_is_built_from_the_schema(operator, order):
    page = operator.get(address(order))

    assert "Order number" in page_text(page) and 'name="input.amount"' in html(page)
    assert '<option value="standard" selected>' in html(page)


def test_the_form_is_built_from_a_registered_schema(operator, clock, db):
    schemas.save_schemas([{"name": "order_input", "version": 1, "type": "JSON", "data": SCHEMA}], "me")
    define_workflow("order", simple("ship"), inputSchema={"name": "order_input", "version": 1}, enforceSchema=True)

    shown = operator.get(f"{WORKFLOWS}{WorkflowDefinition.objects.get(name='order').pk}/start/").content.decode()

    assert 'name="input.order"' in shown


def test_a_start_can_be_scheduled_and_its_page_displays_the_time(operator, order, clock):
    answer = send(operator, order, order="4711", starts_at="2027-03-01T14:30:00")
    run = Run.objects.get()

    assert (run.created_at - clock.now()) == 9_000_000
    assert "scheduled to start at 2027-03-01 14:30:00 UTC, in 2 h 30 min" in page_text(operator.get(answer.url))
    assert "starts at 2027-03-01 14:30:00 UTC" in page_text(operator.get("/admin/conductor/run/"))
    events = page_text(operator.get(f"{answer.url}?tab=events&task=-"))
    assert "olga start requested, begins in 2 h 30 min" in events
    call = send(operator, order, order="4711", starts_at="2027-03-01T14:30:00", step="show")
    assert f'"startAt": {run.created_at}' in unescape(html(call))
    assert "Enter a time in the future." in page_text(send(operator, order, order="1", starts_at="2027-03-01T11:00:00"))


def test_entered_values_start_a_run_and_lead_to_its_page(operator, order):
    answer = send(
        operator, order, order="4711", amount="12.5", correlation_id="order-4711", priority="7", reason="asked"
    )

    run = Run.objects.get()
    assert answer.url == f"/admin/conductor/run/{run.pk}/change/"
    assert run.input == {"order": "4711", "amount": 12.5}
    assert (run.correlation_id, run.priority, run.started_by, run.version) == ("order-4711", 7, "olga", 1)
    assert AuditEntry.objects.get(action="start").reason == "asked"


def test_schema_violations_are_reported_at_their_fields(operator, order):
    page = send(operator, order, order="4711", amount="-3")

    [wrong] = [each for each in page.context["fields"] if each.errors]
    assert wrong.field.name == "input.amount" and "minimum" in wrong.errors[0]
    assert 'value="4711"' in html(page), "what was typed stays"
    assert not Run.objects.exists()


def test_missing_values_are_reported_above_the_fields(operator, order):
    assert "order" in page_text(send(operator, order, amount="3"))
    assert not Run.objects.exists()


def test_invalid_numbers_and_json_are_reported_at_their_fields(operator, order):
    page = page_text(send(operator, order, order="1", amount="many", lines="[1,"))

    assert "Enter a number" in page and "This is not valid JSON at line 1, column 4." in page


def test_the_input_can_be_typed_as_json(operator, order):
    send(operator, order, mode="json", input='{"order": "1", "lines": [1, 2]}')

    assert Run.objects.get().input == {"order": "1", "lines": [1, 2]}


def test_declared_inputs_are_fields_with_the_defaults_of_the_input_template(operator, clock, db):
    template = {"way": "express", "limits": {"weight": 20}, "unlisted": 1}
    define_workflow("plain", simple("ship"), inputParameters=["order", "way", "limits"], inputTemplate=template)
    row = WorkflowDefinition.objects.get(name="plain")

    page = operator.get(address(row))
    operator.post(address(row), {"mode": "form", "input.order": "4711", "input.way": '"1"', "input.limits": "[1, 2]"})

    assert 'name="input.order"' in html(page) and 'value="express"' in html(page)
    assert "&quot;weight&quot;: 20" in html(page) and "input.unlisted" not in html(page)
    assert Run.objects.get().input == {"order": 4711, "way": "1", "limits": [1, 2], "unlisted": 1}


def test_a_switch_to_json_and_back_keeps_input_and_options(operator, order):
    typed = {"input.order": "4711", "input.amount": "3", "input.lines": "[1]", "priority": "7"}

    as_json = operator.post(address(order), {"mode": "form", "mode.to": "json", **typed})
    document = as_json.context["start"].json.initial["input"]
    as_form = operator.post(address(order), {"mode": "json", "mode.to": "form", "input": document, "priority": "7"})

    assert json.loads(document) == {"order": "4711", "amount": 3, "lines": [1]}
    for page in (as_json, as_form):
        assert 'name="priority" value="7"' in html(page)
    assert 'value="4711"' in html(as_form) and as_form.context["start"].mode == "form"
    assert not Run.objects.exists(), "a switch starts nothing"


def test_a_switch_is_refused_where_it_would_lose_a_value(operator, order):
    lost = operator.post(
        address(order), {"mode": "json", "mode.to": "form", "input": '{"order": "1", "colour": "red"}'}
    )
    wrong = operator.post(address(order), {"mode": "form", "mode.to": "json", "input.amount": "many"})

    assert "A value has no field in the form" in page_text(lost) and "&quot;colour&quot;" in html(lost)
    assert "Enter a number." in page_text(wrong) and 'value="many"' in html(wrong)


def test_invalid_json_is_rejected_with_its_position(operator, plain):
    page = page_text(send(operator, plain, mode="json", input='{"a": }'))

    assert "at line 1, column 7" in page and not Run.objects.exists()


def test_a_run_is_started_like_another_one(operator, order):
    other = start_run("order", input={"order": "4711", "amount": 3}, correlation_id="again", domains={"ship": "blue"})

    page = operator.get(address(order, like=other.pk))

    assert 'value="4711"' in html(page) and 'value="again"' in html(page) and "ship = blue" in html(page)


def test_an_input_with_fields_outside_the_form_is_offered_as_json(operator, order):
    other = start_run("order", input={"order": "4711", "colour": "red"})

    page = operator.get(address(order, like=other.pk))

    assert page.context["start"].mode == "json" and "&quot;colour&quot;" in html(page)


def test_recent_runs_are_offered_as_templates(operator, order):
    for number in range(7):
        start_run("order", input={"order": str(number)}, correlation_id=f"order-{number}")

    assert len(operator.get(address(order)).context["last"]) == 5


def test_an_unknown_run_is_reported(operator, order):
    assert "No such run of order: nobody." in page_text(operator.get(address(order, like="nobody")))


def test_a_repeated_key_is_refused_or_leads_to_the_first_run(operator, plain):
    typed = {"mode": "json", "input": "{}", "idempotency_key": "k1"}
    operator.post(address(plain), typed)
    first = Run.objects.get()

    assert "k1" in page_text(operator.post(address(plain), typed))
    again = operator.post(address(plain), {**typed, "idempotency_strategy": "RETURN_EXISTING"})
    assert first.pk in again.url and Run.objects.count() == 1
    assert "This key was used before" in page_text(operator.get(again.url))


def test_domains_are_a_line_each(operator, plain):
    wrong = page_text(operator.post(address(plain), {"mode": "json", "input": "{}", "domains": "ship: blue"}))
    operator.post(address(plain), {"mode": "json", "input": "{}", "domains": "ship = blue\n\n* = green"})

    assert "Line 1 must look like" in wrong
    assert Run.objects.get().domains == {"ship": "blue", "*": "green"}


def test_the_same_call_is_displayed_for_curl(operator, order):
    page = send(operator, order, order="it's", step="show", idempotency_key="k")

    assert not Run.objects.exists()
    assert "POST http://testserver/api/workflow" in page.context["curl"] and "'\"'\"'" in page.context["curl"]


def test_a_user_without_permission_learns_which_one_is_missing(viewer, order):
    for answer in (viewer.get(address(order)), send(viewer, order, order="1")):
        assert answer.status_code == 403 and b"start workflows" in answer.content
    assert "Start a run" not in page_text(viewer.get(f"{WORKFLOWS}{order.pk}/change/"))


def test_the_form_takes_few_queries(operator, order, django_assert_max_num_queries):
    other = start_run("order", input={"order": "1"})

    with django_assert_max_num_queries(15):
        operator.get(address(order, like=other.pk))


def test_masked_values_are_not_copied_and_the_page_states_it(operator, plain):
    definition_commands.save_workflow({**plain.document, "maskedFields": ["order"]}, "ann", overwrite=True)
    other = start_run(plain.name, input={"order": "4711"})

    page = operator.get(address(plain, like=other.pk))

    assert "Replace each *** with a value" in page_text(page) and "4711" not in html(page)
