"""A rerun from a task of a sub-workflow requires the right to control the sub-workflow as well."""

import pytest

from conductor_app.runs.models import Attempt, Run
from tests.access.users import api_client_of, create_application, grant_access
from tests.builders import simple, sub_workflow

pytestmark = pytest.mark.usefixtures("with_logins")


@pytest.fixture
def ended(clock):
    """Return a terminated run of one team and the failed task of its sub-workflow, which belongs to another team."""
    api = api_client_of(create_application("root", "ADMIN"))
    api.define(simple("pay", inputParameters={"to": "the customer"}), name="bank-payment")
    api.define(sub_workflow("sub", "bank-payment"), name="shop-order")
    run = api.start(name="shop-order")
    attempt = Attempt.objects.get(task__ref="pay")
    api.delete(f"/workflow/{run}")
    return run, attempt.pk


def test_who_may_control_the_parent_only_changes_no_input_of_a_sub_workflow(ended):
    run, attempt = ended
    shop = create_application("shop")
    grant_access(shop, "WORKFLOW_DEF", "shop-*", "READ", "EXECUTE")
    client, child = api_client_of(shop), Run.objects.get(name="bank-payment")
    asked = {"reRunFromWorkflowId": run, "reRunFromTaskId": attempt, "taskInput": {"to": "me"}}

    assert client.post(f"/workflow/{run}/rerun", asked).status_code == 403
    plan = client.post(
        f"/insight/runs/{run}/plan", {"operation": "rerun", "taskId": attempt, "taskInput": {"to": "me"}}
    )
    assert plan.status_code == 403
    assert Run.objects.get(pk=child.pk).revision == child.revision

    grant_access(shop, "WORKFLOW_DEF", "bank-payment", "EXECUTE")
    assert client.post(f"/workflow/{run}/rerun", asked).status_code == 200
