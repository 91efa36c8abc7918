"""The demo: it registers definitions, starts workers and orders, watches them, and prints the results."""

import os
import shutil
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol
from urllib.error import URLError
from urllib.request import urlopen

from conductor.client.automator.task_handler import TaskHandler
from conductor.client.configuration.configuration import Configuration
from conductor.client.http.models.start_workflow_request import StartWorkflowRequest
from conductor.client.http.models.task import Task
from conductor.client.http.models.workflow import Workflow
from conductor.client.http.rest import ApiException
from conductor.client.orkes_clients import OrkesClients
from conductor.client.workflow_client import WorkflowClient

from .workflows import APPROVAL, ORDER, ORDERS, Order, task_definitions, workflow_definitions

HEALTH_SECONDS = 5
WORKER_ID = "demo@1"
"""The id of the workers, with their build after the @. Pages compare builds."""


class ServerUnavailable(Exception):
    """The server does not respond or refuses the demo."""


def configuration_for(url: str) -> Configuration:
    """Return the configuration of the SDK, which reads CONDUCTOR_AUTH_KEY and CONDUCTOR_AUTH_SECRET itself.

    Failing workers are part of the demo, so their stack traces are not printed. The page of the run shows them.
    """
    configuration = Configuration(server_api_url=f"{url}/api", log_level="CRITICAL")
    configuration.apply_logging_config()
    return configuration


def add_url_option(parser: ArgumentParser) -> None:
    """Add the option --url, whose default are the variables URL and PORT."""
    default = os.environ.get("URL") or f"http://127.0.0.1:{os.environ.get('PORT') or 8000}"
    parser.add_argument("--url", default=default, help="address of the server (default: %(default)s)")


def base_address(url: str) -> str:
    """Return the server's address without a trailing slash or path of the API."""
    return url.rstrip("/").removesuffix("/api").rstrip("/")


def require_server(url: str) -> None:
    """Check that a healthy server responds.

    Raises:
        ServerUnavailable: when none does.
    """
    try:
        with urlopen(f"{url}/health", timeout=HEALTH_SECONDS):
            return
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise ServerUnavailable(
            f"No server responds at {url} ({reason}). Start one with `make run` in another terminal, or set "
            "URL=http://host:port to use another one."
        ) from error


def admin_page(url: str, run_id: str) -> str:
    """Return the address of the page of a run."""
    return f"{url}/admin/conductor/run/{run_id}/change/"


def explain_refusal(error: ApiException, url: str) -> str:
    """Return an error message with the reason of a refusal and advice."""
    if error.status in (401, 403):
        return (
            f"The server at {url} requires an access key. Set CONDUCTOR_AUTH_KEY and CONDUCTOR_AUTH_SECRET. "
            "`manage.py create_access_key demo` creates them."
        )
    if not error.status:
        return f"The connection to the server at {url} failed: {error.reason}"
    return f"The server at {url} responded with {error.status}: {error.body or error.reason}"


ENDED = ("COMPLETED", "FAILED", "TIMED_OUT", "TERMINATED")
FAILURE_WORKFLOW = "conductor.failure_workflow"


