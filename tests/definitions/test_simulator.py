"""The simulator page: simulations write nothing, and saved test cases run again on every save."""

import json

import pytest

from conductor_app.core.step_types import DECLARED_TYPES
from conductor_app.definitions.models import DefinitionDraft, ResolvedDefinition, SimulationCase, WorkflowDefinition
from conductor_app.runs.models import Attempt, Run
from tests.access.users import client_with
from tests.builders import human, join, noop, simple, step_of, sub_workflow
from tests.page_text import html, page_text
from tests.scenario import claim_and_report, define_task, define_workflow, start_run_of

WORKFLOWS = "/admin/conductor/workflowdefinition/"
ROUTE = step_of(
    "SWITCH",
    "route",
    evaluatorType="value-param",
    expression="way",
    inputParameters={"way": "${charge.output.way}"},
    decisionCases={"air": [simple("fly")]},
    defaultCase=[simple("drive")],
)


@pytest.fixture
def order(clock, db):
    define_task("charge", retryCount=1, retryDelaySeconds=5)
    define_workflow(
        "order", simple("charge"), ROUTE, outputParameters={"by": "${fly.output.plane}"}, inputParameters=["order"]
    )
    return WorkflowDefinition.objects.get(name="order")


def address(row, query=""):
    return f"{WORKFLOWS}{row.pk}/test/{query}"


def try_out(client, row, query="", **said):
    typed = {"input": "{}", **said}
    return client.post(address(row, query), {name.replace("__", "."): text for name, text in typed.items()})


AIR = {"output__charge": '{"way": "air"}', "output__fly": '{"plane": "A320"}'}


def test_a_simulation_displays_its_path_inputs_and_outputs(operator, order):
    page = try_out(operator, order, **AIR)
    report = page.context["report"]

    assert report.status == "COMPLETED" and report.output == {"by": "A320"}
    assert [moment.name for moment in report.attempts] == ["charge", "route", "fly"]
    assert report.unreached == ["drive"]
    assert "Not reached: drive" in page_text(page)
    assert 'class="diagram-node leaf succeeded" href="?task=fly"' in html(page)


def test_the_result_of_a_fork_has_its_name(operator, clock, db):
    define_workflow(
        "split", step_of("FORK_JOIN", "both", forkTasks=[[simple("a")], [simple("b")]]), step_of("JOIN", "all")
    )

    page = page_text(try_out(operator, WorkflowDefinition.objects.get(name="split")))

    assert "both Completed Fork Resolved input" in page


def test_a_simulation_writes_nothing(operator, order):
    try_out(operator, order, **AIR)

    assert (Run.objects.count(), Attempt.objects.count(), ResolvedDefinition.objects.count()) == (0, 0, 0)


def test_a_step_may_fail_before_it_completes(operator, order):
    report = try_out(operator, order, how__charge="fails", times__charge="1", **AIR).context["report"]

    assert [(moment.name, moment.status) for moment in report.attempts[:2]] == [
        ("charge", "FAILED"),
        ("charge", "COMPLETED"),
    ]
    assert report.attempts[1].after_ms >= 5000, "after the delay of its policy"


@pytest.mark.parametrize(
    ("how", "status"),
    [("fails_for_good", "FAILED"), ("times_out", "FAILED"), ("stays", "RUNNING")],
)
def test_a_step_may_end_badly_or_not_at_all(operator, order, how, status):
    report = try_out(operator, order, how__charge=how).context["report"]

    assert report.status in (status, "TIMED_OUT" if how == "times_out" else status)
    assert report.unreached == ["route", "fly", "drive"]


def test_a_simulation_can_be_stepped_through(operator, order):
    page = try_out(operator, order, until="1", **AIR)

    assert "1 of 3" in page_text(page)
    assert page.context["report"].step_marks.get("route") is None and page.context["report"].step_marks.get("charge")


def test_steps_are_prefilled_with_their_recent_outputs(operator, order):
    start_run_of(simple("charge"), ROUTE, name="order", input={"order": "4711"})
    claim_and_report("charge", output={"way": "air", "receipt": 7})

    page = operator.get(address(order))

    steps = {each.ref: each for each in page.context["trial"].steps}
    assert steps["charge"].output.document == {"way": "air", "receipt": 7}
    assert steps["charge"].source == "From last run" and steps["fly"].source == "An example: no step reads it"
    assert 'name="output.charge.receipt"' in html(page)
    assert page.context["trial"].input.document == {"order": "4711"}


