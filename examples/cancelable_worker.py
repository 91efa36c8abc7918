"""A worker of the Python SDK that stops within a second after its task is canceled, for example by a termination.

    CONDUCTOR_SERVER_URL=http://127.0.0.1:8000/api python examples/cancelable_worker.py

While the worker executes a task, a thread waits for the task's end with one request, which the server keeps open. The
task that it returns has ended without the worker, because the worker has not reported yet.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from conductor.client.automator.task_handler import TaskHandler
from conductor.client.configuration.configuration import Configuration
from conductor.client.context.task_context import get_task_context
from conductor.client.http.api_client import ApiClient
from conductor.client.http.rest import ApiException
from conductor.client.worker.worker_task import worker_task

OPEN_STATUSES = ("SCHEDULED", "IN_PROGRESS")
WAIT_SECONDS = 30
FRAME_SECONDS = 0.1


@contextmanager
def cancellation_of(task_id: str) -> Iterator[Event]:
    """Yield an event that is set when the task ends during the block."""
    canceled, finished = Event(), Event()
    Thread(target=_wait_for_end, args=(task_id, canceled, finished), daemon=True).start()
    try:
        yield canceled
    finally:
        finished.set()


def _wait_for_end(task_id: str, canceled: Event, finished: Event) -> None:
    client = ApiClient(Configuration())
    while not finished.is_set():
        try:
            task = client.call_api(
                "/tasks/{taskId}",
                "GET",
                path_params={"taskId": task_id},
                query_params=[("waitForSeconds", WAIT_SECONDS)],
                response_type="Task",
                auth_settings=["api_key"],
                _return_http_data_only=True,
                _request_timeout=WAIT_SECONDS + 10,
            )
            is_open = task.status in OPEN_STATUSES
        except ApiException as error:
            # The workflow has been removed, or the server cannot be reached now.
            is_open = error.status != 404
            finished.wait(1)
        if not is_open:
            canceled.set()
            return


@worker_task(task_definition_name="render")
def render(frames: int) -> dict:
    """Render the frames of a film, until the task is canceled."""
    with cancellation_of(get_task_context().get_task_id()) as canceled:
        for frame in range(frames):
            # In place of the wait, a real worker renders one frame and then looks at `canceled.is_set()`.
            if canceled.wait(FRAME_SECONDS):
                # The server discards what a worker reports on a canceled task.
                return {"frames": frame, "stopped": True}
    return {"frames": frames}


if __name__ == "__main__":
    with TaskHandler(configuration=Configuration(), scan_for_annotated_workers=True) as handler:
        handler.start_processes()
        handler.join_processes()
