"""The canvas of the workflow editor: forms and buttons edit the text of the draft, with and without a script."""

import json
import re

import pytest

from conductor_app.core.step_types import STEP_TYPES
from conductor_app.definitions.models import DefinitionDraft, WorkflowDefinition
from conductor_app.definitions.policies import type_label
from tests.access.users import client_with
from tests.builders import catch, fork, human, loop, simple, step_of, switch, try_
from tests.page_text import html, page_text
from tests.scenario import define_task, define_workflow

WORKFLOWS = "/admin/conductor/workflowdefinition/"
SHIP = simple("ship", inputParameters={"receipt": "${charge.output.receipt}", "count": 3})
pytestmark = pytest.mark.django_db


@pytest.fixture
def order(clock):
    define_workflow("order", simple("charge"), SHIP)
    return WorkflowDefinition.objects.get(name="order")


def text(*tasks, **fields) -> str:
    return json.dumps({"name": "order", "ownerEmail": "a@example.com", "tasks": list(tasks), **fields})


def post(client, document, action, *, at="", **fields) -> dict:
    """Send an action of the canvas and return the answer, with the new document as `after`."""
    answer = client.post(f"{WORKFLOWS}canvas/", {"document": document, "canvas": action, "at": at, **fields}).json()
    return {**answer, "after": json.loads(answer.get("document", document))}


def page_text_of(part: str) -> str:
    """Return the text of a part of a page."""
    return " ".join(re.sub(r"<[^>]*>", " ", part).split())


def fields_of(client, document, at, panel="step") -> dict[str, str]:
    """Return the fields of the form in the panel, as a browser would submit them."""
    from html.parser import HTMLParser

    found: dict[str, str] = {}

    class Reader(HTMLParser):
        name = ""

        def handle_starttag(self, tag, attributes):
            values = dict(attributes)
            name = values.get("name", "")
            if tag == "input" and (values.get("type") != "checkbox" or "checked" in values):
                found[name] = values.get("value", "on")
            elif tag in ("textarea", "select"):
                self.name = name
                found[name] = ""
            elif tag == "option" and "selected" in values:
                found[self.name] = values["value"]

        def handle_data(self, data):
            if self.name and self.get_starttag_text().startswith("<textarea"):
                found[self.name] = found.get(self.name, "") + data

        def handle_endtag(self, tag):
            if tag == "textarea":
                self.name = ""

    Reader().feed(post(client, document, f"show:{at}")["panel"])
    assert found["panel"] == panel
    return {name: value for name, value in found.items() if name and not name.endswith("_path")}


def apply(client, document, at, action="keep", panel="step", **changes) -> dict:
    """Submit the form of a step with some fields changed."""
    fields = {**fields_of(client, document, at, panel), **changes}
    return post(client, document, action, **{**fields, "at": at})


ALL_KINDS = text(
    simple("charge"),
    SHIP,
    switch("route", {"a": [simple("x")], "b": []}),
    *fork([simple("left")], [human("ask")], ref="both"),
    loop("again", simple("try_it"), times=3),
    {
        "name": "call",
        "taskReferenceName": "call",
        "type": "HTTP",
        "description": "",
        "inputParameters": {"http_request": {"uri": "https://x", "method": "POST", "body": {"a": [1, "2", None]}}},
        "taskDefinition": {"name": "call", "retryCount": 2, "inputKeys": ["x"]},
        "startDelay": 0,
    },
    {"name": "w", "taskReferenceName": "w", "type": "WAIT", "inputParameters": {"duration": "3"}},
    {"name": "s", "taskReferenceName": "s", "type": "SUB_WORKFLOW", "subWorkflowParam": {"name": "c", "version": 2}},
    {"name": "own", "taskReferenceName": "own", "type": "OWN", "inputParameters": {"t": "true", "n": 1.5, "o": "{x"}},
    outputParameters={"result": "${ship.output.id}", "also": ["a"]},
    inputParameters=["a", "b"],
)


def test_a_form_that_is_applied_unchanged_changes_nothing(operator):
    from conductor_app.core.definition import walk

    for path in ["", *(spot.path for spot in walk(json.loads(ALL_KINDS)["tasks"]))]:
        answer = apply(operator, ALL_KINDS, path, panel="step" if path else "settings")
        assert (answer["after"], answer["is_refused"]) == (json.loads(ALL_KINDS), False), path


