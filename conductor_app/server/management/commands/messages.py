"""Print the Pulse messages of a standalone task, or of all tasks of a group, as JSON."""

import json
import re
from textwrap import indent
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db.models import Q

from conductor_app.runs.models import PulseMessage
from conductor_app.taskcluster.api.schemas import SLUGID_PATTERN
from conductor_app.taskcluster.commands.rows import to_wire


class Command(BaseCommand):
    """`manage.py messages TASK_OR_GROUP_ID`: exchanges and payloads, in order."""

    help = "Print the Pulse messages of a task or a group. With a broker, print those that are not delivered yet."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", metavar="TASK_OR_GROUP_ID")

    def run_from_argv(self, argv: list[str]) -> None:
        """Accept ids that begin with a dash, which would otherwise be parsed as options."""
        options, ids = (
            [argument for argument in argv if bool(re.match(SLUGID_PATTERN, argument)) is is_id]
            for is_id in (False, True)
        )
        super().run_from_argv([*options, *(["--", *ids] if ids else ())])

    def handle(self, *args: object, id: str, **options: Any) -> None:
        messages = PulseMessage.objects.filter(Q(task_id=id) | Q(group_id=id)).order_by("id")
        separator = "["
        # A large group has tens of thousands of messages, so they are not loaded at once.
        for message in messages.iterator():
            [document] = to_wire([message])
            self.stdout.write(f"{separator}\n{indent(json.dumps(document, indent=2), '  ')}", ending="")
            separator = ","
        self.stdout.write("[]" if separator == "[" else "\n]")
