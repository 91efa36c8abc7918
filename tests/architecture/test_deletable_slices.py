"""A server without a slice: its folder and its lines in `site/` are deleted from a copy, which starts and works."""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from tests.architecture.modules import APP, imports
from tests.forked_interpreter import run_forked
from tests.free_port import free_port

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SLICES = {"ai": "/api/integrations/provider", "taskcluster": "/api/queue/v1/ping"}
"""The slices that can be deleted, each with an address of its own."""
PLACES = ("site", "apps.py", "urls.py")
"""The modules, besides a slice itself, that name it."""
OWN_FILES = {
    "ai": (),
    "taskcluster": (
        "server/management/commands/expire.py",
        "server/management/commands/messages.py",
    ),
}
"""Files of a slice outside of its folder: Django looks for commands in one folder only. They are deleted with it."""
SERVER = """
import sys
from wsgiref.simple_server import make_server
from conductor_app.wsgi import application
make_server("127.0.0.1", int(sys.argv[1]), application).serve_forever()
"""
JOBS = """
import os
import django
os.environ["DJANGO_SETTINGS_MODULE"] = "conductor_app.settings.embedded"
django.setup()
from conductor_app.processes import jobs
for job in (jobs.sweep, jobs.work, jobs.alerts, jobs.prune):
    job()
"""
START_SECONDS = 120
DEFINITION = {
    "name": "one_step",
    "version": 1,
    "ownerEmail": "owner@example.com",
    "tasks": [{"name": "pack", "taskReferenceName": "pack", "type": "SIMPLE"}],
}


@pytest.fixture(params=SLICES)
def slice_name(request):
    return request.param


def test_only_the_listed_places_import_a_slice(slice_name):
    own = {APP / slice_name, *(APP / file for file in OWN_FILES[slice_name])}
    others = [path for path in APP.rglob("*.py") if own.isdisjoint({path, *path.parents})]
    found = {str(path.relative_to(APP)) for path in others if imports_slice(path, slice_name)}

    assert {place for place in found if not place.startswith(PLACES)} == set()


def test_a_server_without_a_slice_starts_and_works(slice_name, tmp_path):
    copy = copy_without(slice_name, tmp_path / "server")
    environment = {"PATH": os.environ["PATH"], "VAR_DIR": str(tmp_path / "var")}
    for arguments in (("manage.py", "check"), ("manage.py", "migrate"), ("-c", JOBS)):
        done = run_forked(*arguments, env=environment, cwd=copy)
        assert done.returncode == 0, done.stderr[-3000:]
        assert "Traceback" not in done.stdout + done.stderr

    with served(copy, environment) as call:
        for address in ("/health", "/api-docs", "/admin/login/"):
            assert call("GET", address)[0] == 200
        assert call("GET", SLICES[slice_name])[0] == 404
        assert call("POST", "/api/metadata/workflow", DEFINITION)[0] == 200
        status, run_id = call("POST", "/api/workflow/one_step", {})
        assert status == 200
        assert json.loads(call("GET", f"/api/workflow/{run_id}")[1])["status"] == "RUNNING"
        assert json.loads(call("GET", "/api/tasks/poll/pack")[1])["workflowInstanceId"] == run_id


def imports_slice(path: Path, slice_name: str, node: ast.AST | None = None) -> bool:
    """Return True if a module, or one of its statements, imports from a slice."""
    found = imports(path, node or ast.parse(path.read_text()))
    return any(f"{module}.".startswith(f"conductor_app.{slice_name}.") for _, module in found)


def copy_without(slice_name: str, target: Path) -> Path:
    """Copy the server, without the folder of a slice and without the lines that name what they import from it."""
    ignored = shutil.ignore_patterns("__pycache__", "node_modules", slice_name)
    target.mkdir()
    shutil.copy(ROOT / "manage.py", target)
    shutil.copytree(APP, target / "conductor_app", ignore=ignored)
    for file in OWN_FILES[slice_name]:
        (target / "conductor_app" / file).unlink()
    (target / "templates").symlink_to(ROOT / "templates")
    for place in PLACES:
        path = APP / place
        for module in path.rglob("*.py") if path.is_dir() else [path]:
            if slice_name in module.read_text():
                (target / module.relative_to(ROOT)).write_text(delete_lines(module, slice_name))
    return target


def delete_lines(path: Path, slice_name: str) -> str:
    """Return the text of a module without its imports from a slice, and without the lines that use their names.

    A line is a statement, or an item of a literal or a call that stands alone on its lines.
    """
    text = path.read_text()
    tree, lines = ast.parse(text), text.splitlines(keepends=True)
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    names: set[str] = set()
    deleted: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and imports_slice(path, slice_name, node):
            names |= {alias.asname or alias.name for alias in node.names}
            deleted |= {*range(node.lineno, node.end_lineno + 1)}
    for node in ast.walk(tree):
        if names_slice(node, names, slice_name):
            while not (span := own_lines(node, parents.get(node), lines)):
                node = parents[node]
            deleted |= span
    return "".join(line for number, line in enumerate(lines, 1) if number not in deleted)


def names_slice(node: ast.AST, names: set[str], slice_name: str) -> bool:
    """Return True if a node is one of the imported names, the name of the slice, or the path of one of its modules."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value in {*names, slice_name} or node.value.startswith(f"conductor_app.{slice_name}.")
    return isinstance(node, ast.Name) and node.id in names


def own_lines(node: ast.AST, parent: ast.AST | None, lines: list[str]) -> set[int]:
    """Return the lines of a node if no other code is on them."""
    if not isinstance(node, (ast.expr, ast.stmt)):
        return set()
    first, last = node, node
    if isinstance(parent, ast.Dict):
        place = parent.values.index(node) if node in parent.values else parent.keys.index(node)
        first, last = parent.keys[place] or node, parent.values[place]
    before = lines[first.lineno - 1].encode()[: first.col_offset].decode().strip()
    after = lines[last.end_lineno - 1].encode()[last.end_col_offset :].decode().partition("#")[0].strip()
    is_alone = before in ("", "**", "*") and after in ("", ",")
    return {*range(first.lineno, last.end_lineno + 1)} if is_alone else set()


@contextmanager
def served(copy: Path, environment: dict[str, str]) -> Iterator:
    """Serve the copy, and yield the function that sends a request and returns the status and the body."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(port)], cwd=copy, env=environment)

    def call(method: str, path: str, document: object = None) -> tuple[int, str]:
        body = None if document is None else json.dumps(document).encode()
        request = Request(f"http://127.0.0.1:{port}{path}", body, {"Content-Type": "application/json"}, method=method)
        try:
            with urlopen(request, timeout=60) as reply:
                return reply.status, reply.read().decode()
        except URLError as error:
            if not hasattr(error, "code"):
                raise
            return error.code, error.read().decode()

    try:
        ends_at = monotonic() + START_SECONDS
        while process.poll() is None and monotonic() < ends_at:
            with suppress(URLError, ConnectionError):
                call("GET", "/health/live")
                break
            sleep(0.1)
        yield call
    finally:
        process.kill()
        process.wait()
