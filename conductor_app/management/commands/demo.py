"""Run the demo: workers of the official Python SDK process six orders, and scriptworker runs a build."""

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

NO_SDK = (
    "The demo needs the official SDKs, which are not installed. Install them with `make demo` or "
    "`pip install 'conductor-app[demo]'`."
)


class Command(BaseCommand):
    """`manage.py demo`: a client of a server that runs in another terminal."""

    help = "Process six orders and build a release on a running server, with the official workers of both projects."
    # The demo is a client and needs no database. The server may run on another machine.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        default_url = f"http://127.0.0.1:{os.environ.get('PORT') or 8000}"
        parser.add_argument(
            "--url", default=os.environ.get("URL") or default_url, help="address of the server (default: %(default)s)"
        )

    def handle(self, *args: object, url: str, **options: Any) -> None:
        try:
            from conductor_app.tools.demo import build, server
            from conductor_app.tools.demo import server as scenario
            from conductor_app.tools.demo import server as show
        except ModuleNotFoundError as missing:
            raise CommandError(NO_SDK) from missing
        progress = show.BoardProgress(self._say) if self.stdout.isatty() else show.LineProgress(self._say)
        try:
            address = server.base_address(url)
            problems = scenario.run_demo(address, progress, self._say)
            self._refuse(problems)
            problems = build.run_build(address, self._say)
        except server.ServerUnavailable as reason:
            raise CommandError(str(reason)) from reason
        except KeyboardInterrupt:
            raise CommandError("Stopped. The orders wait for new workers.", returncode=130) from None
        self._refuse(problems)
        self._say("\nAll orders and the build ended as expected.")

    def _refuse(self, problems: list[str]) -> None:
        if problems:
            raise CommandError("\n".join(problems))

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
