"""Definitions are written as JSON, and saved through the engine."""

import json

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.core.validation.findings import HINT, NO_ADDRESS
from conductor_app.definitions.editor.checks import check_text
from conductor_app.definitions.editor.step_catalog import TEMPLATES
from conductor_app.definitions.models import TaskDefinition, WorkflowDefinition
from tests.builders import simple, wait
from tests.page_text import html, page_text
from tests.scenario import define_task, define_workflow, start_run

WORKFLOWS = "/admin/conductor/workflowdefinition/"
TASKS = "/admin/conductor/taskdefinition/"


@pytest.fixture
def order(clock, db):
    define_workflow("order", simple("ship"), description="Sends an order")
    return WorkflowDefinition.objects.get(name="order")


def document(**changes):
    return {"name": "order", "version": 1, "ownerEmail": "team@example.com", "tasks": [simple("ship")], **changes}


def base(client, row):
    """Return the revision of the definition on which a new edit is based."""
    return client.get(f"{WORKFLOWS}{row.pk}/edit/?fresh").context["form"].initial["base"]


def edit(client, row, document, save_as="new", **more):
    text = document if isinstance(document, str) else json.dumps(document)
    fields = {"document": text, "save_as": save_as, "base": base(client, row), **more}
    return client.post(f"{WORKFLOWS}{row.pk}/edit/", fields)


def test_the_list_displays_name_version_description_and_author(operator, order):
    page = page_text(operator.get(WORKFLOWS))

    assert "order v1" in page and "Sends an order" in page and "ann" in page


def test_the_page_shows_the_steps(operator, order):
    page = page_text(operator.get(f"{WORKFLOWS}{order.pk}/change/"))

    assert "Diagram" in page and "ship Worker task" in page


def test_a_new_definition_is_created_from_json(operator, clock):
    answer = operator.post(f"{WORKFLOWS}add/", {"document": json.dumps(document()), "reason": "first"})

    row = WorkflowDefinition.objects.get(name="order")
    assert answer.status_code == 302 and row.created_by == "olga"
    assert AuditEntry.objects.get(object_id="order:1").reason == "first"


def test_creating_an_existing_definition_does_not_overwrite_it(operator, order):
    page = page_text(operator.post(f"{WORKFLOWS}add/", {"document": json.dumps(document())}))

    assert "already exists" in page


def test_a_changed_document_becomes_a_new_version(operator, order):
    edit(operator, order, document(description="changed"), reason="more words")

    assert list(WorkflowDefinition.objects.values_list("version", "description")) == [
        (2, "changed"),
        (1, "Sends an order"),
    ]


def test_the_new_version_comes_after_the_newest_one(operator, order):
    define_workflow("order", simple("ship"), version=7)

    edit(operator, order, document())

    assert WorkflowDefinition.objects.filter(name="order", version=8).exists()


def test_a_version_can_be_overwritten(operator, order):
    edit(operator, order, document(description="changed"), save_as="overwrite")

    assert list(WorkflowDefinition.objects.values_list("version", "description")) == [(1, "changed")]


@pytest.mark.parametrize("save_as", ["overwrite", "new"])
def test_a_concurrent_change_is_merged_manually(operator, order, save_as):
    begun = base(operator, order)
    define_workflow("order", simple("ship"), description="by ann meanwhile")

    page = page_text(edit(operator, order, document(description="mine"), save_as=save_as, base=begun))

    assert "order was changed in the meantime" in page and "ann saved version 1" in page
    assert "by ann meanwhile" in page and "mine" in page
    assert WorkflowDefinition.objects.get(name="order").description == "by ann meanwhile"


def test_a_concurrent_newer_version_is_merged_manually(operator, order):
    begun = base(operator, order)
    define_workflow("order", simple("ship"), version=2)

    assert "ann saved version 2" in page_text(edit(operator, order, document(), base=begun))
    assert WorkflowDefinition.objects.count() == 2


def test_a_merge_is_reviewed_against_the_newest_state_and_saved(operator, order):
    begun = base(operator, order)
    define_workflow("order", simple("ship"), description="by ann meanwhile")
    merging = edit(operator, order, document(description="both"), base=begun)

    merged = {"base": merging.context["base"], "reason": "merged"}
    assert edit(operator, order, document(description="both"), **merged).status_code == 302
    assert WorkflowDefinition.objects.get(version=2).description == "both"


def test_an_edited_definition_keeps_its_name(operator, order):
    assert "The name order cannot be changed" in page_text(edit(operator, order, document(name="other")))


def test_invalid_json_is_rejected_with_line_and_column_and_preserved(operator, order):
    typed = '{\n  "name": "order",\n  "tasks": [,]\n}'

    page = html(edit(operator, order, typed))

    assert "at line 3, column 13" in page
    assert "&quot;tasks&quot;: [,]" in page


