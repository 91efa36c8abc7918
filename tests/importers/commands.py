"""Execution of the commands that import."""

import json
from io import StringIO
from typing import Any, NamedTuple

from django.core.management import call_command


class Execution(NamedTuple):
    """The exit status of a command, and what it printed."""

    status: int
    output: str
    errors: str

    @property
    def report(self) -> dict[str, Any]:
        return json.loads(self.output)

    def items(self, kind: str) -> dict[str, str]:
        """Return what became of the objects of a kind in a JSON report, by name and version."""
        return {
            f"{each['name']}:{each['version']}" if "version" in each else each["name"]: each.get(
                "outcome", each["planned"]
            )
            for each in self.report["items"]
            if each["kind"] == kind
        }


def execute(command: str, *arguments: str) -> Execution:
    """Execute a command in this process."""
    output, errors = StringIO(), StringIO()
    status = 0
    try:
        call_command(command, *arguments, stdout=output, stderr=errors)
    except SystemExit as ended:
        status = int(ended.code or 0)
    return Execution(status, output.getvalue(), errors.getvalue())


def import_conductor(address: str, *arguments: str) -> Execution:
    """Import from a Conductor server without a question, and return the report in JSON."""
    how = () if "--dry-run" in arguments else ("--yes",)
    return execute("import_conductor", "--from", address, "--json", "--retries=0", *how, *arguments)
