#!/usr/bin/env python
"""The commands in a checkout, on the embedded profile. An installed package has the console script `conductor-app`."""

from conductor_app.processes.command_line import manage

if __name__ == "__main__":
    manage()
