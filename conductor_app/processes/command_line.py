"""The console script `conductor-app`, and `manage.py` in a checkout. Both execute the same commands."""

import gc
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

from conductor_app.telemetry import folder

PROFILES = {False: "conductor_app.settings.embedded", True: "conductor_app.settings.cluster"}
WORKER_OPTIONS = ("--without-gossip", "--without-mingle", "--without-heartbeat")
"""Workers need no events of one another. Without these options, each worker sends and reads messages all the time."""


@dataclass(frozen=True)
class Subcommand:
    """A subcommand of `conductor-app`: the arguments of the program that executes it, and its line of the help."""

    arguments: tuple[str, ...]
    summary: str


SUBCOMMANDS = {
    "serve": Subcommand(
        ("django", "serve"), "run a whole server on this machine, with SQLite unless DATABASE_URL is set"
    ),
    "migrate": Subcommand(("django", "migrate"), "create or update the tables of the database"),
    "worker": Subcommand(("celery", "worker", *WORKER_OPTIONS), "run a Celery worker: sweeps and built-in tasks"),
    "beat": Subcommand(("celery", "beat"), "run Celery beat, which starts the sweeps"),
    "web": Subcommand(("gunicorn",), "run the web processes with gunicorn"),
    "user": Subcommand(("django", "user"), "create an administrator, or reset the password of a user"),
    "key": Subcommand(("django", "create_access_key"), "create an access key for an application"),
    "test": Subcommand(("django", "test_folder"), "execute the tests of a folder of definitions, without a server"),
    "schema": Subcommand(("django", "print_definition_schema"), "print the JSON Schema of definitions, for editors"),
    "import": Subcommand(("django", "import_conductor"), "import definitions from a Conductor server"),
    "check": Subcommand(("django", "check_upgrade"), "report before an upgrade what would be slow or incompatible"),
    "backup": Subcommand(("django", "backup"), "write the database and the payloads into one archive"),
    "restore": Subcommand(("django", "restore"), "replace the database by the content of such an archive"),
    "version": Subcommand(
        ("django", "show_versions"), "print the versions of the server, Python, Django and the database"
    ),
}
SERVER_PACKAGES = {
    "authlib", "axes", "celery", "django_celery_beat", "gunicorn", "kombu", "platformdirs", "pyotp", "segno",
    "structlog", "whitenoise",
}  # fmt: skip
"""The modules that are installed with the extra `server` only."""
REMOTE_SUMMARIES = {
    "plan": "show what applying a folder of definitions would change",
    "apply": "create and change the definitions of a folder on the server",
    "drift": "show what was edited on the server since a folder was applied",
    "export": "write edits on the server back into a folder",
}
"""Commands against any server, with the address in CONDUCTOR_SERVER_URL or the option --url."""
FURTHER_COMMANDS = {
    "expire": "delete what has expired on Taskcluster's side",
    "listen_events": "receive events from brokers",
    "messages": "print the messages of a Taskcluster task or group",
    "reseal_secrets": "encrypt secrets with the newest key",
    "reset_sign_in": "remove the second factor of a user, and unlock the account",
    "restore_runs": "restore archived runs for the pages, or print them",
    "serve_groups": "run the built-in tasks of isolation groups",
}


