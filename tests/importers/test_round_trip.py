"""An import from another server of this kind: all definitions are equal afterwards."""

import pytest
import requests

from conductor_app.access.models import Tag, Variable
from conductor_app.definitions import commands as tags
from conductor_app.definitions.models import SchemaDefinition, TaskDefinition, WorkflowDefinition
from conductor_app.events.models import EventHandler
from conductor_app.human_tasks.models import FormTemplate
from conductor_app.schedules.models import Schedule
from tests.clients.live_server import running_server
from tests.importers.commands import import_conductor
from tests.importers.recorded_source import API, RecordedSource
from tests.importers.source_objects import HANDLERS, SCHEDULES, TASKS, WORKFLOWS, step, workflow
from tests.recording_web_server import running_web_server

pytestmark = pytest.mark.slow

MODELS = (WorkflowDefinition, TaskDefinition, EventHandler, Schedule, SchemaDefinition, FormTemplate, Tag, Variable)
LISTS = (
    "/metadata/workflow",
    "/metadata/taskdefs",
    "/event",
    "/scheduler/schedules",
    "/schema",
    "/human/template",
    "/environment",
)
TEMPLATE = {
    "name": "approval",
    "version": 3,
    "jsonSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}},
    "templateUI": {},
}
FURTHER_PATHS = (
    "/metadata/workflow/names-and-versions",
    "/metadata/tags",
    "/metadata/workflow/order/tags",
    "/secrets",
    "/workflow/search",
)


@pytest.fixture
def filled_server(transactional_db):
    """Yield the address of a server with objects of every kind."""
    with running_server() as url:
        address = url + API
        bodies = [
            ("/metadata/taskdefs", TASKS),
            ("/schema", [{"name": "id", "type": "JSON", "data": {"type": "object"}}]),
        ]
        bodies += [("/metadata/workflow", each) for each in (*WORKFLOWS, workflow("a/b c", 7, step("charge")))]
        bodies += [("/event", each) for each in HANDLERS]
        bodies += [("/scheduler/schedules", SCHEDULES[0]), ("/human/template", TEMPLATE)]
        for path, body in bodies:
            reply = requests.post(address + path, json=body, timeout=30)
            assert reply.ok, (path, reply.text)
        tags.add_tags("WORKFLOW_DEF", "order", [{"key": "team", "value": "shop", "type": "METADATA"}], "olga")
        Variable.objects.create(pk="region", value="eu")
        yield address


def read_lists(address):
    """Return what a server lists, without the times that it fills in."""
    hidden = {"createTime", "updateTime", "updatedTime", "createdBy", "updatedBy", "nextRunTime"}
    return {
        path: [
            {name: value for name, value in each.items() if name not in hidden}
            for each in requests.get(address + path, timeout=30).json()
        ]
        for path in LISTS
    }


def test_all_definitions_are_equal_after_a_round_trip(filled_server):
    before = read_lists(filled_server)
    # The other server is this one before its tables are emptied, as its API showed it.
    with running_web_server() as web:
        other = RecordedSource(web)
        web.answers.clear()
        for path in (*LISTS, *FURTHER_PATHS):
            reply = requests.get(filled_server + path, timeout=30)
            other.reply_text(path, reply.content)
        for model in MODELS:
            model.objects.all().delete()

        done = import_conductor(other.address, "--activate")
        again = import_conductor(other.address, "--activate")

    assert done.status == 0, done.output
    assert read_lists(filled_server) == before
    assert Tag.objects.get().object_name == "order"
    assert [each for each in again.report["items"] if each["verdict"] != "unchanged"] == []


def test_a_server_that_imports_from_itself_finds_nothing_to_do(filled_server):
    done = import_conductor(filled_server, "--activate")

    assert [each for each in done.report["items"] if each["verdict"] != "unchanged"] == []
    assert len(done.report["items"]) == len(TASKS) + len(WORKFLOWS) + len(HANDLERS) + 6
    assert done.report["not_read"] == {}
