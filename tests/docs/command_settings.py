"""The settings of tests, for a command in a process of its own on the database of a running test."""

import os

from conductor_app.settings.testing import *  # noqa: F403
from conductor_app.settings.testing import DATABASES

DATABASES["default"]["NAME"] = os.environ["TEST_DATABASE_NAME"]
