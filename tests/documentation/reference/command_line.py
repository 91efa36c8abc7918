"""The subcommands of `conductor-app` with their options, from their parsers."""

import argparse
import re

from django.core.management import load_command_class
from django.core.management.base import BaseCommand

from conductor_app.processes.command_line import FURTHER_COMMANDS, SUBCOMMANDS

from .tables import code, escape, table

CELERY = "`{program} --help` lists the options of Celery, which this subcommand accepts."
GUNICORN = "`gunicorn --help` lists the options that this subcommand accepts."
DEFAULT = re.compile(r" \(default: [^),]*\)")
OTHERS = {"celery": CELERY, "gunicorn": GUNICORN}


def write_commands() -> str:
    """Return a section for each subcommand."""
    return "\n".join([
        *(_section(name, each.arguments, each.summary) for name, each in SUBCOMMANDS.items()),
        "## For particular features\n",
        *(_section(name, ("django", name), summary, "###") for name, summary in FURTHER_COMMANDS.items()),
    ])  # fmt: skip


def _section(name: str, arguments: tuple[str, ...], summary: str, level: str = "##") -> str:
    program = arguments[0]
    if program != "django":
        usage = OTHERS[program].format(program="celery worker" if name == "worker" else "celery beat")
        return f"{level} {name}\n\n{_sentence(summary)} {usage}\n"
    command = load_command(arguments[1])
    text = f"{level} {name}\n\n{_sentence(summary)}"
    if arguments[1] != name:
        text += f" (`manage.py {arguments[1]}`)"
    return f"{text}\n\n{_options(command, arguments[1])}"


def load_command(name: str) -> BaseCommand:
    return load_command_class("conductor_app.server", name)


def _options(command: BaseCommand, name: str) -> str:
    """Return a table of the options, without those that Django's commands have."""
    present = load_command_class("django.core", name) if name == "migrate" else BaseCommand()
    shared = {action.dest for action in present.create_parser("", "")._actions}
    parser = command.create_parser("conductor-app", "command")
    rows = [_row(action) for action in parser._actions if action.dest not in shared]
    return table(("option", "meaning", "default"), rows) if rows else ""


def _row(action: argparse.Action) -> tuple[str, str, str]:
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    names = ", ".join(code(name + value) for name in action.option_strings) or code(action.metavar or action.dest)
    help_text = DEFAULT.sub("", action.help or "").replace("%(default)s", str(action.default))
    has_default = action.default not in (None, False, True, [], argparse.SUPPRESS, "") and action.option_strings
    return names, escape(help_text.replace("%%", "%").strip()), code(action.default) if has_default else ""


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
