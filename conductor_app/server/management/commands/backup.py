"""Write the database and the payloads into one archive."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connections

from conductor_app.db.database import alias
from conductor_app.tools.backup.archive import BackupRefused
from conductor_app.tools.backup.commands import BackupOptions, create_backup


class Command(BaseCommand):
    """`conductor-app backup FILE`: the server may work meanwhile."""

    help = "Write the database, as of this moment, and the payloads outside it into one archive."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="The archive, such as conductor.backup. It must not exist.")
        parser.add_argument(
            "--without-payload-contents",
            action="store_true",
            help="List the payloads outside the database with their digests, but do not copy them.",
        )

    def handle(self, *args: object, file: Path, without_payload_contents: bool, **options: object) -> None:
        wanted = BackupOptions(file, not without_payload_contents)
        try:
            manifest = create_backup(connections[alias()], wanted, self.stdout.write)
        except BackupRefused as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(f"The database cannot be read: {error}") from error
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from error
        rows = sum(table.rows for table in manifest.tables)
        payloads = manifest.payloads
        what = "" if payloads.has_contents else " (only listed)"
        self.stdout.write(
            f"Wrote {file}: {rows:,} rows, {payloads.count:,} payloads with {payloads.size:,} bytes{what}, "
            f"{file.stat().st_size:,} bytes in all."
        )
        if payloads.missing:
            self.stderr.write(f"Warning: the storage did not have {payloads.missing:,} payloads that runs use.")
        if manifest.used_keys:
            self.stdout.write(
                f"Keys that decrypt its secrets: {', '.join(manifest.used_keys)}. The archive does not contain them: "
                "store SECRETS_KEYS and SECRET_KEY elsewhere."
            )
