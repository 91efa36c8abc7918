"""Another process of the same server: run as a script, it listens to one queue and says what it hears, or announces."""

import sys

import django

django.setup()

from conductor_app import wakeups  # noqa: E402


def listen(queue: str) -> None:
    with wakeups.listening(queue) as ear:
        print("listening", flush=True)
        # A backend that has just connected wakes everybody once; only what comes after the question counts.
        while sys.stdin.readline().strip() == "heard?":
            print(ear.wait(5), flush=True)


if __name__ == "__main__":
    {"listen": listen, "announce": lambda queue: wakeups.announce([queue])}[sys.argv[1]](sys.argv[2])
