#!/usr/bin/env python
"""The operators' entry: a checkout runs on the embedded profile, with no service beside it."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conductor_app.settings.embedded")
    execute_from_command_line(sys.argv)