@pytest.mark.parametrize(
    "broken",
    [
        {"inputParameters": "${workflow.input}"},
        {"retryCount": "3", "taskDefinition": 7, "optional": "yes"},
        {"type": "SWITCH", "evaluatorType": "ecmascript", "expression": "\n$.a\n  ? 1 : 2", "decisionCases": []},
        {"type": "HUMAN", "inputParameters": {"__humanTaskDefinition": {"jsonSchema": {"properties": {}}}}},
        {"type": "JOIN", "joinOn": "a"},
        {"description": "two\nlines"},
    ],
    ids=str,
)
def test_values_that_the_form_cannot_show_are_kept(operator, broken):
    document = text({**simple("a"), **broken}, outputParameters=["x"])

    for path in ("tasks[0]", ""):
        answer = apply(operator, document, path, panel="step" if path else "settings")
        assert answer["after"] == json.loads(document), answer["message"]


def test_a_form_of_a_hundred_fields_is_not_designed_on_the_canvas(operator):
    schema = {"properties": {f"f{number}": {"type": "string"} for number in range(100)}}
    document = text(human("ask", inputs={"__humanTaskDefinition": {"jsonSchema": schema}}))

    assert apply(operator, document, "tasks[0]")["after"] == json.loads(document)


def test_the_assignees_of_a_human_task_are_edited_in_their_order(operator):
    sales = {"assignee": {"userType": "CONDUCTOR_GROUP", "user": "sales"}, "slaMinutes": 30}
    question = {"displayName": "Approve", "assignments": [sales]}
    document = text(human("ask", inputs={"__humanTaskDefinition": question}))

    unchanged = apply(operator, document, "tasks[0]")
    added = apply(operator, document, "tasks[0]", **{"assignee.1.who": "ann"})
    wrong = apply(operator, document, "tasks[0]", **{"assignee.0.minutes": "soon"})
    removed = apply(operator, document, "tasks[0]", **{"assignee.0.who": ""})

    assert unchanged["after"] == json.loads(document)
    ann = {"assignee": {"userType": "CONDUCTOR_USER", "user": "ann"}, "slaMinutes": 0}
    assert added["after"]["tasks"][0]["inputParameters"]["__humanTaskDefinition"]["assignments"] == [sales, ann]
    assert "Enter a whole number of minutes." in wrong["panel"] and wrong["is_refused"]
    assert removed["after"]["tasks"][0]["inputParameters"]["__humanTaskDefinition"]["assignments"] == []


def test_a_step_is_edited_in_a_form(operator):
    changes = {
        "step.name": "ship_it",
        "step.description": "Ships",
        "input.0.value": "${charge.output.id}",
        "input.1.value": "7",
        "input.2.name": "to",
        "input.2.value": '{"city": "Oslo"}',
        "step.optional": "true",
        "step.startDelay": "5",
    }

    edited = apply(operator, text(simple("charge"), SHIP), "tasks[1]", **changes)["after"]["tasks"][1]

    assert edited == {
        "name": "ship_it",
        "taskReferenceName": "ship",
        "type": "SIMPLE",
        "inputParameters": {"receipt": "${charge.output.id}", "count": 7, "to": {"city": "Oslo"}},
        "description": "Ships",
        "optional": True,
        "startDelay": 5,
    }


def test_a_renamed_step_keeps_its_readers(operator):
    after = apply(operator, text(simple("charge"), SHIP), "tasks[0]", **{"step.taskReferenceName": "pay"})["after"]

    assert after["tasks"][0]["taskReferenceName"] == "pay"
    assert after["tasks"][1]["inputParameters"]["receipt"] == "${pay.output.receipt}"


