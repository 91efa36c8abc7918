#!/usr/bin/env python3
"""The health check of a container: exit with 0 if `serve` or `web` accepts work, or if another process runs.

It uses only a socket, because an interpreter with an HTTP client takes three times as long to start.
"""

import os
import socket
import sys
from itertools import pairwise
from pathlib import Path

WITHOUT_ADDRESS = {"worker", "beat", "listen_events", "serve_groups", "migrate"}
"""Subcommands that listen nowhere. /health/ready of the web processes reports a worker or beat that stands still."""


def find_subcommand(proc: Path = Path("/proc")) -> str:
    """Return the subcommand of the main process, which an init process may have started, or "" if there is none."""
    try:
        children = (proc / "1" / "task" / "1" / "children").read_text().split()
    except OSError:
        children = []
    for process in ("1", *children):
        try:
            words = (proc / process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        for word, following in pairwise(words):
            if word.rpartition("/")[2] == "conductor-app":
                return following
    return ""


def main() -> int:
    """Request /health/ready. Return 0 for status 200, and otherwise print the response and return 1."""
    if find_subcommand() in WITHOUT_ADDRESS:
        return 0
    port = int(os.environ.get("PORT") or 8000)
    host = os.environ.get("HOST") or "127.0.0.1"
    # The server listens on all addresses of the container, or on one.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    try:
        with socket.create_connection((host, port), timeout=4) as connection:
            connection.sendall(b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            response = b"".join(iter(lambda: connection.recv(65_536), b""))
    except OSError as error:
        print(f"The server does not respond on port {port}: {error.strerror or error}.")
        return 1
    if response.split(b" ", 2)[1:2] == [b"200"]:
        return 0
    print(response.partition(b"\r\n\r\n")[2].decode(errors="replace") or "The response is empty.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