def test_the_mock_of_a_task_that_never_ran_has_the_fields_that_other_steps_read(operator, order):
    page = operator.get(address(order))
    typed = {"answer.charge": "form", "output.charge.way": "air", "answer.fly": "form", "output.fly.plane": "A320"}

    assert [each.source for each in page.context["trial"].steps][:2] == ["Read by other steps"] * 2
    assert 'name="output.charge.way"' in html(page) and 'name="output.fly.plane"' in html(page)
    assert operator.post(address(order), {"input": "{}"} | typed).context["report"].output == {"by": "A320"}


def test_the_mock_of_a_task_that_another_workflow_ran_has_the_fields_of_its_last_output(operator, clock, db):
    define_task("charge")
    define_workflow("order", simple("charge"))
    start_run_of(simple("charge"), name="another")
    claim_and_report("charge", output={"receipt": 7, "card": {"last": "0002"}})
    row = WorkflowDefinition.objects.get(name="order")

    page = operator.get(address(row))
    typed = {"answer.charge": "form", "output.charge.receipt": "8", "output.charge.card.last": '"0003"'}
    report = operator.post(address(row), {"input": "{}"} | typed).context["report"]

    assert page.context["trial"].steps[0].source == "From last run of this task"
    assert report.attempts[0].output == {"receipt": 8, "card": {"last": "0003"}}


def test_steps_without_outputs_are_prefilled_from_their_schema(operator, clock):
    data = {"type": "object", "properties": {"total": {"type": "number", "minimum": 3}, "paid": {"type": "boolean"}}}
    define_task("charge", outputSchema={"type": "JSON", "data": data})
    define_workflow("order", simple("charge"), inputSchema={"type": "JSON", "data": data})
    row = WorkflowDefinition.objects.get(name="order")

    trial = operator.get(address(row)).context["trial"]

    assert trial.input.document == trial.steps[0].output.document == {"total": 3, "paid": True}


def test_steps_of_the_server_are_prefilled_with_an_output_of_their_type(operator, clock):
    request = step_of("HTTP", "call", inputParameters={"uri": "https://acme.io", "method": "GET"})
    define_workflow("order", request, simple("charge"), outputParameters={"code": "${call.output.response.statusCode}"})
    row = WorkflowDefinition.objects.get(name="order")

    call, charge = operator.get(address(row)).context["trial"].steps
    assert call.source == "Sample of its type" and charge.source == "An example: no step reads it"
    assert [each.key for each in call.output.fields[0].fields if each.kind == "typed"][-2:] == ["headers", "body"]
    assert call.output.document["response"].keys() == {"statusCode", "reasonPhrase", "headers", "body"}
    assert operator.post(address(row), {"input": "{}"}).context["report"].output == {"code": 200}


FIXED = [each for each in DECLARED_TYPES.values() if each.output_sample and each.output_members]


@pytest.mark.parametrize("found", FIXED, ids=lambda found: found.type)
def test_the_sample_of_an_output_has_members_that_its_type_has(found):
    assert found.output_sample.keys() <= found.output_members.keys()
    inner = {name: members.keys() for name, members in found.output_members.items() if members}
    assert inner == {name: found.output_sample[name].keys() for name in inner}


def test_a_test_of_a_workflow_without_inputs_folds_the_input_and_names_step_types_in_words(operator, clock):
    define_workflow("order", simple("charge"), human("approve"))
    page = operator.get(address(WorkflowDefinition.objects.get(name="order")))

    text, markup = page_text(page), " ".join(html(page).split())
    assert "This workflow declares no inputs. Input as JSON" in text
    assert '<details class="more-options"> <summary>Input as JSON</summary>' in markup
    assert "Human task" in text and "Worker task" in text
    assert "HUMAN" not in text and "SIMPLE" not in text