@pytest.mark.parametrize(
    ("name", "changes", "ref"),
    [
        ("my_task", {"step.name": "reserve"}, "reserve"),
        ("my_task", {"step.name": "reserve", "step.taskReferenceName": "first"}, "first"),
        ("my_task", {"step.name": "ship"}, "my_task"),
        ("charge", {"step.name": "reserve"}, "charge"),
    ],
)
def test_a_new_worker_task_is_named_by_its_task_until_it_has_a_reference(operator, name, changes, ref):
    after = apply(operator, text(simple(name), SHIP), "tasks[0]", **changes)["after"]

    assert (after["tasks"][0]["name"], after["tasks"][0]["taskReferenceName"]) == (changes["step.name"], ref)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step.taskReferenceName": "charge"}, "is used by another step"),
        ({"input.0.value": '{"half":\n 1'}, "Not valid JSON at line 2, column 3"),
        ({"input.1.name": "receipt"}, "used twice"),
        ({"input.2.value": "lost"}, "Enter a name"),
        ({"step.startDelay": "soon"}, "Enter a whole number"),
        ({"policy.retryCount": "-1"}, "Enter a whole number"),
    ],
)
def test_a_wrong_value_is_reported_at_its_field_and_changes_nothing(operator, changes, message):
    document = text(simple("charge"), SHIP)

    answer = apply(operator, document, "tasks[1]", **changes)

    assert message in answer["panel"].replace("&#x27;", "'") and answer["is_refused"]
    assert answer["after"] == json.loads(document)


def test_the_policy_of_a_step_begins_with_its_task_definition_and_is_drawn(operator):
    define_task("charge", retryCount=1, retryDelaySeconds=10, responseTimeoutSeconds=30)
    document = text(simple("charge"))

    answer = apply(operator, document, "tasks[0]", **{"policy.retryCount": "4"})

    policy = {"name": "charge", "retryCount": 4, "retryDelaySeconds": 10, "responseTimeoutSeconds": 30}
    assert answer["after"]["tasks"][0]["taskDefinition"].items() >= policy.items()
    assert "5 attempts, retried after 10.0 s" in answer["panel"]
    assert "2 attempts" in post(operator, document, "show:tasks[0]")["panel"]


def test_http_headers_are_rows_that_can_be_added_changed_and_removed(operator):
    calls = text(step_of("HTTP", "call", inputParameters={"uri": "https://example.com", "headers": {"Accept": "a/b"}}))
    names = "rows.inputParameters.headers"
    form = fields_of(operator, calls, "tasks[0]")

    added = {f"{names}.1.name": "X-Order", f"{names}.1.value": "${workflow.input.order}"}
    answer = apply(operator, calls, "tasks[0]", **added)
    removed = apply(operator, answer["document"], "tasks[0]", **{f"{names}.0.name": "", f"{names}.0.value": ""})
    twice = apply(operator, calls, "tasks[0]", **{f"{names}.1.name": "Accept"})

    assert form[f"{names}.0.name"] == "Accept" and "Add a row" in page_text_of(answer["panel"])
    assert answer["after"]["tasks"][0]["inputParameters"]["headers"] == {
        "Accept": "a/b",
        "X-Order": "${workflow.input.order}",
    }
    assert removed["after"]["tasks"][0]["inputParameters"]["headers"] == {"X-Order": "${workflow.input.order}"}
    assert twice["is_refused"] and "This name is used twice." in twice["panel"]


def test_headers_from_an_expression_are_a_field(operator):
    calls = text(step_of("HTTP", "call", inputParameters={"uri": "x", "headers": "${workflow.input.headers}"}))
    form = fields_of(operator, calls, "tasks[0]")

    answer = apply(operator, calls, "tasks[0]", **{"step.inputParameters.headers": '{"A": "b"}'})

    assert form["step.inputParameters.headers"] == "${workflow.input.headers}"
    assert answer["after"]["tasks"][0]["inputParameters"]["headers"] == {"A": "b"}


def test_steps_are_named_by_what_they_do(operator):
    document = text(
        *fork([simple("a")], [step_of("HTTP", "b", inputParameters={"uri": "x", "method": "GET"})], ref="f")
    )
    panel = post(operator, document, "show:tasks[0]")["panel"]

    assert "f Fork" in page_text_of(panel) and "FORK_JOIN" not in page_text_of(panel)
    picture = post(operator, document, "keep")["picture"]
    assert ">Worker task</text>" in picture and "Insert a step first in f › branch 2" in page_text_of(picture)
    assert {type_label(type) for type in STEP_TYPES} >= {"Worker task", "Fork", "Loop", "HTTP request"}
    assert all(each.label for each in STEP_TYPES.values())


