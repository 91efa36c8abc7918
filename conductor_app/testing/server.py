"""A server for one test: its definitions, workers, runs, and its time."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from os import PathLike, fspath
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from ..tools.remote.client import ApiClient, ServerError
from ..tools.remote.files import FolderError, read_folder
from .runs import UNITS, RunNotEnded, StartedRun, TaskAttempt, format_span
from .server_host import ServerConnection, TestKitError

if TYPE_CHECKING:
    from conductor.client.configuration.configuration import Configuration
    from conductor.client.orkes_clients import OrkesClients

    from .workers import Source, WorkerThreads

Document = dict[str, Any]
TIMEOUT_SECONDS = 30.0
"""The longest real time of a wait."""
LABEL = "test-kit"
LOOK_SECONDS = 0.02
PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)\s*")
Duration = str | float | timedelta


class Server:
    """A server with a database of its own. `url`: its address. `timeout`: the longest real time of a wait in seconds.

    The time of the server is that of the machine, until a test advances it or skips times in which nothing happens.
    """

    def __init__(self, connection: ServerConnection, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self._connection = connection
        self._workers: WorkerThreads | None = None
        self.url = connection.url
        self.timeout = timeout
        self.api = ApiClient(connection.url)

    @property
    def configuration(self) -> "Configuration":
        """Return the configuration of the Python SDK for this server."""
        from conductor.client.configuration.configuration import Configuration

        configuration = Configuration(server_api_url=f"{self.url}/api")
        # The variables of the SDK may have a key for another server.
        configuration.authentication_settings = None
        return configuration

    @property
    def clients(self) -> "OrkesClients":
        """Return the clients of the Python SDK for this server."""
        from conductor.client.orkes_clients import OrkesClients

        return OrkesClients(self.configuration)

    def load(self, folder: str | PathLike[str]) -> None:
        """Save the definitions of a folder or file, in YAML or JSON, as `conductor-app apply` does.

        Raises:
            TestKitError: when a file cannot be read, or a definition is invalid, with all errors.
        """
        try:
            documents = read_folder(fspath(folder))
            request = {"label": LABEL, "documents": [each.value for each in documents], "overwrite": True}
            plan = self.api.post("definitions", "plan", body=request)
            result = plan if plan["isRefused"] else self.api.post("definitions", "apply", body=request)
        except (FolderError, ServerError) as error:
            raise TestKitError(str(error)) from error
        problems = []
        for item in result["items"]:
            place = documents[item["document"]].place if "document" in item else lambda _path="": fspath(folder)
            errors = item.get("validationErrors") or ()
            problems += [f"{place(each['path'])}: {each['path']}: {each['message']}" for each in errors]
            if not errors and (problem := item.get("problem") or item.get("error")):
                problems.append(f"{place()}: {problem}")
        if problems:
            raise TestKitError("The definitions cannot be saved:\n" + "\n".join(problems))

    def work(self, *workers: "Source", **functions: Callable[..., Any]) -> None:
        """Start workers of the Python SDK in threads of this process. They end with the test.

        `workers`: functions with the decorator `@worker_task`, modules with such functions, or `Worker` objects.
        `functions`: by the name of the task, functions without the decorator, such as replacements for a test.

        Raises:
            TestKitError: when one of them is no worker, or the SDK is not installed.
        """
        from .workers import WorkerThreads, find_workers

        found = find_workers(workers, functions)
        if self._workers is None:
            self._workers = WorkerThreads(self.configuration)
        self._workers.start(found)

    def stop_workers(self) -> None:
        """Stop all workers, after their current tasks.

        Raises:
            TestKitError: when one does not end.
        """
        if self._workers is None:
            return
        self._workers.tell_to_stop()
        if left := self._workers.join():
            raise TestKitError(f"These workers do not end, because their functions do not return: {', '.join(left)}.")

    def start(self, workflow: str, input: Document | None = None, **options: Any) -> StartedRun:
        """Start a workflow, and return its run. `options`: further fields of Conductor's request, such as `version`.

        Raises:
            TestKitError: when the server refuses it, for example because there is no such workflow.
        """
        try:
            run_id = self.api.post("workflow", body={"name": workflow, "input": input or {}, **options})
        except ServerError as error:
            raise TestKitError(str(error)) from error
        return StartedRun(self.api, run_id, self._wait_for)

    def run(
        self,
        workflow: str,
        input: Document | None = None,
        *,
        skip_time: bool = True,
        timeout: float | None = None,
        **options: Any,
    ) -> StartedRun:
        """Start a workflow, and wait until its run has ended. Parameters as for `start` and `StartedRun.wait`.

        Raises:
            TestKitError: when the server refuses it.
            RunNotEnded: when it does not end.
        """
        return self.start(workflow, input, **options).wait(skip_time=skip_time, timeout=timeout)

    def now(self) -> datetime:
        """Return the time of the server."""
        return datetime.fromtimestamp(self._connection.send("time")["now"] / 1000, UTC)

    def advance(self, duration: Duration, *, timeout: float | None = None) -> None:
        """Let time pass on the server: "2h", "1d 30m", a number of seconds, or a timedelta.

        Everything that is due in between happens at its time: timers, retries, schedules, lost leases and timeouts. The
        workers of the test do their tasks before the time continues. `timeout`: the longest real time in seconds.

        Raises:
            TestKitError: when a worker does not return in that time.
        """
        milliseconds, seconds = parse_duration(duration), self._seconds(timeout)
        answer = self._connection.send("advance", milliseconds=milliseconds, seconds=seconds, **self._served())
        if answer["state"] != "reached":
            raise TestKitError(
                f"The time of the server was not advanced by {format_span(milliseconds)} within {seconds:g} s, but by "
                f"{format_span(answer['skipped'])}. {_describe_open_tasks(answer)}"
            )

    def close(self) -> None:
        """Stop the workers, and end the server."""
        try:
            if self._workers is not None:
                self._workers.tell_to_stop()
                self._connection.send("close")
                self._workers.join()
        finally:
            self._connection.close()

    def _seconds(self, timeout: float | None) -> float:
        return self.timeout if timeout is None else timeout

    def _served(self) -> Document:
        if self._workers is None:
            return {"tasks": [], "workers": []}
        return {"tasks": self._workers.served_tasks(), "workers": self._workers.ids()}

    def _wait_for(self, run: StartedRun, ref: str, skip_time: bool, timeout: float | None) -> None:
        seconds = self._seconds(timeout)
        if skip_time:
            answer = self._connection.send("skip", run=run.id, ref=ref, seconds=seconds, **self._served())
        else:
            answer = self._look_for(run, ref, seconds)
        run.refresh()
        if answer["state"] == "reached":
            return
        goal = f"does not reach the step {ref!r}" if ref else "does not end"
        raise RunNotEnded(f"The run {goal}. {self._explain(run, answer, seconds)}\n\n{run}")

    def _look_for(self, run: StartedRun, ref: str, seconds: float) -> Document:
        """Wait in real time."""
        ends_at = monotonic() + seconds
        while not (run.refresh().has_ended or (ref and any(_is_open(each) for each in run.attempts(ref)))):
            if monotonic() > ends_at:
                return {"state": "late", "tasks": [], "skipped": 0}
            sleep(LOOK_SECONDS)
        return {"state": "reached"}

    def _explain(self, run: StartedRun, answer: Document, seconds: float) -> str:
        """Return why a wait has failed, and what to do."""
        if answer["state"] == "late":
            return f"{seconds:g} s have passed{_describe_skipped(answer)}. {_describe_open_tasks(answer)}"
        served = {name for name, _domain in self._served()["tasks"]}
        hints = {
            f"No worker of this test does {each.name!r}: start one by server.work, or report its result by "
            f"run.complete({each.ref!r}, {{...}})."
            for each in run.all_attempts
            if _is_open(each) and each.is_for_workers and each.name not in served
        }
        return " ".join(["Nothing is due at any later time.", *sorted(hints)])


def parse_duration(duration: Duration) -> int:
    """Return a duration in milliseconds. A number is in seconds."""
    if isinstance(duration, timedelta):
        milliseconds = duration / timedelta(milliseconds=1)
    elif isinstance(duration, str):
        parts = PART.findall(duration)
        if not parts or PART.sub("", duration):
            raise ValueError(f'{duration!r} is not a duration. Write it as "2h", "1d 30m", "90s" or "500ms".')
        milliseconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    else:
        milliseconds = float(duration) * 1_000
    if milliseconds < 0:
        raise ValueError(f"{duration!r} is negative. The time of a server can only be advanced.")
    return round(milliseconds)


def _is_open(attempt: TaskAttempt) -> bool:
    return attempt.status in ("SCHEDULED", "IN_PROGRESS")


def _describe_skipped(answer: Document) -> str:
    return f", and {format_span(answer['skipped'])} on the server" if answer.get("skipped") else ""


def _describe_open_tasks(answer: Document) -> str:
    held = sorted({each["name"] for each in answer["tasks"] if each["isHeld"]})
    if held:
        return f"The function of the worker has not returned: {', '.join(held)}."
    waiting = sorted({each["name"] for each in answer["tasks"]})
    return f"The worker has not taken its task: {', '.join(waiting)}." if waiting else ""
