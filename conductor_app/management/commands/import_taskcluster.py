"""Import roles and clients from a Taskcluster deployment."""

import os
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from contextlib import closing
from typing import Any

from django.core.management.base import CommandError, CommandParser

from conductor_app.definitions.sources.kinds import PlanContext
from conductor_app.tools.importers.command import EXIT_STATUS, ImportCommand, author
from conductor_app.tools.importers.conductor import clean_text
from conductor_app.tools.importers.plan import ImportPlan, OnConflict
from conductor_app.tools.importers.source import SourceError, Spool
from conductor_app.tools.importers.taskcluster import (
    ClientKind,
    RoleKind,
    TaskclusterImport,
    TaskclusterSource,
    TokenFile,
)

CREDENTIALS = {
    "clientId": "TASKCLUSTER_CLIENT_ID",
    "accessToken": "TASKCLUSTER_ACCESS_TOKEN",
    "certificate": "TASKCLUSTER_CERTIFICATE",
}
"""The variables of the official clients."""


class Command(ImportCommand):
    """`conductor-app import-taskcluster`: shows a plan, asks, and imports."""

    help = (
        "Import roles and clients from a Taskcluster deployment. Access tokens cannot be read: new clients are\n"
        "disabled until you reset their tokens, or have new tokens with --tokens-to. Nothing is changed on the\n"
        "source.\n\n"
        f"{', '.join(CREDENTIALS.values())} authenticate to the source, which needs the\n"
        "scopes auth:list-roles and auth:list-clients."
    )

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        return super().create_parser(
            prog_name, subcommand, formatter_class=RawDescriptionHelpFormatter, epilog=EXIT_STATUS, **options
        )

    def add_arguments(self, parser: ArgumentParser) -> None:
        self.add_plan_arguments(parser, [OnConflict.SKIP, OnConflict.REPLACE, OnConflict.FAIL])
        parser.add_argument("--prefix", default="", help="import only clients whose ids begin with this")
        parser.add_argument(
            "--tokens-to", default="", metavar="FILE", help="write access tokens of new clients to a new file"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        token_file = None
        try:
            credentials = {name: value for name, key in CREDENTIALS.items() if (value := os.environ.get(key))}
            source = TaskclusterSource(options["source"], credentials)
            if options["tokens_to"] and not options["dry_run"]:
                token_file = TokenFile(options["tokens_to"])
            with closing(Spool()) as spool:
                context = PlanContext(author(), f"Imported from {source.url}")
                plan = ImportPlan(context, OnConflict(options["on_conflict"]), spool)
                clients = ClientKind(token_file.keep if token_file else None)
                import_ = TaskclusterImport(source, plan, RoleKind(), clients)
                import_.read(options["prefix"])
                self.show_plan(plan, options)
                if not options["as_json"]:
                    for note in import_.notes:
                        self.stdout.write(clean_text(note))
                self.finish(plan, import_.kinds, None, options)
        except (SourceError, OSError) as error:
            raise CommandError(str(error)) from None
        finally:
            if token_file:
                token_file.close()
