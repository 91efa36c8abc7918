"""Execute the tasks of a Django project by its functions with the decorator `worker_task`."""

import atexit
import os
import signal
import subprocess
from argparse import ArgumentParser, BooleanOptionalAction
from collections.abc import Mapping
from contextlib import suppress
from threading import Event, current_thread, main_thread
from time import monotonic
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.utils import autoreload

from conductor_app.db.database import alias
from conductor_app.definitions.commands import save_task
from conductor_app.definitions.models import TaskDefinition
from conductor_app.in_process.tasks import WorkerTask, find_tasks
from conductor_app.in_process.worker import WorkerProcess, project_tasks, start_background
from conductor_app.settings import conf

RESTART_SECONDS = 1.0
"""The pause before a process that has ended on its own is started again."""


class Command(BaseCommand):
    """`manage.py conductor_worker`: runs until SIGTERM or Ctrl-C."""

    help = "Execute tasks by the functions of this project that have the decorator worker_task."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--queue", action="append", dest="queues", metavar="NAME",
            help="Serve this queue: the name of a task, domain:name, or django_tasks.name for a queue of Django's "
            "tasks framework. Can be repeated. By default all.",
        )  # fmt: skip
        parser.add_argument("--threads", type=int, default=8, help="Tasks at the same time per process (default: 8).")
        parser.add_argument("--processes", type=int, default=1, help="Processes (default: 1).")
        parser.add_argument(
            "--grace", type=float, default=30, metavar="SECONDS",
            help="After a stop signal, the maximum wait for tasks that are executed (default: 30).",
        )  # fmt: skip
        parser.add_argument(
            "--background", action=BooleanOptionalAction, default=True,
            help="Handle timers, built-in tasks and periodic jobs, if no other process does.",
        )  # fmt: skip
        parser.add_argument(
            "--reload", action=BooleanOptionalAction, default=settings.DEBUG,
            help="Start again when a module changes (default: with DEBUG).",
        )  # fmt: skip

    def handle(self, *args: object, **options: Any) -> None:
        for name in ("threads", "processes"):
            if options[name] < 1:
                raise CommandError(f"--{name} must be at least 1.")
        if options["processes"] > 1:
            self._supervise(options["processes"], options["grace"])
        elif options["reload"]:
            autoreload.run_with_reloader(self._serve, **options)
        else:
            self._serve(**options)

    def _serve(self, *, queues: list[str] | None, threads: int, grace: float, background: bool, **_: object) -> None:
        connection_created.connect(plan_statements_once)
        tasks = select_tasks(queues)
        save_missing_definitions({queue: task for queue, task in tasks.items() if queue in find_tasks()})
        process, stopping = WorkerProcess(tasks, threads), Event()
        if current_thread() is main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: _stop(stopping))
        else:
            # The reloader ends the process from its main thread.
            atexit.register(process.release_unfinished)
        sweeps = start_background(stopping) if background else None
        self._say(f"Serving {', '.join(tasks)} with {threads} threads. Stop with Ctrl-C.")
        process.start()
        stopping.wait()
        unfinished = process.stop(grace)
        if sweeps is not None:
            sweeps.join(grace)
        self._say(f"Stopped. {unfinished} tasks were returned to their queues." if unfinished else "Stopped.")
        self.stdout.flush()
        if unfinished:
            # Their threads would keep the process.
            os._exit(0)

    def _supervise(self, count: int, grace: float) -> None:
        """Start processes, restart those that end, and stop them with this one."""
        stopping = Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopping.set())
        arguments = [*autoreload.get_child_arguments(), "--processes", "1", "--no-reload"]
        children = [self._start(arguments) for _ in range(count)]
        while not stopping.wait(RESTART_SECONDS):
            for position, child in enumerate(children):
                if (code := child.poll()) is not None:
                    self._say(f"A process ended with code {code}. Starting another one.")
                    children[position] = self._start(arguments)
        ends_at = monotonic() + grace + 10
        for child in children:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
        for child in children:
            try:
                child.wait(max(ends_at - monotonic(), 0))
            except subprocess.TimeoutExpired:
                child.kill()

    @staticmethod
    def _start(arguments: list[str]) -> "subprocess.Popen[bytes]":
        # In a session of its own, so that only this process receives Ctrl-C.
        return subprocess.Popen(arguments, start_new_session=True)

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _stop(stopping: Event) -> None:
    """Stop, or end at once at the second signal."""
    if stopping.is_set():
        os._exit(1)
    stopping.set()


def plan_statements_once(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Let PostgreSQL plan each prepared statement of a new connection once: planning a claim takes longer than it.

    The queries of a project are not prepared. `settings.services` has the same for the processes of a server.
    """
    if connection.alias == alias() and connection.vendor == "postgresql" and conf.sql_prepared:
        with connection.cursor() as cursor:
            cursor.execute("SET plan_cache_mode = force_generic_plan")


def select_tasks(queues: list[str] | None) -> Mapping[str, WorkerTask]:
    """Return the functions of these queues, by default all, after the modules `tasks` of the apps are imported.

    Raises:
        CommandError: when there is no function for a queue, or none at all.
    """
    tasks = project_tasks(queues or ())
    if unknown := [queue for queue in queues or () if queue not in tasks]:
        known = f" The functions serve: {', '.join(sorted(tasks))}." if tasks else ""
        raise CommandError(f"No function with the decorator worker_task serves {', '.join(unknown)}.{known}")
    if not tasks:
        raise CommandError(
            "No function has the decorator worker_task, and TASKS has no ConductorBackend. Apps have their functions "
            "in their module `tasks`."
        )
    return {queue: tasks[queue] for queue in queues or sorted(tasks)}


def save_missing_definitions(tasks: Mapping[str, WorkerTask]) -> None:
    """Create the definitions of tasks that have none. Without one, a task has no retries and no lease."""
    known = set(
        TaskDefinition.objects.filter(name__in=[task.name for task in tasks.values()]).values_list("name", flat=True)
    )
    for task in tasks.values():
        if task.name not in known:
            known.add(task.name)
            # Another process may create it at the same time.
            with suppress(IntegrityError):
                save_task(task.definition, "conductor_worker")
