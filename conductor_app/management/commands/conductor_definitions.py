"""Compare the definitions of a Django project with the database, and apply them."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conductor_app.core.errors import RequestRefused
from conductor_app.in_process.definitions import describe, plan_project
from conductor_app.tools.remote.files import FolderError


class Command(BaseCommand):
    """`manage.py conductor_definitions`: the exit status is 0 if the database is as the project, or after `--apply`."""

    help = "Show how the definitions in the folders `workflows` and of the functions differ from the database."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--apply", action="store_true", help="Create and change them in the database.")
        parser.add_argument(
            "--prune", action="store_true", help="Delete what was applied before and is no longer in the project."
        )
        parser.add_argument(
            "--overwrite", action="store_true", help="Also change definitions that were edited in the database since."
        )

    def handle(self, *args: object, **options: Any) -> None:
        try:
            found = plan_project("conductor_definitions", prunes=options["prune"], overwrites=options["overwrite"])
        except FolderError as error:
            raise CommandError(str(error)) from None
        except RequestRefused as refused:
            raise CommandError(refused.message) from None
        if found.problems:
            raise CommandError("\n".join(found.problems))
        if options["apply"]:
            failed = 0
            for applied in found.apply():
                failed += bool(applied.error)
                if applied.error or options["verbosity"]:
                    self.stdout.write(describe(applied.item) + (f": {applied.error}" if applied.error else ""))
            if failed:
                raise CommandError(f"{failed} definitions were not applied.")
        elif found.differences:
            lines = "\n".join(found.differences)
            raise CommandError(f"{lines}\nApply these changes with: manage.py conductor_definitions --apply")
        if options["verbosity"]:
            self.stdout.write("The definitions in the database are those of the project.")
