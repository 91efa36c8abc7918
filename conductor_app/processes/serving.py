"""The listening socket of the server, and the banner that is printed when it is ready."""

import errno
import http.client
import socket
from collections.abc import Callable

from django.conf import settings
from django.core.management.base import CommandError

from .first_run import Administrator

WILDCARD_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
ANSWER_SECONDS = 0.5


def listening_socket(host: str, port: int) -> socket.socket:
    """Return the socket that web processes inherit, so that requests are accepted while one of them restarts.

    Raises:
        CommandError: when the address cannot be used.
    """
    listener = None
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        if listener:
            listener.close()
        raise CommandError(_bind_error(host, port, error)) from error
    return listener


def _bind_error(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use. Stop the process that uses it, or choose another: PORT={port + 1}"
    return f"Cannot listen on HOST={host} PORT={port}: {error.strerror}."


class StartupBanner:
    """Prints the addresses of the server once, as soon as it responds."""

    def __init__(self, host: str, port: int, administrator: Administrator | None, say: Callable[[str], None]) -> None:
        self._address = (WILDCARD_HOSTS.get(host, host), port)
        self._administrator = administrator
        self._say = say
        self._is_printed = False
        self._folder = getattr(settings, "VAR_DIR", None)

    def print_when_ready(self) -> None:
        """Print the banner if the server responds and the banner was not printed before."""
        if not self._is_printed and self._is_server_up():
            self._is_printed = True
            self._say("\n".join(self._lines()))

    def _is_server_up(self) -> bool:
        connection = http.client.HTTPConnection(*self._address, timeout=ANSWER_SECONDS)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status > 0
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _lines(self) -> list[str]:
        host, port = self._address
        base_url = f"http://{f'[{host}]' if ':' in host else host}:{port}{settings.FORCE_SCRIPT_NAME or ''}"
        return [
            f"Admin    {base_url}/admin/{self._login()}",
            f"API      {base_url}/api/",
            f"OpenAPI  {base_url}/api/docs",
            *([f"Data     {self._folder}"] if self._folder else []),
            "Stop with Ctrl-C.",
        ]

    def _login(self) -> str:
        if not self._administrator:
            return ""
        if not self._administrator.generated_password:
            return f"   (administrator {self._administrator.username} was created)"
        return (
            f"\n         log in as {self._administrator.username}, password {self._administrator.generated_password}"
            "\n         (generated on first start and shown only once; change it in the admin)"
        )
