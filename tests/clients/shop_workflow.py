"""The common setup of SDK tests: a workflow of a few tasks, its workers, and its end."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from conductor.client.automator.async_task_runner import AsyncTaskRunner
from conductor.client.automator.task_runner import TaskRunner
from conductor.client.configuration.configuration import Configuration
from conductor.client.http.models.start_workflow_request import StartWorkflowRequest
from conductor.client.http.models.task import Task
from conductor.client.http.models.task_def import TaskDef
from conductor.client.http.models.task_result import TaskResult
from conductor.client.http.models.workflow import Workflow
from conductor.client.orkes_clients import OrkesClients
from conductor.client.worker.worker import Worker
from conductor.client.workflow.conductor_workflow import ConductorWorkflow
from conductor.client.workflow.task.simple_task import simple_task

from tests.clients.wait_until import eventually

ENDED = ("COMPLETED", "FAILED", "TIMED_OUT", "TERMINATED")


class Shop:
    """Orders are workflows of SIMPLE tasks, each with the input of the whole order."""

    def __init__(self, clients: OrkesClients) -> None:
        self.workflows = clients.get_workflow_client()
        self.tasks = clients.get_task_client()
        self.metadata = clients.get_metadata_client()
        self._executor = clients.get_workflow_executor()

    def define(self, *task_types: str, name: str = "order", failure_workflow: str = "") -> ConductorWorkflow:
        """Register a workflow of these tasks, one after the other; each gets the order's input as its own."""
        workflow = self.written(*task_types, name=name).failure_workflow(failure_workflow)
        workflow.register(overwrite=True)
        return workflow

    def written(self, *task_types: str, name: str = "order") -> ConductorWorkflow:
        """Return a workflow that is not registered."""
        workflow = ConductorWorkflow(self._executor, name, version=1)
        for task_type in task_types:
            given = {"size": "${workflow.input.size}", "customer": "${workflow.input.customer}"}
            workflow >> simple_task(task_type, f"{task_type}_ref", given)
        return workflow.timeout_seconds(0)

    def policy(self, task_type: str, **fields: Any) -> None:
        """Register a task definition; by default it retries without delay."""
        fields = {"retry_count": 1, "retry_delay_seconds": 0, "response_timeout_seconds": 30, **fields}
        self.metadata.register_task_def(TaskDef(name=task_type, **fields))

    def start(self, name: str = "order", **fields: Any) -> str:
        """Start a workflow; its id."""
        return self.workflows.start_workflow(StartWorkflowRequest(name=name, **fields))

    def show(self, run_id: str) -> Workflow:
        return self.workflows.get_workflow(run_id)

    def wait_for_end(self, run_id: str) -> Workflow:
        """Wait until the workflow has ended and return it."""
        return eventually(lambda: (run := self.show(run_id)).status in ENDED and run)

    def take(self, task_type: str, **asked: Any) -> Task:
        """Poll until a task is returned."""
        found = self.tasks.batch_poll_tasks(task_type, worker_id="tester", timeout_in_millisecond=5000, **asked)
        assert found, f"No task of {task_type} came."
        return found[0]

    def report(self, task: Task, status: str = "COMPLETED", **fields: Any) -> str:
        """Report on a task that was polled."""
        return self.tasks.update_task(result_of(task, status, **fields))


def result_of(task: Task, status: str = "COMPLETED", **fields: Any) -> TaskResult:
    """Return a worker's result of a task."""
    return TaskResult(
        workflow_instance_id=task.workflow_instance_id,
        task_id=task.task_id,
        worker_id="tester",
        status=status,
        **fields,
    )


def worker(task_type: str, function: Callable[..., Any], **options: Any) -> Worker:
    """Return an SDK worker with the shortest poll interval that the SDK allows."""
    return Worker(task_definition_name=task_type, execute_function=function, poll_interval=20, **options)


@contextmanager
def serve_tasks(configuration: Configuration, *workers: Worker) -> Iterator[None]:
    """Serve tasks with the SDK's own runners, in threads of this process."""
    runners = [runner_of(worker, configuration) for worker in workers]
    threads = [Thread(target=run, args=(runner,), daemon=True) for runner in runners]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for runner in runners:
            runner._shutdown = True
        for thread in threads:
            thread.join(timeout=10)


def runner_of(worker: Worker, configuration: Configuration) -> TaskRunner | AsyncTaskRunner:
    """Return the runner that the SDK's TaskHandler would use."""
    is_async = inspect.iscoroutinefunction(worker.execute_function)
    return (AsyncTaskRunner if is_async else TaskRunner)(worker, configuration)


def run(runner: TaskRunner | AsyncTaskRunner) -> None:
    if isinstance(runner, AsyncTaskRunner):
        asyncio.run(runner.run())
    else:
        runner.run()
