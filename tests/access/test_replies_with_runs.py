"""A reply that has a whole run requires the right to read the run, besides the right to change it."""

import pytest

from conductor_app.runs.models import Attempt, Run
from tests.access.users import api_client_of, create_application, grant_access
from tests.builders import simple, wait

pytestmark = pytest.mark.usefixtures("with_logins")


@pytest.fixture
def run(clock) -> str:
    """Return a run with an open task of a worker, and one that waits for a signal."""
    fork = {
        "name": "fork",
        "taskReferenceName": "fork",
        "type": "FORK_JOIN",
        "forkTasks": [[simple("pay")], [wait("w")]],
    }
    join = {"name": "join", "taskReferenceName": "join", "type": "JOIN", "joinOn": ["pay", "w"]}
    api = api_client_of(create_application("admin", "ADMIN"))
    api.define(fork, join, name="order")
    return api.start(name="order", input={"hidden": "from workers"})


REPLIES_WITH_A_RUN = {
    "a report by reference": "/tasks/{run}/pay/IN_PROGRESS/sync",
    "variables": "/workflow/{run}/variables",
    "a state": "/workflow/{run}/state",
    "a signal": "/tasks/{run}/COMPLETED/signal/sync?timeoutMillis=1",
}


@pytest.mark.parametrize("address", REPLIES_WITH_A_RUN.values(), ids=REPLIES_WITH_A_RUN)
def test_who_may_change_a_run_and_not_read_it_gets_no_reply_with_the_run(run, address):
    starter = create_application("starter")
    grant_access(starter, "WORKFLOW_DEF", "order", "EXECUTE")
    before = (Run.objects.get().revision, sorted(Attempt.objects.values_list("status", flat=True)))

    reply = api_client_of(starter).post(address.format(run=run), {})

    assert (reply.status_code, "READ on its WORKFLOW_DEF" in reply.json()["message"]) == (403, True)
    assert (Run.objects.get().revision, sorted(Attempt.objects.values_list("status", flat=True))) == before
    grant_access(starter, "WORKFLOW_DEF", "order", "READ")
    assert api_client_of(starter).post(address.format(run=run), {}).status_code == 200


def test_a_worker_gets_no_reply_with_the_other_tasks_of_its_run(run):
    worker = create_application("worker")
    grant_access(worker, "TASK_DEF", "pay", "EXECUTE")

    assert api_client_of(worker).post(f"/tasks/{run}/pay/COMPLETED/sync", {}).status_code == 403

    assert api_client_of(worker).post(f"/tasks/{run}/pay/COMPLETED", {}).status_code == 200
