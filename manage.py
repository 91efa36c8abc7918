#!/usr/bin/env python
"""The operators' entry: a checkout runs on the embedded profile, with no service beside it."""

import gc
import os
import sys

from django.core.management import execute_from_command_line

from conductor_app.telemetry import folder


def main() -> None:
    """Execute a command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conductor_app.settings.embedded")
    if sys.argv[1:2] != ["serve"]:
        execute_from_command_line(sys.argv)
        return
    # Loading the modules of all processes creates no garbage, but a fifth of the time is spent looking for it.
    gc.disable()
    # Before the metrics are loaded: the processes share them in a folder.
    folder.empty_folder()
    try:
        execute_from_command_line(sys.argv)
    finally:
        folder.remove_folder()


if __name__ == "__main__":
    main()