def test_no_two_places_to_move_a_step_to_have_the_same_name(operator):
    twins = [simple("a"), *fork([], [], ref="f"), simple("a"), loop("l", simple("m"))]
    panel = post(operator, text(*twins), "show:tasks[0]")["panel"]

    menu = panel.partition('name="move_path"')[2].partition("</select>")[0]
    labels = re.findall(r"<option[^>]*>([^<]*)</option>", menu)
    assert "first in f › branch 1" in labels and "first in f › branch 2" in labels
    assert len(labels) == len(set(labels))


def test_cases_branches_and_iterations_are_edited_in_the_form(operator):
    document = text(
        switch("route", {"a": [simple("x")], "b": []}), *fork([simple("l")], [], ref="f"), loop("again", simple("y"))
    )

    cases = apply(operator, document, "tasks[0]", **{"case.0.name": "air", "case.1.name": "", "case.2.name": "sea"})
    branches = apply(operator, document, "tasks[1]", **{"step.branches": "4"})
    fewer = apply(operator, document, "tasks[1]", **{"step.branches": "1"})
    times = apply(operator, document, "tasks[3]", **{"step.times": "5"})

    assert cases["after"]["tasks"][0]["decisionCases"] == {"air": [simple("x")], "sea": []}
    assert branches["after"]["tasks"][1]["forkTasks"] == [[simple("l")], [], [], []]
    assert fewer["after"]["tasks"][1]["forkTasks"] == [[simple("l")]]
    assert times["after"]["tasks"][3]["loopCondition"] == "if ($.again['iteration'] < 5) { true; } else { false; }"


TRY = try_(
    "paid",
    simple("charge"),
    on=[catch(simple("notify"), status="TIMED_OUT", taskRef=["charge"]), {"match": {}, "tasks": []}],
)


def test_the_failures_that_a_handler_handles_are_edited_in_the_form(operator):
    document = text(TRY)

    unchanged = apply(operator, document, "tasks[0]", **{"step.description": ""})["after"]["tasks"][0]
    changes = {
        "handler.0.status": "TIMED_OUT, FAILED",
        "handler.0.taskRef": "",
        "handler.1.remove": "on",
        "handler.2.reason": "card .* refused",
    }
    changed = apply(operator, document, "tasks[0]", **changes)["after"]["tasks"][0]

    assert unchanged["catchCases"] == TRY["catchCases"]
    assert changed["catchCases"] == [
        {"match": {"status": ["TIMED_OUT", "FAILED"]}, "tasks": [simple("notify")]},
        {"match": {"reason": "card .* refused"}, "tasks": []},
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"handler.0.remove": "on"}, "Delete the steps of the handler first."),
        ({"handler.0.status": "LATE"}, "LATE"),
        ({"handler.0.taskRef": "chrage"}, "chrage"),
        ({"handler.2.reason": "("}, "reason"),
    ],
)
def test_a_handler_with_errors_changes_nothing(operator, changes, message):
    answer = apply(operator, text(TRY), "tasks[0]", **changes)

    assert answer["is_refused"] and answer["after"] == json.loads(text(TRY))
    assert message in re.search(r'class="handler-row">.*errornote">([^<]*)<', answer["panel"], re.DOTALL)[1]


def test_a_case_or_a_branch_with_steps_is_not_removed(operator):
    document = text(switch("route", {"a": [simple("x")]}), *fork([simple("l")], [simple("r")], ref="f"))

    assert (
        "Delete the steps of the case a first" in apply(operator, document, "tasks[0]", **{"case.0.name": ""})["panel"]
    )
    assert "Delete the steps of a branch" in apply(operator, document, "tasks[1]", **{"step.branches": "1"})["panel"]


