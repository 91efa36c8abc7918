"""Run the demo's agent: this process is the model and its tools, and the person at this terminal decides."""

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

NO_PACKAGES = (
    "The demo needs the Python SDK and the MCP package. Install them with `pip install 'conductor-app[demo,ai]'`."
)


class Command(BaseCommand):
    """`manage.py demo_agent`: a client of a server that runs in another terminal."""

    help = "Run an agent that looks up an order, asks before it acts, and refunds the order. It needs no API key."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        default_url = f"http://127.0.0.1:{os.environ.get('PORT') or 8000}"
        parser.add_argument(
            "--url", default=os.environ.get("URL") or default_url, help="address of the server (default: %(default)s)"
        )
        parser.add_argument("--yes", action="store_true", help="approve the refund without a question")

    def handle(self, *args: object, url: str, yes: bool, **options: Any) -> None:
        try:
            from conductor_app.tools.demo import agent, server
        except ModuleNotFoundError as missing:
            raise CommandError(NO_PACKAGES) from missing

        def approve(question: str) -> bool:
            if yes or not sys.stdin.isatty():
                return yes
            return input(f"  {question} [y/N] ").strip().lower() in ("y", "yes")

        try:
            result = agent.run_agent(server.base_address(url), self._say, approve)
        except server.ServerUnavailable as reason:
            raise CommandError(str(reason)) from reason
        self._say(f"\nThe agent answers: {result.answer}\nThe model received {result.requests} requests.")

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
