"""Restore archived runs, or print their lines."""

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from conductor_app.core.errors import RequestRefused
from conductor_app.processes import run_archive
from conductor_app.processes.run_archive import ArchiveLine, RunNotRestored
from conductor_app.utils import clock

DAY_MS = 86_400_000
BY = "restore_runs"


class Command(BaseCommand):
    """`conductor-app restore_runs ID`, or `--from DATE --to DATE`: the server may run meanwhile."""

    help = "Restore runs that retention has archived and removed, for the pages, the API and the search."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", metavar="ID", help="Runs to restore, with their archived sub-workflows.")
        parser.add_argument(
            "--from", dest="first", type=_parse_day, metavar="DATE", help="Runs that ended on this day or later (UTC)."
        )
        parser.add_argument(
            "--to", dest="last", type=_parse_day, metavar="DATE", help="Runs that ended on this day or before (UTC)."
        )
        parser.add_argument("--name", action="append", default=[], help="Only runs of this definition; repeatable.")
        parser.add_argument("--days", type=int, default=30, help="How long retention keeps them (default: 30).")
        parser.add_argument("--print", action="store_true", help="Print their lines of JSON instead of restoring them.")

    def handle(self, *args: object, ids: list[str], **options: Any) -> None:
        first, last = options["first"], options["last"]
        if not run_archive.is_configured():
            raise CommandError("This server has no archive. Set RUN_ARCHIVE to the folder or bucket of the archive.")
        if bool(ids) == (first is not None or last is not None):
            raise CommandError("Name the ids of runs, or a period with --from and --to.")
        if not 1 <= options["days"] <= 36_500:
            raise CommandError("--days must be 1 to 36500.")
        self.kept_until = clock.now() + options["days"] * DAY_MS
        self.is_printing, self.unreadable = options["print"], list[str]()
        self.restored = self.existing = 0
        if ids:
            self._restore_by_id(ids)
        else:
            until = clock.now() + 1 if last is None else last + DAY_MS
            for line in run_archive.runs_of_period(first or 0, until, options["name"], self.unreadable):
                self._handle_line(line)
        if not self.is_printing:
            existing = f" {self.existing:,} exist already." if self.existing else ""
            self.stdout.write(f"Restored {self.restored:,} runs.{existing}")
        if self.unreadable:
            raise CommandError(f"These files could not be read completely: {', '.join(self.unreadable)}.")

    def _restore_by_id(self, ids: list[str]) -> None:
        wanted, seen, found = ids, set(ids), set[str]()
        while wanted:
            children: list[str] = []
            for line in run_archive.runs_by_id(wanted, self.unreadable):
                found.add(line.id)
                children += run_archive.child_ids(line)
                self._handle_line(line)
            wanted = [] if self.is_printing else [id for id in dict.fromkeys(children) if id not in seen]
            seen.update(wanted)
        if missing := [id for id in ids if id not in found]:
            raise CommandError(f"The archive has no run {', '.join(missing)}.")

    def _handle_line(self, line: ArchiveLine) -> None:
        if self.is_printing:
            self.stdout.write(line.to_text())
            return
        try:
            is_new = run_archive.restore_run(line, self.kept_until, BY)
        except (RunNotRestored, RequestRefused) as error:
            raise CommandError(str(error)) from error
        self.restored += is_new
        self.existing += not is_new


def _parse_day(text: str) -> int:
    return round(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp() * 1000)