def test_the_mock_of_a_human_task_is_its_form(operator, clock):
    form = {"properties": {"approved": {"type": "boolean"}, "limit": {"type": "integer", "default": 5}}}
    ask = human("approve", inputParameters={"__humanTaskDefinition": {"jsonSchema": form}})
    define_workflow("order", ask, outputParameters={"by": "${approve.output}"}, inputParameters=["amount"])
    row = WorkflowDefinition.objects.get(name="order")
    typed = {"mode": "form", "input.amount": "3", "answer.approve": "form"}
    typed |= {"output.approve.approved": "false", "output.approve.limit": "7"}

    shown = html(operator.get(address(row)))
    as_json = operator.post(address(row), {**typed, "answer.approve.to": "json"})
    wrong = operator.post(address(row), {**typed, "output.approve.limit": "many"})
    report = operator.post(address(row), typed).context["report"]

    assert 'name="output.approve.approved"' in shown and 'name="input.amount"' in shown
    assert "From its form" in shown and '<option value="true" selected>' in shown
    assert as_json.context["report"] is None, "a switch tests nothing"
    assert as_json.context["trial"].steps[0].output.json.initial == {
        "output.approve": '{\n  "approved": false,\n  "limit": 7\n}'
    }
    assert 'name="input.amount" id="id_input-amount" value="3"' in " ".join(html(as_json).split())
    assert "Enter a whole number." in page_text(wrong) and wrong.context["report"] is None
    assert report.output == {"by": {"approved": False, "limit": 7}}


def test_invalid_json_is_reported_at_its_field(operator, order):
    page = page_text(try_out(operator, order, input="{", output__charge="[1]"))

    assert "Invalid JSON" in page and "Enter a JSON object." in page
    assert "Result" not in page


def test_an_input_that_violates_the_schema_is_reported(operator, clock):
    schema = {"type": "object", "required": ["order"]}
    define_workflow("order", simple("charge"), inputSchema={"type": "JSON", "data": schema})
    row = WorkflowDefinition.objects.get(name="order")

    assert "order" in page_text(try_out(operator, row)).split("Diagram")[0]


def test_a_draft_is_simulated_before_it_is_saved(operator, order):
    draft = {"name": "order", "version": 1, "tasks": [simple("walk")]}
    DefinitionDraft.objects.create(kind="workflow", name="order", author="olga", text=json.dumps(draft), updated_at=1)

    page = try_out(operator, order, "?draft")

    assert "This tests your draft" in page_text(page)
    assert [moment.name for moment in page.context["report"].attempts] == ["walk"]


def test_a_new_definition_is_tested_before_it_is_saved(operator, order):
    start_run_of(simple("charge"), name="order", input={"secret": "of another"})
    draft = {"name": "order", "version": 1, "inputParameters": ["way"], "tasks": [simple("walk")]}
    draft["outputParameters"] = {"went": "${workflow.input.way}"}

    answer = operator.post(f"{WORKFLOWS}add/", {"document": json.dumps(draft), "step": "test"})
    shown = operator.get(answer.url)
    page = operator.post(answer.url, {"mode": "form", "input.way": "home", "answer.walk": "json", "output.walk": "{}"})

    assert answer.url == f"{WORKFLOWS}test/" and 'name="input.way"' in html(shown)
    assert "of another" not in html(shown), "the runs of an older definition of this name are not those of the draft"
    assert page.context["report"].output == {"went": "home"} and "This tests your draft" in page_text(page)
    assert "Save as a test case" not in page_text(page) and "Back to the editor" in page_text(page)


def test_a_draft_that_cannot_run_says_which_step_lacks_what(operator, db):
    loop = step_of("DO_WHILE", "again", loopOver=[], loopCondition="false")
    document = {"name": "new", "version": 1, "tasks": [loop], "schemaVersion": 2, "ownerEmail": "a@acme.io"}
    DefinitionDraft.objects.create(kind="workflow", name="", author="olga", text=json.dumps(document), updated_at=0)

    page = operator.post(f"{WORKFLOWS}test/", {"input": "{}"})

    assert "again: The loop has no steps yet. Add one inside it." in page_text(page)


def test_a_new_definition_without_a_draft_leads_to_the_editor(operator, viewer, db):
    assert operator.get(f"{WORKFLOWS}test/").url == f"{WORKFLOWS}add/"
    assert viewer.get(f"{WORKFLOWS}test/").status_code == 403


def test_a_case_is_saved_offered_again_and_deleted(operator, order):
    answer = try_out(operator, order, step="keep", case_name="by air", **AIR)
    assert answer.status_code == 302

    case = SimulationCase.objects.get()
    assert case.expected == {"status": "COMPLETED", "path": ["charge", "route", "fly"], "output": {"by": "A320"}}
    offered = operator.get(address(order, "?case=by air")).context["trial"]
    assert {each.ref: each for each in offered.steps}["fly"].output.document == {"plane": "A320"}

    operator.post(address(order), {"delete_case": "by air"})
    assert not SimulationCase.objects.exists()


def test_a_test_case_without_a_name_is_not_saved(operator, order):
    assert "Enter a name for the case" in page_text(try_out(operator, order, step="keep", case_name=" ", **AIR))


