"""Import definitions from a Conductor server, or from another server of this kind."""

import logging
import os
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from typing import Any

from django.core.management.base import CommandError, CommandParser

from conductor_app.definitions.sources.kinds import PlanContext
from conductor_app.tools.importers.command import EXIT_STATUS, ImportCommand, acting_as_user, author, variable
from conductor_app.tools.importers.conductor import ConductorImport, source_lines
from conductor_app.tools.importers.plan import KINDS, ImportPlan, OnConflict
from conductor_app.tools.importers.source import TOKEN_HEADER, HttpSource, SourceError, SourceOptions

TOKEN, KEY, SECRET = "IMPORT_TOKEN", "IMPORT_AUTH_KEY", "IMPORT_AUTH_SECRET"


class Command(ImportCommand):
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

    def add_arguments(self, parser: ArgumentParser) -> None:
        self.add_plan_arguments(parser, list(OnConflict))
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
            self.show_plan(plan, options)
            if not options["as_json"]:
                for line in source_lines(import_.report):
                    self.stdout.write(line)
            self.finish(plan, KINDS, import_.report, options)
        except SourceError as error:
            raise CommandError(str(error)) from None

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
