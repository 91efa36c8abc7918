"""Replace the database by the content of an archive."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connections

from conductor_app.db.database import alias
from conductor_app.tools.backup.archive import BackupRefused, RestoreIncomplete
from conductor_app.tools.backup.commands import RestoreOptions, restore_backup


class Command(BaseCommand):
    """`conductor-app restore FILE`: the server must be stopped."""

    help = "Replace the database by the content of an archive of `backup`, which may be from the other database system."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="The archive.")
        parser.add_argument("--replace", action="store_true", help="Replace a database that is not empty.")
        parser.add_argument(
            "--without-keys",
            action="store_true",
            help="Restore values that no key of this server decrypts. They stay unreadable.",
        )
        parser.add_argument("--check", action="store_true", help="Only verify the archive and the keys.")

    def handle(
        self, *args: object, file: Path, replace: bool, without_keys: bool, check: bool, **options: object
    ) -> None:
        permitted = RestoreOptions(file, replace, without_keys, check)
        try:
            manifest = restore_backup(connections[alias()], permitted, self.stdout.write)
        except RestoreIncomplete as error:
            raise CommandError(str(error)) from error
        except BackupRefused as error:
            raise CommandError(f"{error} Nothing was changed.") from error
        except DatabaseError as error:
            raise CommandError(f"The database refused the restore: {error} Nothing was changed.") from error
        except OSError as error:
            raise CommandError(f"The restore failed: {error}. Nothing was changed.") from error
        rows, payloads = sum(table.rows for table in manifest.tables), manifest.payloads
        described = f"{rows:,} rows and {payloads.count:,} payloads of version {manifest.version}"
        if check:
            self.stdout.write(f"The archive is complete, and this server can restore it: {described}.")
        else:
            self.stdout.write(f"Restored {described}. Start the server.")