def test_test_cases_are_run_before_a_change_is_saved(operator, order):
    try_out(operator, order, step="keep", case_name="by air", **AIR)
    changed = {**order.document, "tasks": [simple("charge"), {**ROUTE, "decisionCases": {"sea": [simple("fly")]}}]}

    edit = f"{WORKFLOWS}{order.pk}/edit/"
    worse = page_text(operator.post(edit, {"document": json.dumps(changed), "step": "review"}))
    same = page_text(operator.post(edit, {"document": json.dumps(order.document), "step": "review"}))

    assert "differs by air path charge → route → drive instead of charge → route → fly" in worse
    assert "unchanged by air" in same


@pytest.mark.slow
def test_an_endless_loop_is_stopped(operator, clock, monkeypatch):
    monkeypatch.setattr("conductor_app.definitions.simulation.commands.MAX_SECONDS", 0.5)
    endless = step_of("DO_WHILE", "l", loopCondition="true", loopOver=[noop("n")])
    define_workflow("order", endless)
    row = WorkflowDefinition.objects.get(name="order")

    assert "takes too long" in page_text(try_out(operator, row))


def test_a_simulation_requires_permission_to_edit_or_start(viewer, order):
    assert viewer.get(address(order)).status_code == 403
    assert try_out(viewer, order).status_code == 403
    assert "Test" not in page_text(viewer.get(f"{WORKFLOWS}{order.pk}/change/"))


def test_the_page_takes_few_queries(operator, order, django_assert_max_num_queries):
    start_run_of(simple("charge"), ROUTE, name="order")

    # Two of them read the permissions of the user, which a process caches for a second.
    with django_assert_max_num_queries(17):
        try_out(operator, order, **AIR)


def kept_by_rule(operator, order, rule="block"):
    """Save a test case and the rule that applies when it fails."""
    try_out(operator, order, step="keep", case_name="by air", **AIR)
    operator.post(address(order), {"step": "rule", "cases_hold": rule})


@pytest.mark.parametrize(("rule", "versions"), [("block", 1), ("warn", 2)])
def test_a_failing_test_case_blocks_saving_or_warns(operator, order, rule, versions):
    kept_by_rule(operator, order, rule)
    changed = {**order.document, "outputParameters": {"by": "a ship"}}
    edit = f"{WORKFLOWS}{order.pk}/edit/"

    review = page_text(operator.post(edit, {"document": json.dumps(changed), "step": "review"}))
    answer = operator.post(edit, {"document": json.dumps(changed)})

    assert "differs by air the output differs" in review
    assert ("cannot be saved" in review) == (rule == "block")
    assert WorkflowDefinition.objects.filter(name="order").count() == versions
    if rule == "block":
        assert "order cannot be saved while its case 'by air' fails" in page_text(answer)


def test_a_client_is_blocked_by_failing_test_cases_and_learns_which(operator, order, client):
    kept_by_rule(operator, order)
    changed = {**order.document, "outputParameters": {}}

    answer = client.post("/api/metadata/workflow", json.dumps({**changed, "version": 2}), "application/json")

    assert answer.status_code == 409 and "by air" in answer.json()["message"]
    same = client.put("/api/metadata/workflow", json.dumps([order.document]), "application/json")
    assert same.status_code == 200 and "order" in str(same.json())


def test_a_user_without_edit_permission_cannot_set_the_rule(order):
    assert (
        client_with(role="WORKFLOW_MANAGER").post(address(order), {"step": "rule", "cases_hold": "block"}).status_code
        == 403
    )


@pytest.fixture
def shop(order):
    """Return a workflow that places an order in a sub-workflow."""
    inner = sub_workflow("ordering", "order", version=1)
    define_workflow("shop", inner, outputParameters={"by": "${ordering.output.by}"})
    return WorkflowDefinition.objects.get(name="shop")


def test_a_sub_workflow_is_simulated_with_mock_results_of_its_steps(operator, shop):
    offered = operator.get(address(shop)).context["trial"].steps
    assert [(each.ref, each.how) for each in offered][:2] == [("ordering", "played"), ("ordering>charge", "gives")]

    page = operator.post(
        address(shop),
        {
            "input": "{}",
            "how.ordering": "played",
            "output.ordering>charge": '{"way": "air"}',
            "output.ordering>fly": '{"plane": "A380"}',
        },
    )

    report = page.context["report"]
    assert (report.status, report.output) == ("COMPLETED", {"by": "A380"})
    assert [moment.name for moment in report.attempts[0].inner] == ["charge", "route", "fly"]
    [(way, name, inside)] = page.context["inner_pictures"]
    assert (way, name) == ("ordering", "order")
    assert {node.ref for node in inside.nodes if node.mark} == {"charge", "route", "fly"}


