"""Output of the demo: progress while it runs, and a table at the end."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from conductor.client.http.models.task import Task
from conductor.client.http.models.workflow import Workflow

from .server import admin_page
from .watching import WatchedOrder
from .workflows import APPROVAL

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


def approval_command(watched: WatchedOrder, url: str, has_token: bool) -> str:
    """Return the command with which a user approves a waiting order."""
    token = ' -H "X-Authorization: $TOKEN"' if has_token else ""
    return (
        f"Order {watched.order.number} waits for an approval. Approve it, or refuse it with false:\n\n"
        f"  curl -X POST {url}/api/tasks/{watched.run_id}/{APPROVAL}/COMPLETED{token} \\\n"
        "       -H 'Content-Type: application/json' -d '{\"approved\": true}'\n\n"
        "Then start `make demo` again: its workers continue with the waiting tasks."
    )
