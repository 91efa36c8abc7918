"""Report before an upgrade what would be slow or incompatible."""

import os
import sys

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from conductor_app.db.database import connection
from conductor_app.processes.upgrade_check import (
    check_definitions,
    check_disks,
    check_installation,
    check_migrations,
    check_variables,
)


class Command(BaseCommand):
    """`conductor-app check`: changes nothing. The exit status is 1 if there is a problem."""

    help = "Report migrations, settings, versions, definitions and disks that would make an upgrade slow or impossible."
    # The command itself reports them.
    requires_system_checks = ()

    def handle(self, *args: object, **options: object) -> None:
        try:
            findings = [
                *check_installation(connection),
                *check_variables(os.environ, settings.READ_VARIABLES),
                *check_migrations(connection),
                *check_disks(connection),
                *check_definitions(),
            ]
        except DatabaseError as error:
            raise CommandError(f"The database cannot be read: {error}") from error
        for finding in findings:
            self.stdout.write(f"{'PROBLEM' if finding.is_problem else 'note':<9}{finding.text}")
        problems = sum(finding.is_problem for finding in findings)
        if problems:
            self.stdout.write(f"{problems} problem{'s' if problems > 1 else ''}: solve them before the upgrade.")
            sys.exit(1)
        self.stdout.write("No problem was found.")
