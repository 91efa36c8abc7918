"""A server of the test kit: its web server, its time, and the commands that a test sends over its channel."""

import json
import os
import shutil
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

from ..notifications import wake_all_and_close
from ..utils import clock
from ..wsgi import application
from .time_control import ServedTasks, TimeControl, has_ended, has_open_task
from .web_server import ThreadedWebServer

DATABASE = "conductor.sqlite3"
TICK_SECONDS = 0.05
Document = dict[str, Any]


def run_server(channel: socket.socket, folder: Path, template: Path) -> None:
    """Serve in the folder until the test closes the channel, and end the process."""
    try:
        os.chdir(folder)
        log = os.open("server.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        shutil.copyfile(template, DATABASE)
        _serve(channel)
    finally:
        sys.stderr.flush()
        os._exit(0)


def _serve(channel: socket.socket) -> None:
    control = TimeControl()
    web = ThreadedWebServer(application)
    with web.running() as url:
        Thread(target=_execute_due_forever, args=(control,), daemon=True).start()
        lines = channel.makefile("rwb")
        lines.write(json.dumps({"url": url}).encode() + b"\n")
        lines.flush()
        for line in lines:
            lines.write(json.dumps(_answer(control, json.loads(line))).encode() + b"\n")
            lines.flush()


def _execute_due_forever(control: TimeControl) -> None:
    """Execute due timers and jobs in real time, for tests that skip nothing."""
    while True:
        control.execute_due()
        sleep(TICK_SECONDS)


def _answer(control: TimeControl, request: Document) -> Document:
    before = clock.now()
    try:
        answer = COMMANDS[request["command"]](control, request)
    except Exception as error:
        traceback.print_exc()
        return {"state": "failed", "error": f"{type(error).__name__}: {error}"}
    return {**answer, "now": clock.now(), "skipped": clock.now() - before}


def _advance(control: TimeControl, request: Document) -> Document:
    until = clock.now() + request["milliseconds"]
    return control.skip(ServedTasks.parse(request), monotonic() + request["seconds"], until=until)


def _skip(control: TimeControl, request: Document) -> Document:
    """Skip time until the run has ended, or has an open task of a reference."""
    run_id, ref = request["run"], request["ref"]
    is_reached: Callable[[], bool] = (lambda: has_open_task(run_id, ref)) if ref else (lambda: has_ended(run_id))
    return control.skip(ServedTasks.parse(request), monotonic() + request["seconds"], is_reached)


def _close_polls(control: TimeControl, request: Document) -> Document:
    """Let the polls of workers end at once, because the test ends."""
    wake_all_and_close()
    return {"state": "reached"}


COMMANDS: dict[str, Callable[[Any, Document], Document]] = {
    "advance": _advance,
    "skip": _skip,
    "close": _close_polls,
    "time": lambda control, request: {"state": "reached"},
}
