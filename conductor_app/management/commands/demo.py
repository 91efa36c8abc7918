"""Run the demo: workers of the official Python SDK process six orders, and scriptworker runs a build."""

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

NO_SDK = (
    "The demo's workers are written with the official SDK, which is not installed: "
    "`make demo` installs it, and so does `pip install 'conductor-python~=2.0.0' taskcluster scriptworker`."
)


class Command(BaseCommand):
    """`manage.py demo`: a client, in a second terminal; the server runs in the first one."""

    help = "Fulfil six orders and build a release on a running server, with the workers of the official projects."
    # A client needs no database, and the server that it talks to may run elsewhere.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        here = f"http://127.0.0.1:{os.environ.get('PORT') or 8000}"
        parser.add_argument("--url", default=os.environ.get("URL") or here, help="the server (default: %(default)s)")

    def handle(self, *args: Any, url: str, **options: Any) -> None:
        try:
            from conductor_app.demo import build, server, show, story
        except ModuleNotFoundError as missing:
            raise CommandError(NO_SDK) from missing
        progress = show.BoardProgress(self._say) if self.stdout.isatty() else show.LineProgress(self._say)
        try:
            address = server.base_address(url)
            problems = story.run_demo(address, progress, self._say)
            self._refuse(problems)
            problems = build.run_build(address, self._say)
        except server.ServerUnavailable as reason:
            raise CommandError(str(reason)) from reason
        except KeyboardInterrupt:
            raise CommandError("Stopped. The orders wait for new workers.", returncode=130) from None
        self._refuse(problems)
        self._say("\nEvery order came out as expected, and so did the build.")

    def _refuse(self, problems: list[str]) -> None:
        if problems:
            raise CommandError("\n".join(problems))

    def _say(self, words: str) -> None:
        self.stdout.write(words)
        self.stdout.flush()
