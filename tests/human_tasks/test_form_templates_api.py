"""User form templates: saved under name and version, found, deleted, and used for the tasks that name them."""

from typing import Any

import pytest

from conductor_app.access.models import AuditEntry
from tests.human_tasks.test_human_tasks_api import LAYOUT, SCHEMA, begin, human


def given(name: str = "approval", **fields: Any) -> dict[str, Any]:
    return {"name": name, "version": 1, "jsonSchema": SCHEMA, "templateUI": LAYOUT, **fields}


def versions(api, **query: Any) -> list[tuple[str, int]]:
    return [(each["name"], each["version"]) for each in api.get("/human/template", **query).json()]


def test_a_template_is_saved_shown_replaced_and_deleted(api):
    saved = api.post("/human/template?newVersion=false", given()).json()
    assert (saved["name"], saved["version"], saved["jsonSchema"], saved["templateUI"]) == (
        "approval",
        1,
        SCHEMA,
        LAYOUT,
    )
    assert saved["createdBy"] == "anonymous" and saved["createTime"] > 0 and "updateTime" not in saved

    assert api.post("/human/template?newVersion=true", given()).json()["version"] == 2
    assert api.post("/human/template", given(version=0, templateUI={})).json()["version"] == 2
    assert api.get("/human/template/approval/2").json()["templateUI"] == {}
    assert api.get("/human/template/approval/0").json()["version"] == 2
    assert api.get("/human/template/approval/1").json()["templateUI"] == LAYOUT
    api.post("/human/template/bulk", [given("other"), given("third", version=7)])

    assert versions(api) == [("approval", 1), ("approval", 2), ("other", 1), ("third", 7)]
    assert versions(api, name="approval") == [("approval", 1), ("approval", 2)]
    assert versions(api, name="approval", version=2) == [("approval", 2)]

    assert api.delete("/human/template/approval/1").content == b""
    assert versions(api, name="approval") == [("approval", 2)]
    assert api.delete("/human/template/approval").content == b""
    assert versions(api, name="approval") == []
    assert set(AuditEntry.objects.values_list("action", flat=True)) == {"create", "overwrite", "delete"}


@pytest.mark.parametrize("path", ["/human/template/none/1", "/human/template/approval/7", "/human/template/none"])
def test_an_unknown_form_template_is_not_found(api, path):
    api.post("/human/template", given())

    if path.count("/") == 4:
        assert api.get(path).status_code == 404
    assert api.delete(path).status_code == 404


FAULTY = [
    (given(""), "name"),
    (given("x" * 256), "name"),
    (given(version=-1), "version"),
    (given(version="one"), "version"),
    (given(jsonSchema=None), "jsonSchema"),
    (given(jsonSchema=[]), "jsonSchema"),
    (given(jsonSchema={"type": "objekt"}), "jsonSchema"),
    (given(jsonSchema={"$ref": "http://example.org/schema"}), "jsonSchema"),
    (given(templateUI=None), "templateUI"),
    (given(templateUI="flat"), "templateUI"),
    (given(templateUI={"elements": []}), "templateUI.type"),
    (given(templateUI={"type": "VerticalLayout", "elements": {}}), "templateUI.elements"),
    (given(templateUI={"type": "VerticalLayout", "elements": [7]}), "templateUI.elements[0]"),
    (given(templateUI={"type": "Control"}), "templateUI.scope"),
    (given(templateUI={"type": "Control", "scope": "#/properties/none"}), "templateUI.scope"),
    (
        given(templateUI={"type": "VerticalLayout", "elements": [{"type": "Label"}, {"type": "Control", "scope": 1}]}),
        "templateUI.elements[1].scope",
    ),
]


@pytest.mark.parametrize(("document", "path"), FAULTY, ids=lambda each: str(each)[:60])
def test_a_faulty_template_is_refused_with_the_place_of_each_fault(api, document, path):
    reply = api.post("/human/template", document)

    assert reply.status_code == 400, reply.content
    places = [each["path"] for each in reply.json()["validationErrors"]]
    assert f"saveTemplate.template.{path}" in places
    assert versions(api) == []


def test_one_invalid_template_of_several_rejects_all(api):
    reply = api.post("/human/template/bulk", [given(), given("other", jsonSchema=None)])

    assert reply.json()["validationErrors"][0]["path"] == "saveTemplates.templates[1].jsonSchema"
    assert versions(api) == []
    assert api.post("/human/template/bulk", given()).status_code == 400
    assert api.post("/human/template", [given()]).status_code == 400
    assert api.post("/human/template?newVersion=perhaps", given()).status_code == 400


def test_a_task_with_a_template_contains_it_and_is_validated_by_its_schema(api):
    api.post("/human/template", given())
    task = begin(api, human(userFormTemplate={"name": "approval", "version": 0}))

    assert "fullTemplate" not in api.get(f"/human/tasks/{task}").json()["humanTaskDef"]
    shown = api.get(f"/human/tasks/{task}", withTemplate="true").json()["humanTaskDef"]["fullTemplate"]
    assert (shown["name"], shown["version"], shown["templateUI"]) == ("approval", 1, LAYOUT)
    assert api.get(f"/human/template/{task}").json()["name"] == "approval"
    claimed = api.post(f"/human/tasks/{task}/claim?withTemplate=true").json()
    assert claimed["humanTaskDef"]["fullTemplate"]["jsonSchema"] == SCHEMA

    refused = api.post(f"/human/tasks/{task}/update?complete=true", {"ok": "yes"})
    assert refused.status_code == 400 and "approval version 1" in refused.json()["message"]
    assert api.post(f"/human/tasks/{task}/update?complete=true", {"ok": True}).status_code == 200


def test_a_task_with_a_deleted_template_is_completed_without_it(api):
    task = begin(api, human(userFormTemplate={"name": "gone", "version": 3}))

    assert api.get(f"/human/template/{task}").status_code == 404
    assert "fullTemplate" not in api.get(f"/human/tasks/{task}?withTemplate=true").json()["humanTaskDef"]
    assert api.post(f"/human/tasks/{task}/update?complete=true", {"ok": 1}).status_code == 200
