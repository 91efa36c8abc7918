"""Sub-workflows of removed workflows (execution §11 row 48)."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.runs.models import Run
from tests.builders import simple


@pytest.fixture
def family(api):
    """Return the ids of a workflow that waits for a child, which waits for a grandchild."""
    api.define(simple("pay"), name="grandchild")
    sub = {"name": "s", "taskReferenceName": "s", "type": "SUB_WORKFLOW"}
    api.define({**sub, "subWorkflowParam": {"name": "grandchild"}}, name="child")
    api.define({**sub, "subWorkflowParam": {"name": "child"}}, name="parent")
    parent = api.start("parent")
    child = Run.objects.get(parent_id=parent).id
    return parent, child, Run.objects.get(parent_id=child).id


def statuses_of(ids):
    found = dict(Run.objects.filter(pk__in=ids).values_list("id", "status"))
    return [found.get(id) for id in ids]


def test_children_stay_and_are_terminated_with_their_parent(api, family):
    api.delete(f"/workflow/{family[0]}/remove?archiveWorkflow=false")

    assert statuses_of(family) == [None, "TERMINATED", "TERMINATED"]


@pytest.mark.parametrize("address", ["remove?archiveWorkflow=false&cascade=true", "terminate-remove?cascade=true"])
def test_children_are_removed_with_their_parent_on_request(api, family, address):
    assert api.delete(f"/workflow/{family[0]}/{address}").status_code == 200

    assert statuses_of(family) == [None, None, None]
    assert AuditEntry.objects.filter(action="remove", object_id__in=family).count() == 3


def test_an_open_family_is_not_archived(api, family):
    assert api.delete(f"/workflow/{family[0]}/remove?cascade=true").status_code == 400

    assert statuses_of(family) == ["RUNNING"] * 3


def test_a_child_that_is_removed_ends_the_task_that_waits_for_it(api, family):
    parent, child, _ = family

    api.delete(f"/workflow/{child}/remove?archiveWorkflow=false")

    assert statuses_of([parent, child]) == ["TERMINATED", None]


def test_terminate_and_remove_has_a_reason(api):
    api.define(simple("pay"))
    workflow_id = api.start()

    reply = api.delete(f"/workflow/{workflow_id}/terminate-remove?reason=enough")

    assert (reply.status_code, reply.content) == (200, b"")
    kept = AuditEntry.objects.filter(object_id=workflow_id).order_by("id").values_list("action", "reason")
    assert list(kept)[-2:] == [("terminate", "enough"), ("remove", "enough")]


def test_a_completed_workflow_is_not_terminated_before_its_removal(api):
    api.define(simple("pay"))
    workflow_id = api.start()
    api.report(api.poll("pay")[0])

    assert api.delete(f"/workflow/{workflow_id}/terminate-remove").status_code == 409
    assert api.delete("/workflow/nobody/terminate-remove").status_code == 404
    assert statuses_of([workflow_id]) == ["COMPLETED"]