def test_a_step_of_a_sub_workflow_can_fail_and_a_test_case_stores_that(operator, shop):
    said = {"input": "{}", "how.ordering": "played", "how.ordering>charge": "fails_for_good"}

    report = operator.post(address(shop), said).context["report"]
    assert report.status == "FAILED"

    operator.post(address(shop), {**said, "step": "keep", "case_name": "no money"})
    offered = operator.get(address(shop, "?case=no money")).context["trial"].steps
    assert {each.ref: each.how for each in offered}["ordering>charge"] == "fails_for_good"


def test_a_test_case_ignores_ids_of_its_simulation(operator, shop):
    document = {name: value for name, value in shop.document.items() if name != "outputParameters"}
    WorkflowDefinition.objects.filter(pk=shop.pk).update(document=document)
    said = {"input": "{}", "how.ordering": "played", "step": "keep", "case_name": "any"}
    operator.post(address(shop), said)

    review = page_text(
        operator.post(f"{WORKFLOWS}{shop.pk}/edit/", {"document": json.dumps(document), "step": "review"})
    )

    assert "subWorkflowId" in str(SimulationCase.objects.get().expected)
    assert "unchanged any" in review


def test_branches_of_a_dynamic_fork_are_drawn_and_blocking_steps_named(operator, clock):
    fan = step_of("FORK_JOIN_DYNAMIC", "fan", inputParameters={"forkTaskName": "pick", "forkTaskInputs": [{}, {}]})
    define_workflow("pick_all", fan, join("all", []))
    row = WorkflowDefinition.objects.get(name="pick_all")

    stopped = operator.post(address(row), {"input": "{}", "how.fan": "stays"})
    ended = operator.post(address(row), {"input": "{}", "how.fan": "fails", "times.fan": "0", "output.fan": '{"n": 1}'})

    for page, note in ((stopped, "2 active"), (ended, "2 completed")):
        branch_steps = next(node for node in page.context["picture"].nodes if node.shape == "many")
        assert (branch_steps.title, branch_steps.subtitle) == ("2 branches", note)
    assert "these tasks have no mock result: _pick_0 _pick_1" in page_text(stopped)
    assert ended.context["report"].status == "COMPLETED"
    assert [moment.output for moment in ended.context["report"].attempts if moment.name == "_pick_1"] == [{"n": 1}]


def test_a_recursive_sub_workflow_is_offered_to_a_limited_depth(operator, clock):
    define_workflow("again", sub_workflow("self", "again", version=1))
    row = WorkflowDefinition.objects.get(name="again")

    refs = [each.ref for each in operator.get(address(row)).context["trial"].steps]

    assert refs == ["self", "self>self", "self>self>self", "self>self>self>self"]
    assert try_out(operator, row, how__self="played").context["report"].status == "COMPLETED"


def test_an_inline_definition_is_offered_and_simulated_with_its_own_input(operator, clock):
    child = {
        "name": "child",
        "tasks": [simple("pick", inputParameters={"q": "${workflow.input.q}"})],
        "outputParameters": {"q": "${workflow.input.q}", "got": "${pick.output.got}"},
    }
    param = {"name": "child", "version": 1, "workflowDefinition": child}
    given = step_of("SUB_WORKFLOW", "s", subWorkflowParam=param, inputParameters={"q": "the child's"})
    define_workflow("holds", given, outputParameters={"q": "${s.output.q}", "got": "${s.output.got}"})
    row = WorkflowDefinition.objects.get(name="holds")

    said = {"how.s": "played", "output.s>pick": '{"got": 3}'}
    report = operator.post(address(row), {"input": '{"q": "the parent\'s"}', **said}).context["report"]

    assert (report.status, report.output) == ("COMPLETED", {"q": "the child's", "got": 3})


def test_a_workflow_defined_by_an_expression_offers_no_steps(operator, order):
    param = {"name": "order", "version": 1, "workflowDefinition": "${workflow.input.plan}"}
    define_workflow("asks", step_of("SUB_WORKFLOW", "s", subWorkflowParam=param))
    row = WorkflowDefinition.objects.get(name="asks")

    assert [each.ref for each in operator.get(address(row)).context["trial"].steps] == ["s"]
