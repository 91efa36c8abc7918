"""The demo as a client: its orders, its workers, and its message without a server."""

import sys
from io import StringIO

import pytest
from conductor.client.automator.task_handler import get_registered_workers
from django.core.management import CommandError, call_command

from conductor_app.tools.demo import server as scenario
from conductor_app.tools.demo import server as show
from conductor_app.tools.demo.workflows import ORDERS
from tests.clients.shop_workflow import serve_tasks
from tests.clients.wait_until import eventually

QUICK = {order.number: order for order in ORDERS if order.number in ("A-1003", "A-1005", "A-1006")}


@pytest.fixture
def quick_orders(server, configuration, clients):
    """Return three of the demo's orders: one completes, one fails and is compensated, one waits for a person."""
    client = clients.get_workflow_client()
    scenario.register_definitions(clients)
    orders = [scenario.start_order(client, order, server) for order in QUICK.values()]
    with serve_tasks(configuration, *get_registered_workers()):
        eventually(lambda: [watched.refresh(client) for watched in orders] and all(w.is_settled for w in orders))
    return {watched.order.number: watched for watched in orders}


def test_the_demo_orders_have_the_expected_results(quick_orders, server):
    table = show.summary_table(list(quick_orders.values()), server)

    assert [watched.problem for watched in quick_orders.values()] == [None, None, None]
    assert "ready at the counter" in table
    assert "The bank refused 201.40 EUR on the card ending in 0002." in table
    assert "Its failure workflow: 4 items restored, customer notified." in table
    assert f"{server}/admin/conductor/run/{quick_orders['A-1006'].run_id}/change/" in table
    assert "/approve_order/COMPLETED" in show.approval_command(quick_orders["A-1006"], server, has_token=False)


def test_an_order_that_a_person_refuses_is_terminated(quick_orders, tasks):
    run_id = quick_orders["A-1006"].run_id

    run = tasks.update_task_sync(run_id, "approve_order", "COMPLETED", {"approved": False})

    assert (run.status, run.reason_for_incompletion) == ("TERMINATED", "The order was not approved.")


def test_a_demo_without_a_server_explains_how_to_start_one():
    with pytest.raises(CommandError, match="Start one with `make run`"):
        call_command("demo", url="http://127.0.0.1:9", stdout=StringIO())


def test_a_demo_without_the_sdk_explains_how_to_install_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "conductor_app.tools.demo.server")
    monkeypatch.delattr("conductor_app.tools.demo.server")
    monkeypatch.setitem(sys.modules, "conductor.client.automator.task_handler", None)

    with pytest.raises(CommandError, match=r"pip install 'conductor-app\[demo\]'"):
        call_command("demo", stdout=StringIO())


def test_a_demo_without_a_key_names_the_missing_one(server, settings, monkeypatch):
    settings.CONDUCTOR_API_ACCESS = "token"
    monkeypatch.delenv("CONDUCTOR_AUTH_KEY", raising=False)

    with pytest.raises(CommandError, match="create_access_key"):
        call_command("demo", url=server, stdout=StringIO())
