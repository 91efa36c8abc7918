"""Workers of the official Python SDK: one process for each task type, with the SDK's defaults.

`python -m qa.bench.sdk_workers URL KEY SECRET TYPE...` prints a line when all of them work, and serves until its
standard input ends. `SDK_DEFINITION` must be a chain of the task types.
"""

import sys
import time
from collections.abc import Sequence

from conductor.client.automator.task_handler import TaskHandler
from conductor.client.configuration.configuration import Configuration
from conductor.client.configuration.settings.authentication_settings import AuthenticationSettings
from conductor.client.orkes_clients import OrkesClients
from conductor.client.worker.worker import Worker

from qa.bench.workloads import SDK_DEFINITION

START_SECONDS = 60


def do_step(order: int) -> dict:
    return {"done": True, "order": order}


def serve(url: str, key: str, secret: str, types: Sequence[str]) -> None:
    """Start the workers, complete one run with them, and serve until standard input ends.

    Raises:
        SystemExit: the run has not completed.
    """
    settings = AuthenticationSettings(key, secret) if key else None
    configuration = Configuration(server_api_url=url, authentication_settings=settings, log_level="CRITICAL")
    workers = [Worker(task_definition_name=name, execute_function=do_step) for name in types]
    with TaskHandler(workers, configuration, scan_for_annotated_workers=False) as handler:
        handler.start_processes()
        client = OrkesClients(configuration).get_workflow_client()
        run, ends_at = client.start_workflow_by_name(SDK_DEFINITION, {"order": 1}), time.monotonic() + START_SECONDS
        while client.get_workflow_status(run, False, False).status != "COMPLETED":
            if time.monotonic() > ends_at:
                raise SystemExit(f"The run {run} has not completed within {START_SECONDS} s.")
            time.sleep(0.1)
        print("ready", flush=True)
        sys.stdin.read()
        handler.stop_processes()


def main() -> None:
    _, url, key, secret, *types = sys.argv
    # Worker processes import this module by its name.
    from qa.bench.sdk_workers import serve as serve_importable

    serve_importable(url, key, secret, types)


if __name__ == "__main__":
    main()