class WatchedOrder:
    """An order and its runs as of the last refresh."""

    def __init__(self, order: Order, run_id: str) -> None:
        self.order = order
        self.run_id = run_id
        self.run: Workflow | None = None
        self.parcel: Workflow | None = None
        self.compensation: Workflow | None = None

    def refresh(self, client: WorkflowClient) -> None:
        """Load the current state of the runs, unless the order is settled."""
        if self.is_settled:
            return
        self.run = client.get_workflow(self.run_id)
        parcel_id = next((task.sub_workflow_id for task in self.run.tasks if task.sub_workflow_id), None)
        if parcel_id:
            self.parcel = client.get_workflow(parcel_id)
        if compensation_id := self.run.output.get(FAILURE_WORKFLOW):
            self.compensation = client.get_workflow(compensation_id)

    @property
    def status(self) -> str:
        return self.run.status if self.run else "RUNNING"

    @property
    def is_settled(self) -> bool:
        """Return True if the order has ended or waits for a user."""
        if self.compensation and self.compensation.status not in ENDED:
            return False
        return self.status in ENDED or self.is_waiting_for_person

    @property
    def is_waiting_for_person(self) -> bool:
        return any(task.reference_task_name == APPROVAL and task.status == "IN_PROGRESS" for task in self.tasks)

    @property
    def tasks(self) -> Iterator[Task]:
        """Yield the tasks of all runs, those of the order first."""
        for run in (self.run, self.parcel, self.compensation):
            yield from run.tasks if run else ()

    @property
    def open_steps(self) -> list[str]:
        """Return the reference names of the open tasks."""
        return [task.reference_task_name for task in self.tasks if task.status in ("SCHEDULED", "IN_PROGRESS")]

    @property
    def progress(self) -> str:
        """Return one sentence about the progress of the order."""
        total = (self.run.variables or {}).get("total", 0) if self.run else 0
        count = len(self.order.lines)
        purchase = f"{count} {'line' if count == 1 else 'lines'}, {total:.2f} EUR"
        if self.status == "COMPLETED":
            return f"{purchase}; {self._describe_delivery()}."
        if self.is_waiting_for_person:
            return f"{purchase}; waits for a person at {APPROVAL}."
        if self.status == "RUNNING":
            return f"{purchase}; is at {', '.join(self.open_steps) or 'its start'}."
        return f"{self._reason()}."

    def _describe_delivery(self) -> str:
        attempts = self._output.get("courier_attempts")
        if attempts is None:
            return "ready at the counter"
        return f"delivered by {self.order.courier}, booked on attempt {attempts}"

    def _reason(self) -> str:
        failed = (task.reason_for_incompletion for task in self.tasks if task.status.startswith("FAILED"))
        run_reason = self.run.reason_for_incompletion if self.run else None
        return next(filter(None, failed), run_reason or "No reason given").rstrip(".")

    @property
    def _output(self) -> dict[str, Any]:
        return self.run.output if self.run else {}

    @property
    def problem(self) -> str | None:
        """Return the unexpected result as a sentence, or None."""
        order = self.order
        if not self.is_settled:
            return f"Order {order.number} has not ended in time. It is at {', '.join(self.open_steps) or 'its start'}."
        if self.status != order.status:
            return f"Order {order.number} is {self.status}, not {order.status}: {self.progress}"
        if self._output.get("courier_attempts") != order.courier_attempts:
            return f"Order {order.number} did not take {order.courier_attempts} attempts: {self.progress}"
        if order.status == "FAILED" and (self.compensation is None or self.compensation.status != "COMPLETED"):
            return f"Order {order.number} failed, but its failure workflow has not completed."
        return None


PrintLine = Callable[[str], object]
CONTROL_FLOW = ("FORK", "FORK_JOIN_DYNAMIC", "JOIN", "SWITCH", "SET_VARIABLE", "INLINE", "DO_WHILE", "SUB_WORKFLOW")
OPEN = ("SCHEDULED", "IN_PROGRESS")
HEADINGS = ("ORDER", "RUN", "STATUS", "RESULT", "Page in the admin")
UP_AND_CLEAR = "\x1b[{}F\x1b[J"


class Progress(Protocol):
    """Output of the progress of all orders after each refresh."""

    def show(self, orders: Sequence[WatchedOrder], seconds: float) -> None: ...


class LineProgress:
    """One line per ended attempt, for logs and simple terminals."""

    def __init__(self, say: PrintLine) -> None:
        self._say = say
        self._shown_tasks: set[str] = set()

    def show(self, orders: Sequence[WatchedOrder], seconds: float) -> None:
        for watched in orders:
            for task in sorted(filter(self._is_worth_showing, watched.tasks), key=lambda task: task.end_time):
                self._shown_tasks.add(task.task_id)
                self._say(f"{seconds:5.1f} s  {watched.order.number}  {describe_task(task)}")

    def _is_worth_showing(self, task: Task) -> bool:
        """Return True for tasks that ended, and for human tasks."""
        if task.task_id in self._shown_tasks:
            return False
        return task.task_type == "HUMAN" or (task.status not in OPEN and task.task_type not in CONTROL_FLOW)


class BoardProgress:
    """A table with one row per order, which is redrawn in place."""

    def __init__(self, say: PrintLine) -> None:
        self._say = say
        self._height = 0

    def show(self, orders: Sequence[WatchedOrder], seconds: float) -> None:
        width = shutil.get_terminal_size().columns - 1
        rows = [board_row(watched)[:width] for watched in orders] + [f"{seconds:.0f} s"]
        up = UP_AND_CLEAR.format(self._height) if self._height else ""
        self._height = len(rows)
        self._say(up + "\n".join(rows))


def board_row(watched: WatchedOrder) -> str:
    """Return the row of an order."""
    ended = sum(task.status not in OPEN for task in watched.tasks)
    now = watched.progress if watched.is_settled else ", ".join(watched.open_steps)
    return f"{watched.order.number}  {watched.status:<10} {ended:>3} tasks done  {now}"