def main() -> None:
    """Execute a subcommand of `conductor-app`."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", PROFILES[any(map(is_set, ("DATABASE_URL", "DATABASE_URL_FILE")))])
    name, arguments = (sys.argv[1:2] or ["help"])[0], sys.argv[2:]
    if name in ("help", "-h", "--help"):
        if not arguments:
            print(describe_subcommands())
            return
        name, arguments = arguments[0], ["--help"]
    if name == "--version":
        name = "version"
    if name == "test":
        # The tests are executed in memory: they need neither the database nor the key of a server.
        os.environ["DJANGO_SETTINGS_MODULE"] = PROFILES[False]
        os.environ.setdefault("SECRET_KEY", secrets.token_urlsafe(50))
    with wrong_configuration_reported():
        if name in REMOTE_SUMMARIES:
            execute_remote(name, arguments)
        elif name in FURTHER_COMMANDS:
            execute_django(name, arguments)
        elif name in SUBCOMMANDS:
            program, *fixed = SUBCOMMANDS[name].arguments
            PROGRAMS[program]([*fixed, *arguments])
        else:
            sys.exit(f"conductor-app: there is no subcommand {name!r}. `conductor-app help` lists them.")


def is_set(name: str) -> bool:
    """Return True if the environment variable has a value."""
    return bool(os.environ.get(name, "").strip())


def manage() -> None:
    """Execute a command of `manage.py`, on the embedded profile unless DJANGO_SETTINGS_MODULE names another one."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", PROFILES[False])
    with wrong_configuration_reported():
        if sys.argv[1:2] == ["serve"]:
            serve(sys.argv)
        else:
            execute_from_command_line(sys.argv)


@contextmanager
def wrong_configuration_reported() -> Iterator[None]:
    """Exit with a message that says what to do for a wrong variable, and without the extra `server`."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in SERVER_PACKAGES:
            raise
        sys.exit(
            f"conductor-app: the package {error.name}, which only a server needs, is missing. "
            "Install conductor-app with its extra `server`: conductor-app[server]"
        )
    except ImproperlyConfigured as error:
        sys.exit(f"conductor-app: {error}")


def execute_remote(name: str, arguments: Sequence[str]) -> None:
    """Execute a command against a server."""
    from conductor_app.tools.remote import folders

    folders.execute(name, arguments)


def describe_subcommands() -> str:
    """Return the help of `conductor-app`."""
    rows = {name: subcommand.summary for name, subcommand in SUBCOMMANDS.items()}
    rows["help"] = "print this help, or with the name of a subcommand its options"
    return "\n".join([
        "Usage: conductor-app SUBCOMMAND [OPTIONS]",
        "",
        *(f"  {name:<20}{summary}" for name, summary in rows.items()),
        "",
        "Against any server, by CONDUCTOR_SERVER_URL or --url:",
        "",
        *(f"  {name:<16}{summary}" for name, summary in REMOTE_SUMMARIES.items()),
        "",
        "For operators of particular features:",
        "",
        *(f"  {name:<20}{summary}" for name, summary in FURTHER_COMMANDS.items()),
        "",
        "Environment variables configure the server. With DATABASE_URL it uses the profile of a cluster: PostgreSQL,",
        "Redis, and the processes web, worker and beat. Otherwise `serve` runs everything, with its data in VAR_DIR.",
    ])  # fmt: skip


def execute_django(name: str, arguments: Sequence[str]) -> None:
    """Execute a management command."""
    argv = ["conductor-app", name, *arguments]
    if name == "serve":
        serve(argv)
    else:
        execute_from_command_line(argv)


def serve(argv: list[str]) -> None:
    """Execute `serve`: prepare the folder of shared metrics before any module loads them."""
    # Loading the modules of all processes creates no garbage, but a fifth of the time is spent looking for it.
    gc.disable()
    folder.empty_folder()
    try:
        execute_from_command_line(argv)
    finally:
        folder.remove_folder()


def execute_celery(arguments: Sequence[str]) -> None:
    """Execute a command of Celery with the application of this project."""
    from celery.__main__ import main as execute

    sys.argv = ["celery", "--app", "conductor_app", *arguments]
    execute()


def execute_gunicorn(arguments: Sequence[str]) -> None:
    """Execute gunicorn with the settings and the application of this project."""
    from gunicorn.app.wsgiapp import run

    sys.argv = [
        "gunicorn",
        "--config",
        "python:conductor_app.processes.gunicorn_config",
        *arguments,
        "conductor_app.wsgi",
    ]
    run()


PROGRAMS: dict[str, Callable[[list[str]], None]] = {
    "django": lambda argv: execute_django(argv[0], argv[1:]),
    "celery": execute_celery,
    "gunicorn": execute_gunicorn,
}
