"""Export and import of definitions as one file, with a preview of the import."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from conductor_app.access.models import AuditEntry
from conductor_app.definitions.models import TaskDefinition, WorkflowDefinition
from tests.builders import simple, sub_workflow
from tests.page_text import page_text
from tests.scenario import define_task, define_workflow

EXPORT = "/admin/conductor/workflowdefinition/export/"
IMPORT = "/admin/conductor/workflowdefinition/import/"


@pytest.fixture
def shop(clock, db):
    define_task("charge", retryCount=3)
    define_workflow("billing", simple("charge"))
    define_workflow("shop", sub_workflow("bill", "billing"))
    define_workflow("other", simple("ship"))


def exported(client, **asked):
    return json.loads(client.get(EXPORT, asked).content)


def look(client, given, **more):
    return client.post(IMPORT, {"text": given if isinstance(given, str) else json.dumps(given), **more})


def take(client, given, **more):
    return look(client, given, step="take", **more)


def document(name="new", **fields):
    return {"name": name, "version": 1, "ownerEmail": "team@example.com", "tasks": [simple("ship")], **fields}


def test_a_workflow_is_exported_with_its_dependencies(operator, shop):
    bundle = exported(operator, name="shop")

    assert [each["name"] for each in bundle["workflows"]] == ["shop", "billing"]
    assert [each["name"] for each in bundle["tasks"]] == ["charge"]


def test_all_workflows_are_exported(operator, shop):
    assert {each["name"] for each in exported(operator)["workflows"]} == {"shop", "billing", "other"}


def test_an_export_is_imported_into_another_server(operator, shop):
    bundle = exported(operator)
    WorkflowDefinition.objects.all().delete()
    TaskDefinition.objects.all().delete()

    take(operator, bundle, reason="moved here")

    assert exported(operator) == bundle
    assert AuditEntry.objects.get(object_id="shop:1", reason="moved here").actor == "olga"


def test_an_import_is_previewed_without_changes(operator, shop):
    bundle = exported(operator)
    bundle["tasks"][0] |= {"retryCount": 5}
    bundle["workflows"] += [document(), document("worse", tasks=[])]

    page = look(operator, bundle)

    verdicts = {item.name: item.verdict for item in page.context["items"]}
    assert verdicts == {
        "charge": "changed", "new": "new", "worse": "refused", "shop": "same", "billing": "same", "other": "same",
    }  # fmt: skip
    assert "retries 3 to 5" in page_text(page) and "WorkflowTask list cannot be empty" in page_text(page)
    assert not WorkflowDefinition.objects.filter(name="new").exists()


def test_changed_workflows_become_new_versions(operator, shop):
    take(operator, {"workflows": [document("other", description="changed")]})

    assert list(WorkflowDefinition.objects.filter(name="other").values_list("version", flat=True)) == [2, 1]


def test_an_import_can_overwrite_its_own_versions(operator, shop):
    take(operator, {"workflows": [document("other", description="changed")]}, how="given")

    assert WorkflowDefinition.objects.get(name="other").description == "changed"


def test_rejected_entries_are_reported_and_the_others_imported(operator, shop):
    answer = take(operator, {"workflows": [document("worse", tasks=[]), document()]})

    assert "Rejected: workflow worse." in page_text(operator.get(answer.url))
    assert WorkflowDefinition.objects.filter(name="new").exists()


def test_a_list_and_a_single_workflow_are_bundles_too(operator, clock):
    for given in ([document("one")], document("two")):
        take(operator, given)

    assert set(WorkflowDefinition.objects.values_list("name", flat=True)) == {"one", "two"}


def test_a_file_is_read(operator, clock):
    file = SimpleUploadedFile("b.json", json.dumps([document()]).encode("utf-8-sig"))

    assert [item.name for item in operator.post(IMPORT, {"file": file}).context["items"]] == ["new"]


def test_an_invalid_bundle_is_rejected_with_a_reason(operator, clock):
    for given, validation_error in [
        ("", "Choose a file, or paste a bundle."),
        ("{", "Invalid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "The bundle contains no definitions."),
        ("7", "A bundle must be an object"),
        ('{"workflows": 7}', "must be a list of definitions"),
        ('{"tasks": [7]}', "must be a list of definitions"),
        (json.dumps([{}] * 2001), "at most 2,000 definitions"),
    ]:
        assert validation_error in page_text(look(operator, given)), validation_error


def test_a_user_without_edit_permission_can_export_but_not_import(viewer, shop):
    assert exported(viewer)["workflows"]
    assert viewer.get(IMPORT).status_code == take(viewer, [document()]).status_code == 403
    assert not WorkflowDefinition.objects.filter(name="new").exists()
