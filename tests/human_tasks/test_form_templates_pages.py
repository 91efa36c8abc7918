"""The pages of form templates: listed, written, versioned, deleted; and the forms that they draw for people."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.definitions.sources import commands as bundles
from conductor_app.human_tasks import commands as human_tasks
from conductor_app.human_tasks import form_templates as human_tasks_form_templates
from conductor_app.human_tasks.models import FormTemplate
from tests.builders import human
from tests.page_text import html, page_text
from tests.scenario import define_workflow, newest_attempt_of, reload_run, start_run

LIST = "/admin/form-templates/"
SCHEMA = {
    "type": "object",
    "required": ["approved"],
    "properties": {"approved": {"type": "boolean", "title": "Is it approved?"}, "note": {"type": "string"}},
}
TEMPLATE = {"name": "approval", "version": 1, "jsonSchema": SCHEMA, "templateUI": {}}


def page_of(row: FormTemplate) -> str:
    return f"{LIST}{row.pk}/"


@pytest.fixture
def approval_template(clock, db) -> FormTemplate:
    return human_tasks_form_templates.save_templates([dict(TEMPLATE)], "olga")[0]


def form_values(text: str, **fields: str) -> dict[str, str]:
    return {"document": text, "do": "save", **fields}


def test_an_empty_list_explains_templates(operator, clock):
    assert "No form templates" in page_text(operator.get(LIST))


def test_a_template_is_created_on_the_page_and_listed_with_its_fields(operator, clock):
    sample = operator.get(f"{LIST}new/").context["form"]["document"].value()

    page = operator.post(f"{LIST}new/", form_values(sample), follow=True)

    assert "approval version 1 saved." in page_text(page) and "Approved?" in page_text(page)
    assert "approval v1 1" in page_text(operator.get(LIST))
    assert AuditEntry.objects.get(object_type="form_template").action == "create"


def test_a_version_is_changed_and_saved_as_a_new_one(operator, approval_template):
    text = '{"name": "other", "version": 9, "jsonSchema": {"type": "object"}, "templateUI": {}}'
    operator.post(page_of(approval_template), form_values(text))
    operator.post(page_of(approval_template), form_values(text, do="new_version"))

    rows = FormTemplate.objects.order_by("version")
    assert [(row.name, row.version, row.document["jsonSchema"]) for row in rows] == [
        ("approval", 1, {"type": "object"}),
        ("approval", 2, {"type": "object"}),
    ]
    assert 'aria-current="true">v1<' in html(operator.get(page_of(approval_template)))


def test_errors_are_displayed_and_the_input_is_preserved(operator, approval_template):
    for text, said in [
        ("", "This field is required"),
        ("{", "Invalid JSON"),
        ("[]", "JSON object"),
        ('{"name": "x", "jsonSchema": {"type": "objekt"}, "templateUI": {}}', "is not a usable JSON schema"),
        ('{"name": "x", "jsonSchema": {}, "templateUI": {"type": "Control"}}', "templateUI.scope"),
        ('{"name": "approval", "version": 1, "jsonSchema": {}, "templateUI": {}}', "already exists"),
        ('{"name": "\\u0000", "jsonSchema": {}, "templateUI": {}}', "cannot be null or empty"),
    ]:
        page = operator.post(f"{LIST}new/", form_values(text))

        assert page.status_code == 200 and said in page_text(page), text
        assert FormTemplate.objects.count() == 1, text


def test_a_version_is_deleted(operator, approval_template):
    page = operator.post(page_of(approval_template), {"do": "delete"}, follow=True)

    assert "approval version 1 deleted." in page_text(page)
    assert AuditEntry.objects.filter(action="delete").exists()
    assert operator.get(page_of(approval_template)).status_code == 404


def test_a_viewer_sees_templates_and_cannot_change_them(viewer, approval_template):
    assert "approval" in page_text(viewer.get(LIST)) and "New form template" not in page_text(viewer.get(LIST))
    assert "you need the permission to change form templates" in page_text(viewer.get(page_of(approval_template)))
    for form in (form_values("{}"), form_values("{}", do="new_version"), {"do": "delete"}):
        assert viewer.post(page_of(approval_template), form).status_code == 403
    assert viewer.get(f"{LIST}new/").status_code == 403


def test_a_list_of_templates_takes_few_queries(operator, approval_template, django_assert_max_num_queries):
    human_tasks_form_templates.save_templates([{**TEMPLATE, "name": f"form-{number}"} for number in range(30)], "olga")

    with django_assert_max_num_queries(10):
        operator.get(LIST)


def names_template(version: int = 0):
    said = {"userFormTemplate": {"name": "approval", "version": version}, "displayName": "Approve"}
    return human("approve", inputParameters={"__humanTaskDefinition": said})


def test_the_form_of_a_human_task_is_built_from_the_template_of_its_step(operator, approval_template):
    define_workflow("order", names_template())
    run = start_run("order")
    here = f"/admin/human-tasks/{newest_attempt_of(run, 'approve').pk}/"

    assert "Is it approved?" in page_text(operator.get(here))
    refused = operator.post(here, {"outcome": "COMPLETED", "mode": "json", "output": "{}"})
    assert "does not match its schema" in page_text(refused)
    operator.post(here, {"outcome": "COMPLETED", "mode": "form", "output.approved": "true"})
    assert reload_run(run).status == "COMPLETED"


def test_a_draft_saved_by_a_client_prefills_the_form(operator, approval_template):
    define_workflow("order", names_template())
    run = start_run("order")
    attempt = newest_attempt_of(run, "approve")
    human_tasks.save_output(run.pk, attempt.pk, {"note": "half done"}, "shop")

    assert "half done" in html(operator.get(f"/admin/human-tasks/{attempt.pk}/"))


def test_an_assignment_is_skipped_on_the_page(operator, approval_template):
    to = [{"assignee": {"userType": "CONDUCTOR_USER", "user": who}} for who in ("ann", "bob")]
    define_workflow("order", human("approve", inputParameters={"__humanTaskDefinition": {"assignments": to}}))
    here = f"/admin/human-tasks/{newest_attempt_of(start_run('order'), 'approve').pk}/"
    assert "Skip to the next assignee" in page_text(operator.get(here))

    page = page_text(operator.post(here, {"do": "skip"}, follow=True))

    assert "Assigned to the next person." in page and "olga skipped ann" in page
    assert "Skip to the next assignee" not in page


def test_a_task_claimed_for_an_external_user_is_taken_over_before_completion(operator, approval_template):
    define_workflow("order", names_template())
    run = start_run("order")
    attempt = newest_attempt_of(run, "approve")
    human_tasks.claim_task(attempt.task_id, "shop", external_user="olga")
    here = f"/admin/human-tasks/{attempt.pk}/"

    assert "Claimed by olga." in page_text(operator.get(here))
    refused = operator.post(here, {"outcome": "COMPLETED", "mode": "form", "output.approved": "true"}, follow=True)
    assert "Claim it first" in page_text(refused)


def test_a_bundle_carries_the_templates_that_its_workflows_name(approval_template, clock):
    human_tasks_form_templates.save_templates([{**TEMPLATE, "version": 2}, {**TEMPLATE, "name": "other"}], "olga")
    define_workflow("order", names_template(1))
    bundle = bundles.export_bundle(["order"])
    assert [(each["name"], each["version"]) for each in bundle["formTemplates"]] == [("approval", 1)]

    assert {item.kind: item.verdict for item in bundles.plan_import(bundle)}["form template"] == "same"
    FormTemplate.objects.all().delete()
    assert "form template approval" in bundles.import_bundle(bundle, "new", "olga")["kept"]
    assert FormTemplate.objects.get().document["jsonSchema"] == SCHEMA
    bundle["formTemplates"][0]["jsonSchema"] = {"type": "objekt"}
    assert bundles.plan_import(bundle)[0].verdict == "refused"


def test_a_bundle_with_templates_requires_permission_to_edit_them(author, operator, approval_template):
    text = '{"formTemplates": [{"name": "x", "version": 1, "jsonSchema": {}, "templateUI": {}}]}'
    page = author.post("/admin/conductor/workflowdefinition/import/", {"text": text})

    assert "x form template" in page_text(page)
    author.post("/admin/conductor/workflowdefinition/import/", {"text": text, "step": "take"})
    assert FormTemplate.objects.filter(name="x").exists()
