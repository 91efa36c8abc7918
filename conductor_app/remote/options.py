"""Options that all commands share, and the client that they create."""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from .api_client import DEFAULT_URL, ApiClient, ServerError
from .output import JSON, TABLE


def server_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the server and of the output. The command receives `server` and `as_json`.

    An error of the server ends the program with its message and the exit status 1.
    """

    @click.option(
        "--url",
        envvar="CONDUCTOR_SERVER_URL",
        default=DEFAULT_URL,
        show_default=True,
        help="Address of the server's API.  [env: CONDUCTOR_SERVER_URL]",
    )
    @click.option("--token", envvar="CONDUCTOR_AUTH_TOKEN", default="", help="Token.  [env: CONDUCTOR_AUTH_TOKEN]")
    @click.option(
        "--output",
        "-o",
        type=click.Choice([TABLE, JSON]),
        default=TABLE,
        show_default=True,
        help="Print a table, or the JSON of the API.",
    )
    @wraps(command)
    def with_server(url: str, token: str, output: str, **options: Any) -> None:
        try:
            command(server=_client(url, token), as_json=output == JSON, **options)
        except ServerError as error:
            raise click.ClickException(str(error)) from error

    return with_server


def _client(url: str, token: str) -> ApiClient:
    key, secret = os.environ.get("CONDUCTOR_AUTH_KEY", ""), os.environ.get("CONDUCTOR_AUTH_SECRET", "")
    return ApiClient(url, token, key if not token else "", secret)
