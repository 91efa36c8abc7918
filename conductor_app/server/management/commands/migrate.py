"""Migrate the database while other processes use it."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.loader import MigrationLoader

from conductor_app.processes.upgrade_check import LockPolicy, describe_outdated, repeat_until_unlocked
from conductor_app.settings import conf


class Command(migrate.Command):
    """`manage.py migrate`: Django's command, which refuses a database that is too old for this version.

    A server limits the wait for locks on PostgreSQL, and repeats the migration. In another Django project, migrations
    wait for locks as that project says.
    """

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        lock = parser.add_argument_group("locks on PostgreSQL")
        lock.add_argument("--lock-wait", type=float, default=2, metavar="SECONDS", help="Maximum wait (default: 2).")
        lock.add_argument("--lock-attempts", type=int, default=60, help="Attempts at a migration (default: 60).")
        lock.add_argument("--lock-pause", type=float, default=5, metavar="SECONDS", help="Pause (default: 5).")

    def handle(self, *args: object, **options: Any) -> None:
        connection = connections[options["database"]]
        loader = MigrationLoader(connection)
        if refusal := describe_outdated(loader, loader.applied_migrations):
            raise CommandError(refusal)
        policy = LockPolicy(options.pop("lock_wait"), options.pop("lock_attempts"), options.pop("lock_pause"))
        if connection.vendor != "postgresql" or not conf.is_server:
            super().handle(*args, **options)
            return
        repeat_until_unlocked(connection, policy, lambda: super(Command, self).handle(*args, **options), self._report)

    def _report(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
