"""The command of an import: options, the question before the import, and the exit status."""

import getpass
import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from conductor_app.access import audit
from conductor_app.access.authentication import acting_as_owner
from conductor_app.definitions.sources.kinds import DefinitionKind
from conductor_app.tools.importers.conductor import (
    SourceReport,
    clean_text,
    finding_lines,
    plan_lines,
    report_document,
    summary_line,
)
from conductor_app.tools.importers.plan import ImportPlan, OnConflict, Outcome

DONE, PENDING, INCOMPLETE = 0, 3, 4
EXIT_STATUS = """\
exit status:
  0  this server has all that the source has
  1  the import failed, or was declined
  3  with --dry-run: the import would change this server
  4  objects of the source are left out, because they are invalid, differ, or were refused
"""


class ImportCommand(BaseCommand):
    """A command that plans an import, shows the plan, asks, and imports."""

    def execute(self, *args: object, **options: Any) -> str | None:
        """Execute the command.

        Raises:
            CommandError: when it is interrupted, or the database cannot be used.
        """
        try:
            return super().execute(*args, **options)
        except KeyboardInterrupt:
            raise CommandError("Interrupted. What was imported stays; import again to continue.") from None
        except DatabaseError as error:
            raise CommandError(f"The database of this server cannot be used: {' '.join(str(error).split())}") from error

    def add_plan_arguments(self, parser: ArgumentParser, conflicts: Sequence[OnConflict]) -> None:
        """Add the options of every import."""
        parser.add_argument("--from", dest="source", required=True, metavar="URL", help="address of the source")
        parser.add_argument(
            "--on-conflict",
            choices=[str(each) for each in conflicts],
            default=str(OnConflict.SKIP),
            help="what to do with an object that differs from the one here (default: skip, and report it)",
        )
        parser.add_argument("--dry-run", action="store_true", help="print the plan, and change nothing")
        parser.add_argument("--yes", action="store_true", help="import without a question")
        parser.add_argument("--json", dest="as_json", action="store_true", help="print the report as JSON")

    def show_plan(self, plan: ImportPlan, options: Mapping[str, Any]) -> None:
        """Print the plan, unless the report is JSON."""
        if options["as_json"]:
            return
        for line in plan_lines(plan.items, with_unchanged=options["verbosity"] > 1):
            self.stdout.write(line)
        if found := list(finding_lines(plan.items)):
            self.stdout.write("\nDifferences of this server (! must be solved first):")
            for line in found:
                self.stdout.write(line)

    def finish(
        self, plan: ImportPlan, kinds: Sequence[DefinitionKind], report: SourceReport | None, options: Mapping[str, Any]
    ) -> None:
        """Import the plan after a question, print the result, and exit with the status.

        Raises:
            CommandError: when the import is declined, or a conflict forbids it.
        """
        if not options["as_json"]:
            self.stdout.write(f"\n{summary_line(plan.items, is_done=False)}")
        is_done = not options["dry_run"] and self._execute(plan, kinds, options)
        if options["as_json"]:
            self.stdout.write(json.dumps(report_document(clean_text(options["source"]), plan.items, report), indent=2))
        elif is_done:
            self.stdout.write(summary_line(plan.items, is_done=True))
        if any(item.is_left_out for item in plan.items):
            sys.exit(INCOMPLETE)
        sys.exit(PENDING if options["dry_run"] and plan.changes_something else DONE)

    def _execute(self, plan: ImportPlan, kinds: Sequence[DefinitionKind], options: Mapping[str, Any]) -> bool:
        if plan.is_refused:
            raise CommandError("Objects differ from those here, and --on-conflict is fail. Nothing was imported.")
        if not plan.changes_something:
            return False
        self._ask(options)
        with acting_as_user(options.get("owner") or ""):
            for item in plan.execute(kinds):
                if item.outcome is Outcome.FAILED:
                    self.stderr.write(clean_text(f"! {item.kind} {item.title}: {item.reason}"))
        counts = {str(each): sum(item.outcome is each for item in plan.items) for each in Outcome}
        facts = {name: count for name, count in counts.items() if count}
        audit.record("import", clean_text(options["source"]), "import", plan.context.by, facts=facts)
        return True

    def _ask(self, options: Mapping[str, Any]) -> None:
        if options["yes"]:
            return
        if not sys.stdin.isatty() or options["as_json"]:
            raise CommandError("Nothing was imported. Add --yes to import without a question, or --dry-run.")
        if input("Import? Only 'yes' is accepted: ").strip() != "yes":
            raise CommandError("Nothing was imported.")


def author() -> str:
    """Return the author of the changes in the audit log: the user of the operating system."""
    try:
        return f"import by {getpass.getuser()}"
    except (KeyError, OSError):
        return "import"


def acting_as_user(name: str) -> AbstractContextManager[None]:
    """Let commands act with the permissions of a user, who becomes the owner of schedules and event handlers.

    Raises:
        CommandError: when there is no such user.
    """
    if not name:
        return acting_as_owner(0)
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"There is no user {name}.")
    return acting_as_owner(user.pk)


def variable(name: str) -> str:
    """Return an environment variable.

    Raises:
        CommandError: when it is not set.
    """
    value = os.environ.get(name, "")
    if not value:
        raise CommandError(f"The environment variable {name} is not set.")
    return value