def describe_task(task: Task) -> str:
    """Return the result of an attempt."""
    attempt = f" on attempt {task.retry_count + 1}" if task.retry_count else ""
    reason = f": {task.reason_for_incompletion}" if task.reason_for_incompletion else ""
    verb = "waits for a person" if task.status in OPEN else task.status.lower().replace("_", " ")
    return f"{task.reference_task_name} {verb}{attempt}{reason}"


def summary_table(orders: Sequence[WatchedOrder], url: str) -> str:
    """Return a table of all runs: order, run, status, result, and the address of the page."""
    rows = [HEADINGS] + [row for watched in orders for row in summary_rows(watched, url)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n\n".join(format_row(row, widths) for row in rows)


def summary_rows(watched: WatchedOrder, url: str) -> Iterable[tuple[str, ...]]:
    """Yield the rows of an order's run and of its failure workflow."""
    number = watched.order.number
    yield number, watched.run_id, watched.status, watched.progress, admin_page(url, watched.run_id)
    if run := watched.compensation:
        yield f"  {number}", run.workflow_id, run.status, describe_compensation(run), admin_page(url, run.workflow_id)


def describe_compensation(run: Workflow) -> str:
    """Return what the failure workflow of an order did."""
    if run.status != "COMPLETED":
        return f"Its failure workflow: {run.reason_for_incompletion or 'not completed yet'}"
    return f"Its failure workflow: {run.output.get('put_back')} items restored, customer notified."


def format_row(row: Sequence[str], widths: Sequence[int]) -> str:
    """Return two lines per run, because an address is too long for one."""
    *short, sentence, address = row
    start = "  ".join(text.ljust(width) for text, width in zip(short, widths, strict=True))
    return f"{start}  {sentence}\n{' ' * (widths[0] + 2)}{address}"


def next_steps(orders: Sequence[WatchedOrder], url: str, has_token: bool) -> str:
    """Return the pages to open after the demo, and the command that approves an order without them."""
    pages = [
        ("what happened", "admin/"),
        ("the runs", "admin/conductor/run/"),
        ("why orders failed", "admin/failures/"),
    ]
    waiting = next((watched for watched in orders if watched.is_waiting_for_person), None)
    if waiting:
        pages.insert(0, (f"approve order {waiting.order.number}", "admin/human-tasks/"))
    lines = [f"  {purpose:<21} {url}/{page}" for purpose, page in pages]
    text = "\n".join(
        ["Open in your browser, and log in as admin with the password that the server printed:", "", *lines]
    )
    if not waiting:
        return text
    token = ' -H "X-Authorization: $TOKEN"' if has_token else ""
    return (
        f"{text}\n\nAfter the approval start `make demo` again: its workers continue with the waiting tasks.\n"
        "To approve without a browser, or to refuse with false:\n\n"
        f"  curl -X POST {url}/api/tasks/{waiting.run_id}/{APPROVAL}/COMPLETED{token} \\\n"
        "       -H 'Content-Type: application/json' -d '{\"approved\": true}'"
    )


WORKERS = "examples.demo.workers"
LIMIT_SECONDS = 50
LOOK_EVERY_SECONDS = 0.3


def run_demo(url: str, progress: Progress, say: Callable[[str], object]) -> list[WatchedOrder]:
    """Process the six orders on the server at this address.

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
    say(f"\n{summary_table(orders, url)}")
    return orders


def register_definitions(clients: OrkesClients) -> None:
    """Register the tasks and workflows. Existing ones are replaced."""
    for task in task_definitions():
        clients.get_metadata_client().register_task_def(task)
    for workflow in workflow_definitions(clients.get_workflow_executor()):
        workflow.register(overwrite=True)


def fulfill_orders(
    configuration: Configuration, url: str, progress: Progress, say: Callable[[str], object]
) -> list[WatchedOrder]:
    """Start the workers and the orders, and watch the orders until all are settled."""
    client = OrkesClients(configuration).get_workflow_client()
    # The SDK's setting for all workers of the process. A single one has the argument `worker_id` of its decorator.
    os.environ.setdefault("conductor.worker.all.worker_id", WORKER_ID)
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


def watch_orders(client: WorkflowClient, orders: list[WatchedOrder], progress: Progress) -> None:
    """Refresh the orders until all are settled or the time is over."""
    began = time.monotonic()
    while (seconds := time.monotonic() - began) < LIMIT_SECONDS:
        for watched in orders:
            watched.refresh(client)
        progress.show(orders, seconds)
        if all(watched.is_settled for watched in orders):
            return
        time.sleep(LOOK_EVERY_SECONDS)
