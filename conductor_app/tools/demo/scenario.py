"""The demo: register definitions, start workers and orders, watch them, and print the results."""

import time
from collections.abc import Callable

from conductor.client.automator.task_handler import TaskHandler
from conductor.client.configuration.configuration import Configuration
from conductor.client.http.models.start_workflow_request import StartWorkflowRequest
from conductor.client.http.rest import ApiException
from conductor.client.orkes_clients import OrkesClients
from conductor.client.workflow_client import WorkflowClient

from . import server as show
from .server import ServerUnavailable, WatchedOrder, configuration_for, explain_refusal, require_server
from .workflows import ORDER, ORDERS, Order, task_definitions, workflow_definitions

WORKERS = "conductor_app.tools.demo.workers"
LIMIT_SECONDS = 50
LOOK_EVERY_SECONDS = 0.3


def run_demo(url: str, progress: show.Progress, say: Callable[[str], object]) -> list[str]:
    """Process the six orders on the server at this address. Returns the unexpected results.

    Raises:
        ServerUnavailable: when the server refuses a request.
    """
    require_server(url)
    configuration = configuration_for(url)
    try:
        register_definitions(OrkesClients(configuration))
        orders = fulfill_orders(configuration, url, progress, say)
    except ApiException as error:
        raise ServerUnavailable(explain_refusal(error, url)) from error
    say(f"\n{show.summary_table(orders, url)}")
    for watched in orders:
        if watched.is_waiting_for_person:
            say(f"\n{show.approval_command(watched, url, has_token=configuration.AUTH_TOKEN is not None)}")
    return [watched.problem for watched in orders if watched.problem]


def register_definitions(clients: OrkesClients) -> None:
    """Register the tasks and workflows. Existing ones are replaced."""
    for task in task_definitions():
        clients.get_metadata_client().register_task_def(task)
    for workflow in workflow_definitions(clients.get_workflow_executor()):
        workflow.register(overwrite=True)


def fulfill_orders(
    configuration: Configuration, url: str, progress: show.Progress, say: Callable[[str], object]
) -> list[WatchedOrder]:
    """Start the workers and the orders, and watch the orders until all are settled."""
    client = OrkesClients(configuration).get_workflow_client()
    with TaskHandler(configuration=configuration, import_modules=[WORKERS]) as workers:
        workers.start_processes()
        say(f"{len(workers.workers)} workers serve the orders at {url}:")
        orders = [start_order(client, order, url) for order in ORDERS]
        for order in ORDERS:
            say(f"  {order.number}  {order.kind}")
        say("")
        watch_orders(client, orders, progress)
    return orders


def start_order(client: WorkflowClient, order: Order, url: str) -> WatchedOrder:
    """Start the workflow of an order, with the order number as correlation id."""
    request = StartWorkflowRequest(name=ORDER, version=1, correlation_id=order.number, input=order.to_input(url))
    return WatchedOrder(order, client.start_workflow(request))


def watch_orders(client: WorkflowClient, orders: list[WatchedOrder], progress: show.Progress) -> None:
    """Refresh the orders until all are settled or the time is over."""
    began = time.monotonic()
    while (seconds := time.monotonic() - began) < LIMIT_SECONDS:
        for watched in orders:
            watched.refresh(client)
        progress.show(orders, seconds)
        if all(watched.is_settled for watched in orders):
            return
        time.sleep(LOOK_EVERY_SECONDS)