@pytest.mark.parametrize(
    ("typed", "validation_error"),
    [
        ("[1, 2]", "A definition must be a JSON object"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ("[" * 100_000, "nested too deeply"),
        ("", "This field is required"),
    ],
    ids=["list", "nan", "deep", "empty"],
)
def test_other_texts_that_are_no_definition_are_refused_by_name(operator, order, typed, validation_error):
    assert validation_error in page_text(edit(operator, order, typed))


def test_every_validation_error_is_displayed_with_its_step(operator, order):
    wrong = json.dumps(document(tasks=[simple("ship"), {"name": "x", "type": "SIMPLE"}, simple("ship")]), indent=2)

    refused = edit(operator, order, wrong)

    assert "in this definition." in page_text(refused) and "taskReferenceName" in page_text(refused)
    assert {each.owner for each in refused.context["checked"].findings} == {"tasks[1]", "workflow"}
    assert 'title="line ' in html(refused), "the line is in the tooltip"
    assert WorkflowDefinition.objects.count() == 1


def test_a_task_definition_is_created_and_changed(operator, clock):
    define_task("charge", retryCount=1)
    row = TaskDefinition.objects.get(name="charge")
    changed = {**row.document, "retryCount": 5}

    answer = operator.post(f"{TASKS}{row.pk}/edit/", {"document": json.dumps(changed)})

    assert answer.status_code == 302
    assert TaskDefinition.objects.get(name="charge").document["retryCount"] == 5


def test_the_samples_of_the_editor_are_valid(operator, clock):
    offered = operator.get(f"{TASKS}add/").context["form"].initial["document"]
    assert operator.post(f"{TASKS}add/", {"document": offered}).status_code == 302
    for count, name in enumerate(TEMPLATES):
        offered = operator.get(f"{WORKFLOWS}add/?template={name}").context["form"].initial["document"]
        findings = [each.finding for each in check_text("workflow", offered).findings]
        assert not [each for each in findings if each.severity != HINT and each.kind != NO_ADDRESS], name
        assert any(each.kind == NO_ADDRESS for each in findings) == (name == "http")
        named = json.dumps({**json.loads(offered), "name": name})
        assert operator.post(f"{WORKFLOWS}add/", {"document": named}).status_code == 302, name
        assert WorkflowDefinition.objects.count() == count + 1


def test_a_new_workflow_has_no_steps_and_offers_templates(operator, clock):
    page = operator.get(f"{WORKFLOWS}add/")
    chosen = html(operator.get(f"{WORKFLOWS}add/?template=approval"))

    assert json.loads(page.context["form"].initial["document"])["tasks"] == []
    assert "Begin with No steps One worker task Approval by a person" in page_text(page)
    assert "1 hint workflow The workflow has no steps yet. Add the first one." in page_text(page)
    assert 'data-insert="tasks[0]"' in html(page)
    assert 'href="?template=approval" aria-current' in chosen


def test_the_review_of_a_new_definition_shows_what_it_contains(operator, clock):
    new = document(tasks=[simple("ship"), wait("wait")], inputParameters=["order"], outputParameters={"by": 1})

    page = operator.post(f"{WORKFLOWS}add/", {"document": json.dumps(new), "step": "review"})
    task = operator.post(f"{TASKS}add/", {"document": '{"name": "charge"}', "step": "review"})

    assert "Inputs order Outputs by" in page_text(page)
    assert 'class="diagram-node' in html(page) and "Back to the editor" in page_text(page)
    assert 'class="diff"' not in html(page) + html(task) and "Contents" in page_text(task)


def test_unknown_fields_and_long_numbers_survive_the_editor(operator, order):
    edit(operator, order, document(custom={"n": 2**53 + 1}), save_as="overwrite")

    offered = html(operator.get(f"{WORKFLOWS}{order.pk}/edit/"))
    assert str(2**53 + 1) in offered


def test_a_viewer_may_read_but_not_edit(viewer, order):
    assert "Edit" not in page_text(viewer.get(f"{WORKFLOWS}{order.pk}/change/")).split("Diagram")[0]
    assert viewer.get(f"{WORKFLOWS}{order.pk}/edit/").status_code == 403
    assert viewer.post(f"{WORKFLOWS}add/", {"document": "{}"}).status_code == 403


def test_the_raw_document_is_downloadable(operator, order):
    assert json.loads(operator.get(f"{WORKFLOWS}{order.pk}/raw/").content)["name"] == "order"


def test_an_unknown_definition_is_not_found(operator, clock):
    assert operator.get(f"{WORKFLOWS}99/change/").status_code == 404
    assert operator.get(f"{WORKFLOWS}x/change/").status_code == 404


def test_a_fork_without_a_join_is_saved_with_a_warning_and_its_run_states_it(operator, clock):
    fork = {"name": "f", "taskReferenceName": "f", "type": "FORK_JOIN", "forkTasks": [[simple("a")], [simple("b")]]}
    operator.post(f"{WORKFLOWS}add/", {"document": json.dumps(document(tasks=[fork]))})
    row = WorkflowDefinition.objects.get(name="order")

    assert "No JOIN follows `f`" in html(operator.get(f"{WORKFLOWS}{row.pk}/change/")).replace("<code>", "`").replace(
        "</code>", "`"
    )
    editor = operator.get(f"{WORKFLOWS}{row.pk}/edit/?fresh")
    assert editor.status_code == 200
    run_id = start_run("order")
    assert "is not followed by a join task" in page_text(operator.get(f"/admin/conductor/run/{run_id}/change/"))


def test_a_schema_that_cannot_be_used_is_a_warning_on_the_page_of_its_task_definition(operator, clock):
    schema = {"name": "s", "type": "JSON", "data": {"type": "nix"}}
    define_task("charge", inputSchema=schema)
    row = TaskDefinition.objects.get(name="charge")

    assert "Not a usable JSON schema" in page_text(operator.get(f"{TASKS}{row.pk}/change/"))
    define_task("ship")
    assert "usable JSON schema" not in page_text(
        operator.get(f"{TASKS}{TaskDefinition.objects.get(name='ship').pk}/change/")
    )