def test_a_step_is_added_where_the_plus_of_the_diagram_stands(operator):
    document = text(*fork([simple("l")], [simple("r")], ref="f"))
    shown = post(operator, document, "pick:tasks[0].forkTasks[0][1]")

    answer = post(operator, document, "add:HTTP", place="tasks[0].forkTasks[0][1]")

    assert 'value="add:DO_WHILE"' in shown["panel"] and "after l" in shown["panel"]
    assert [each["type"] for each in answer["after"]["tasks"][0]["forkTasks"][0]] == ["SIMPLE", "HTTP"]
    assert answer["after"]["tasks"][1]["joinOn"] == ["http", "r"] and answer["at"] == "tasks[0].forkTasks[0][1]"
    assert 'data-insert="tasks[0].forkTasks[0][2]"' in answer["picture"]


def test_every_type_of_the_list_is_added_and_has_a_form(operator):
    from conductor_app.definitions.editor.step_catalog import catalog

    for entry in catalog().values():
        answer = post(operator, text(simple("a")), f"add:{entry.type}", place="tasks[1]")
        assert answer["after"]["tasks"][1]["type"] == entry.type and 'name="panel" value="step"' in answer["panel"]


def test_a_step_is_moved_wrapped_and_deleted(operator):
    document = text(simple("charge"), SHIP, outputParameters={"receipt": "${ship.output.receipt}"})

    moved = apply(operator, document, "tasks[1]", "move:up")
    wrapped = apply(operator, document, "tasks[1]", "wrap:loop")
    deleted = apply(operator, document, "tasks[1]", "delete")

    assert [each["taskReferenceName"] for each in moved["after"]["tasks"]] == ["ship", "charge"]
    assert wrapped["after"]["tasks"][1]["loopOver"] == [SHIP] and wrapped["at"] == "tasks[1]"
    assert deleted["after"]["tasks"] == [simple("charge")] and deleted["after"]["outputParameters"] == {}
    assert "ship deleted. 1 value that read its output was removed: outputParameters.receipt." in deleted["message"]


def test_a_deleted_join_takes_its_fork_along_and_both_are_named(operator):
    answer = post(operator, text(*fork([simple("l")], [], ref="f"), simple("a")), "delete", at="tasks[1]")

    assert answer["after"]["tasks"] == [simple("a")] and answer["message"] == "f, join deleted."


def test_a_fork_is_moved_over_its_neighbors(operator):
    document = text(simple("a"), *fork([simple("l")], [], ref="f"), *fork([simple("r")], [], ref="g", join="h"))

    down = post(operator, document, "move:down", at="tasks[1]")["after"]
    up = post(operator, document, "move:up", at="tasks[1]")["after"]

    assert [each["taskReferenceName"] for each in down["tasks"]] == ["a", "g", "h", "f", "join"]
    assert [each["taskReferenceName"] for each in up["tasks"]] == ["f", "join", "a", "g", "h"]


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("add:HTTP", {"place": "tasks[9]"}),
        ("add:NONE", {"place": "tasks[0]"}),
        ("delete", {"at": "tasks[4]"}),
        ("wrap:box", {"at": "tasks[0]"}),
        ("move:down", {"at": "tasks[0]"}),
        ("move:up", {"at": ""}),
        ("show:nothing", {}),
    ],
)
def test_an_impossible_action_changes_nothing_and_says_why(operator, action, fields):
    answer = post(operator, text(simple("a")), action, **fields)

    assert answer["is_refused"] and answer["message"] and "document" not in answer


def test_an_unknown_action_is_ignored(operator):
    assert "document" not in post(operator, text(simple("a")), "dance:now")


def test_text_that_is_not_json_is_not_edited(operator):
    answer = operator.post(f"{WORKFLOWS}canvas/", {"document": '{"half', "canvas": "add:HTTP", "place": "tasks[0]"})

    assert answer.status_code == 422 and "not valid JSON" in answer.json()["message"]


def test_a_document_that_is_nested_too_deeply_is_edited_as_json(operator, order):
    value = 7
    for _ in range(400):
        value = [value]
    document = text({**simple("a"), "inputParameters": {"deep": value}})

    answer = operator.post(f"{WORKFLOWS}canvas/", {"document": document, "canvas": "delete", "at": "tasks[0]"})
    page = operator.post(f"{WORKFLOWS}{order.pk}/edit/", {"document": document, "canvas": "delete", "at": "tasks[0]"})

    assert answer.status_code == 422 and "nested too deeply" in answer.json()["message"]
    assert page.status_code == 200 and "nested too deeply" in page_text(page)


