"""The demo as a client: its orders, its workers, and its message without a server."""

import pytest
from conductor.client.automator.task_handler import get_registered_workers

from examples.demo.__main__ import main
from examples.demo.server import next_steps, register_definitions, start_order, summary_table
from examples.demo.workflows import ORDERS
from tests.clients.shop_workflow import serve_tasks
from tests.clients.wait_until import eventually

QUICK = {order.number: order for order in ORDERS if order.number in ("A-1003", "A-1005", "A-1006")}


@pytest.fixture
def quick_orders(server, configuration, clients):
    """Return three of the demo's orders: one completes, one fails and is compensated, one waits for a person."""
    client = clients.get_workflow_client()
    register_definitions(clients)
    orders = [start_order(client, order, server) for order in QUICK.values()]
    with serve_tasks(configuration, *get_registered_workers()):
        eventually(lambda: [watched.refresh(client) for watched in orders] and all(w.is_settled for w in orders))
    return {watched.order.number: watched for watched in orders}


def test_the_demo_orders_have_the_expected_results_and_lead_to_pages_before_a_command(quick_orders, server):
    table = summary_table(list(quick_orders.values()), server)

    assert [watched.problem for watched in quick_orders.values()] == [None, None, None]
    assert "ready at the counter" in table
    assert "The bank refused 201.40 EUR on the card ending in 0002." in table
    assert "Its failure workflow: 4 items restored, customer notified." in table
    assert f"{server}/admin/conductor/run/{quick_orders['A-1006'].run_id}/change/" in table
    shown = next_steps(list(quick_orders.values()), server, has_token=False)
    assert f"approve order A-1006  {server}/admin/human-tasks/" in shown
    assert shown.index(f"{server}/admin/failures/") < shown.index("/approve_order/COMPLETED")


def test_an_order_that_a_person_refuses_is_terminated(quick_orders, tasks):
    run_id = quick_orders["A-1006"].run_id

    run = tasks.update_task_sync(run_id, "approve_order", "COMPLETED", {"approved": False})

    assert (run.status, run.reason_for_incompletion) == ("TERMINATED", "The order was not approved.")


def test_a_demo_without_a_server_explains_how_to_start_one():
    with pytest.raises(SystemExit, match="Start one with `make run`"):
        main(["--url", "http://127.0.0.1:9"])


def test_the_port_in_the_environment_is_that_of_the_server(monkeypatch):
    monkeypatch.setenv("PORT", "9")

    with pytest.raises(SystemExit, match=r"No server responds at http://127\.0\.0\.1:9"):
        main([])


def test_a_demo_without_a_key_names_the_missing_one(server, settings, monkeypatch):
    settings.CONDUCTOR_API_ACCESS = "token"
    monkeypatch.delenv("CONDUCTOR_AUTH_KEY", raising=False)

    with pytest.raises(SystemExit, match="create_access_key"):
        main(["--url", server])
