"""Import definitions from a Conductor server, or from another server of this kind."""

import getpass
import json
import logging
import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from conductor_app.access import audit
from conductor_app.access.authentication import acting_as_owner
from conductor_app.definitions.sources.kinds import PlanContext
from conductor_app.tools.importers.conductor import (
    ConductorImport,
    SourceReport,
    clean_text,
    finding_lines,
    plan_lines,
    report_document,
    source_lines,
    summary_line,
)
from conductor_app.tools.importers.plan import KINDS, ImportPlan, OnConflict, Outcome
from conductor_app.tools.importers.source import TOKEN_HEADER, HttpSource, SourceError, SourceOptions

DONE, PENDING, INCOMPLETE = 0, 3, 4
EXIT_STATUS = """\
exit status:
  0  this server has all that the source has
  1  the import failed, or was declined
  3  with --dry-run: the import would change this server
  4  objects of the source are left out, because they are invalid, differ, or were refused
"""
TOKEN, KEY, SECRET = "IMPORT_TOKEN", "IMPORT_AUTH_KEY", "IMPORT_AUTH_SECRET"


class Command(BaseCommand):
    """`conductor-app import`: shows a plan, asks, and imports."""

    help = (
        "Import task definitions, workflow definitions (all versions), schemas, form templates, schedules, event\n"
        "handlers, environment variables and tags from a Conductor server. Schedules are saved as paused and event\n"
        "handlers as inactive, because the source is still active. Nothing is changed on the source.\n\n"
        f"{TOKEN}, or {KEY} and {SECRET}, authenticate to the source."
    )

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        return super().create_parser(
            prog_name, subcommand, formatter_class=RawDescriptionHelpFormatter, epilog=EXIT_STATUS, **options
        )

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

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--from", dest="source", required=True, metavar="URL", help="address of the source")
        parser.add_argument(
            "--on-conflict",
            choices=[str(each) for each in OnConflict],
            default=str(OnConflict.SKIP),
            help="what to do with an object that differs from the one here (default: skip, and report it)",
        )
        parser.add_argument("--dry-run", action="store_true", help="print the plan, and change nothing")
        parser.add_argument("--yes", action="store_true", help="import without a question")
        parser.add_argument("--json", dest="as_json", action="store_true", help="print the report as JSON")
        kinds = [kind.plural for kind in KINDS]
        parser.add_argument("--only", action="append", choices=kinds, default=[], help="import only this (repeatable)")
        parser.add_argument("--activate", action="store_true", help="keep schedules and event handlers active")
        parser.add_argument("--owner", default="", help="the user with whose permissions schedules and handlers act")
        parser.add_argument(
            "--header-from",
            action="append",
            default=[],
            metavar="HEADER=VARIABLE",
            help="send a header to the source with the value of an environment variable (repeatable)",
        )
        parser.add_argument("--ca-file", default="", help="certificates of authorities that sign the source's")
        parser.add_argument("--client-certificate", default="", help="certificate for TLS with client authentication")
        parser.add_argument("--client-key", default="", help="private key of the client's certificate")
        parser.add_argument("--insecure", action="store_true", help="do not verify the source's certificate")
        parser.add_argument("--timeout", type=float, default=30, help="seconds without data (default: 30)")
        parser.add_argument("--retries", type=int, default=4, help="repetitions of a failed request (default: 4)")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["owner"]:
            acting_as_user(options["owner"])
        # The command itself reports the last failure.
        logging.getLogger("urllib3").setLevel(logging.ERROR)
        try:
            source = HttpSource(source_options(options))
            self._warn(source, options)
            context = PlanContext(author(), f"Imported from {source.url}", activates=options["activate"])
            plan = ImportPlan(context, OnConflict(options["on_conflict"]))
            import_ = ConductorImport(source, plan, options["only"])
            import_.read(self._say if options["verbosity"] else lambda text: None)
            if not options["as_json"]:
                self._show_plan(plan, import_.report, options)
            self._finish(plan, import_.report, options)
        except SourceError as error:
            raise CommandError(str(error)) from None

    def _show_plan(self, plan: ImportPlan, report: SourceReport, options: Mapping[str, Any]) -> None:
        for line in plan_lines(plan.items, with_unchanged=options["verbosity"] > 1):
            self.stdout.write(line)
        if found := list(finding_lines(plan.items)):
            self.stdout.write("\nDifferences of this server (! must be solved first):")
            for line in found:
                self.stdout.write(line)
        for line in source_lines(report):
            self.stdout.write(line)

    def _finish(self, plan: ImportPlan, report: SourceReport, options: Mapping[str, Any]) -> None:
        """Import the plan after a question, print the result, and exit with the status."""
        if not options["as_json"]:
            self.stdout.write(f"\n{summary_line(plan.items, is_done=False)}")
        is_done = not options["dry_run"] and self._import(plan, options)
        if options["as_json"]:
            self.stdout.write(json.dumps(report_document(clean_text(options["source"]), plan.items, report), indent=2))
        elif is_done:
            self.stdout.write(summary_line(plan.items, is_done=True))
        if any(item.is_left_out for item in plan.items):
            sys.exit(INCOMPLETE)
        sys.exit(PENDING if options["dry_run"] and plan.changes_something else DONE)

    def _import(self, plan: ImportPlan, options: Mapping[str, Any]) -> bool:
        if plan.is_refused:
            raise CommandError("Objects differ from those here, and --on-conflict is fail. Nothing was imported.")
        if not plan.changes_something:
            return False
        self._ask(options)
        with acting_as_user(options.get("owner") or ""):
            for item in plan.execute():
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

    def _say(self, text: str) -> None:
        if self.stderr.isatty():
            self.stderr.write(text)

    def _warn(self, source: HttpSource, options: dict[str, Any]) -> None:
        has_credentials = bool(source.options.token or source.options.key or source.options.headers)
        if options["insecure"]:
            self.stderr.write("The certificate of the source is not verified: it could be another server.")
        elif has_credentials and source.url.startswith("http://"):
            self.stderr.write("The credentials are sent without encryption, because the address begins with http://.")


def source_options(options: dict[str, Any]) -> SourceOptions:
    """Return how to reach the source, with credentials from the environment.

    Raises:
        CommandError: when an option or a variable is invalid.
    """
    key, token = os.environ.get(KEY, ""), os.environ.get(TOKEN, "")
    for name in ("ca_file", "client_certificate", "client_key"):
        if options[name] and not os.access(options[name], os.R_OK):
            raise CommandError(f"--{name.replace('_', '-')}: {options[name]} cannot be read.")
    if not 0 < options["timeout"] <= 3600 or not 0 <= options["retries"] <= 20:
        raise CommandError("--timeout must be between 0 and 3600 seconds, and --retries between 0 and 20.")
    return SourceOptions(
        url=options["source"],
        token=token,
        key="" if token else key,
        secret=variable(SECRET) if key and not token else "",
        headers=dict(_parse_header(each) for each in options["header_from"]),
        ca_file=options["ca_file"],
        client_certificate=options["client_certificate"],
        client_key=options["client_key"],
        verifies_certificate=not options["insecure"],
        timeout_seconds=options["timeout"],
        retries=options["retries"],
    )


def _parse_header(given: str) -> tuple[str, str]:
    name, separator, source = given.partition("=")
    if not separator or not name.strip() or name.lower() == TOKEN_HEADER.lower():
        raise CommandError(f"--header-from must be HEADER=VARIABLE, and {TOKEN} has the token (got {given!r}).")
    return name.strip(), variable(source)


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