def test_the_settings_of_the_workflow_are_edited_in_a_form(operator):
    changes = {
        "step.name": "invoice",
        "step.inputParameters": "a, c",
        "output.0.name": "total",
        "output.0.value": "${charge.output.total}",
    }

    after = apply(operator, text(simple("charge")), "", panel="settings", **changes)["after"]

    assert after["name"] == "invoice" and after["inputParameters"] == ["a", "c"]
    assert after["outputParameters"] == {"total": "${charge.output.total}"}


@pytest.mark.parametrize(("path", "panel"), [("", "settings"), ("tasks[0]", "step")])
def test_a_fairness_key_and_its_weight_are_edited_in_a_form(operator, path, panel):
    changes = {"step.fairnessKey": "${workflow.input.tenant}", "step.fairnessWeight": "2.5"}

    after = apply(operator, text(simple("charge")), path, panel=panel, **changes)["after"]

    edited = after["tasks"][0] if path else after
    assert (edited["fairnessKey"], edited["fairnessWeight"]) == ("${workflow.input.tenant}", 2.5)


def test_the_name_of_an_existing_definition_is_not_edited(operator):
    changes = {"step.name": "invoice", "is_named": "yes"}

    assert apply(operator, text(simple("a")), "", panel="settings", **changes)["after"]["name"] == "order"


def test_expressions_for_inputs_are_those_of_earlier_steps(operator):
    define_task("charge", outputKeys=["receipt"])
    document = text(simple("charge"), SHIP, simple("late"), inputParameters=["order"])

    panel = post(operator, document, "show:tasks[1]")["panel"]

    assert '<option value="${charge.output.receipt}">' in panel and '<option value="${workflow.input.order}">' in panel
    assert "${late.output}" not in panel and "${ship.output}" not in panel


def test_findings_are_shown_at_their_steps(operator):
    wrong = simple("ship", inputParameters={"receipt": "${chrage.output.receipt}"})
    document = text(simple("charge"), loop("again", wrong, times=2))

    answer = post(operator, document, "show:tasks[1].loopOver[0]")

    [mark] = [use for use in answer["picture"].split("<use ")[1:] if "diagram-finding" in use]
    assert 'data-finding="tasks[1].loopOver[0]"' in mark and 'class="diagram-finding waiting"' in mark
    assert "ship: There is no step chrage" in mark and "There is no step" in answer["panel"]


def test_an_action_takes_few_queries(operator, django_assert_max_num_queries):
    define_task("charge")
    with django_assert_max_num_queries(15):
        post(operator, text(simple("charge"), SHIP), "show:tasks[0]")
    with django_assert_max_num_queries(15):
        post(operator, text(simple("charge"), SHIP), "wrap:loop", at="tasks[0]")


def test_the_canvas_requires_the_permission_to_edit(viewer, operator):
    document = {"document": text(simple("a")), "canvas": "delete", "at": "tasks[0]"}

    assert viewer.post(f"{WORKFLOWS}canvas/", document).status_code == 403
    assert operator.get(f"{WORKFLOWS}canvas/").status_code == 405
    assert client_with("change_workflowdefinition").post(f"{WORKFLOWS}canvas/", document).status_code == 200


# Without a script -----------------------------------------------------------------------------------------------------


def test_without_a_script_the_page_applies_the_action_and_keeps_the_draft(operator, order):
    address = f"{WORKFLOWS}{order.pk}/edit/"
    fields = {"document": text(simple("charge"), SHIP), "base": "r1n1"}

    picked = operator.post(address, {**fields, "canvas": "pick", "place_path": "tasks[2]"})
    added = operator.post(address, {**fields, "canvas": "add:WAIT", "place": "tasks[2]"})

    assert "Add a step after ship" in page_text(picked)
    assert "Wait added." in page_text(added) and "step.taskReferenceName" in html(added)
    assert json.loads(DefinitionDraft.objects.get().text)["tasks"][2]["type"] == "WAIT"
    assert WorkflowDefinition.objects.count() == 1


