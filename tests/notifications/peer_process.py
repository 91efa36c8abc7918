"""A second process of the same server, run as a script: it prints the notifications of a queue, or sends one."""

import sys

from conductor_app import notifications
from conductor_app.notifications import redis
from conductor_app.settings import conf


def listen(queue: str) -> None:
    with notifications.subscribe(queue) as waiter:
        if conf.wakeups.endswith(".redis"):
            # A waiter wakes once when the connection is established; only later wakeups are notifications.
            redis._listener.is_connected.wait(10)
            waiter.wait(0)
        print("listening", flush=True)
        while True:
            print("heard" if waiter.wait(10) else "nothing", flush=True)


def announce(queue: str) -> None:
    notifications.announce([queue])


def pass_on(queue: str) -> None:
    """Receive a notification of this process, and leave it unused."""
    with notifications.subscribe(queue):
        notifications.announce([queue])


if __name__ == "__main__":
    {"listen": listen, "announce": announce, "pass_on": pass_on}[sys.argv[1]](sys.argv[2])
