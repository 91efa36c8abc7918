"""The words that commands and agents can use are those of the server."""

from conductor_app.core.primitives import FAILURE_VIEWS, RUN_OPERATIONS, RUN_STATUSES
from conductor_app.core.states import RUN
from conductor_app.failures.queries import VIEWS
from conductor_app.runs.commands.plans import OPERATIONS


def test_clients_can_plan_each_operation_of_the_server():
    assert tuple(OPERATIONS) == RUN_OPERATIONS


def test_clients_can_list_runs_by_each_status_and_failures_by_each_state():
    assert set(RUN_STATUSES) == RUN.statuses
    assert set(FAILURE_VIEWS) <= VIEWS.keys()