def test_the_address_selects_a_step_whose_box_was_clicked_before_the_script_was_there(operator, order):
    page = operator.get(f"{WORKFLOWS}{order.pk}/edit/?task=ship")
    unknown = operator.get(f"{WORKFLOWS}{order.pk}/edit/?task=gone")

    assert page.context["panel"] == "step" and page.context["state"].at == "tasks[1]"
    assert unknown.context["panel"] == "settings"


def test_without_a_script_invalid_text_stays_as_it_is(operator, order):
    page = operator.post(f"{WORKFLOWS}{order.pk}/edit/", {"document": '{"half', "canvas": "add:WAIT"})

    assert page.status_code == 200 and "{&quot;half" in html(page)


def test_other_editors_have_no_canvas(operator):
    define_task("charge")

    assert (
        operator.post("/admin/conductor/taskdefinition/add/", {"document": "{}", "canvas": "keep"}).status_code == 404
    )


def test_the_places_of_the_branches_of_a_fork_have_different_names(operator, order):
    document = text(*fork([simple("a")], [simple("b")], ref="both"), simple("ship"))

    panel = post(operator, document, "select", at="tasks[2]")["panel"]

    places = re.findall(r"<option[^>]*>\s*([^<]*first in both[^<]*?)\s*</option>", panel)
    assert places == ["first in both › branch 1", "first in both › branch 2"]


def test_choices_of_the_api_are_words_in_the_form(operator):
    panel = post(operator, text(simple("a")), "show:")["panel"]

    assert '<option value="TIME_OUT_WF">Time out the run</option>' in panel
    assert "ALERT_ONLY" not in page_text_of(panel)


@pytest.mark.parametrize(
    ("step", "field", "options"),
    [
        (step_of("TERMINATE", "end"), "inputParameters.terminationStatus", ["Completed", "Failed", "Terminated"]),
        (
            step_of("UPDATE_TASK", "u"),
            "inputParameters.taskStatus",
            ["Completed", "Failed", "Failed, without another attempt"],
        ),
        (
            step_of("FOR_EACH", "f"),
            "inputParameters.onItemFailure",
            ["The step fails, and the other items are canceled", "The other items continue"],
        ),
        (
            step_of("INLINE", "i"),
            "inputParameters.evaluatorType",
            ["Value of an input", "JavaScript", "JavaScript (graaljs)", "Python"],
        ),
    ],
)
def test_the_choices_of_a_step_are_words_and_an_expression_stays(operator, step, field, options):
    panel = post(operator, text(step), "show:tasks[0]")["panel"]
    menu = panel[panel.index(f'<select name="step.{field}"') :].partition("</select>")[0]
    assert re.findall(r"<option[^>]*>([^<]*)</option>", menu) == ["–", *options]

    name = field.rpartition(".")[2]
    document = text({**step, "inputParameters": {name: "${workflow.input.way}"}})
    assert apply(operator, document, "tasks[0]")["after"] == json.loads(document)


def test_an_empty_choice_of_a_policy_names_what_applies(operator, clock):
    define_task("a", retryLogic="EXPONENTIAL_BACKOFF")
    panel = post(operator, text(simple("a")), "show:tasks[0]")["panel"]

    assert '<option value="">Exponential</option>' in panel


def test_the_keys_of_the_canvas_are_listed_in_one_place(operator, order):
    page = html(operator.get(f"{WORKFLOWS}{order.pk}/edit/"))

    menu = page_text_of(page[page.index("canvas-keys") :].partition("</details>")[0])
    assert "F2 renames the step" in menu and "Delete deletes the step" in menu
    assert page.count("F2") == 1


def test_a_switch_after_a_human_task_reads_its_answer(operator):
    asked = post(operator, text(), "add:HUMAN", place="tasks[0]")
    decided = post(operator, json.dumps(asked["after"]), "add:SWITCH", place="tasks[1]")

    assert decided["after"]["tasks"][1]["inputParameters"] == {"value": "${approval.output.approved}"}
    assert 'value="${approval.output.approved}"></option>' in decided["panel"]
    assert "No findings" in page_text_of(decided["list"])

    other = post(operator, text(simple("a")), "add:SWITCH", place="tasks[1]")
    assert other["after"]["tasks"][1]["inputParameters"] == {"value": "${workflow.input.value}"}
