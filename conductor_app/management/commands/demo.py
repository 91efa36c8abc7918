"""Six orders of an outdoor shop, fulfilled on a running server by workers of the official Python SDK."""

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

NO_SDK = (
    "The demo's workers are written with the official SDK, which is not installed: "
    "`make demo` installs it, and so does `pip install 'conductor-python~=2.0.0'`."
)


class Command(BaseCommand):
    """`manage.py demo`: a client, in a second terminal; the server runs in the first one."""

    help = "Fulfil six orders on a running server with workers of the official Python SDK."
    # A client needs no database, and the server that it talks to may run elsewhere.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        here = f"http://127.0.0.1:{os.environ.get('PORT') or 8000}"
        parser.add_argument("--url", default=os.environ.get("URL") or here, help="the server (default: %(default)s)")

    def handle(self, *args: Any, url: str, **options: Any) -> None:
        try:
            from conductor_app.demo import server, show, story
        except ModuleNotFoundError as missing:
            raise CommandError(NO_SDK) from missing
        progress = show.Board(self._say) if self.stdout.isatty() else show.Lines(self._say)
        try:
            problems = story.play(server.address_of(url), progress, self._say)
        except server.NotThere as reason:
            raise CommandError(str(reason)) from reason
        except KeyboardInterrupt:
            raise CommandError("Stopped; the orders wait for the next workers.", returncode=130) from None
        if problems:
            raise CommandError("\n".join(problems))
        self._say("\nEvery order came out as expected.")

    def _say(self, words: str) -> None:
        self.stdout.write(words)
        self.stdout.flush()
