"""`make demo`: workers of the official Python SDK process six orders, and scriptworker runs a build.

It is a client of a server that runs in another terminal, or on another machine.
"""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from . import build, server


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the demo. Exits with a message if the server refuses it, or if a result is unexpected."""
    parser = ArgumentParser(prog="make demo", description=__doc__)
    server.add_url_option(parser)
    url = server.base_address(parser.parse_args(arguments).url)
    progress = server.BoardProgress(say) if sys.stdout.isatty() else server.LineProgress(say)
    try:
        orders = server.run_demo(url, progress, say)
        problems = [each.problem for each in orders if each.problem] or build.run_build(url, say)
    except server.ServerUnavailable as reason:
        sys.exit(str(reason))
    except KeyboardInterrupt:
        print("Stopped. The orders wait for new workers.", file=sys.stderr)
        sys.exit(130)
    if problems:
        sys.exit("\n".join(problems))
    say("\nAll orders and the build ended as expected.\n")
    say(server.next_steps(orders, url, has_token=bool(os.environ.get("CONDUCTOR_AUTH_KEY"))))


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    print(text, flush=True)


if __name__ == "__main__":
    main()
