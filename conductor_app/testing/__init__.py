"""The test kit: servers for the tests of workflows and workers, whose time a test can advance.

The pytest plugin `conductor_app.testing.plugin` has the fixture `conductor_server`, which gives a `Server`. Django runs
in the process of the server only, so that the kit works beside the tests of another Django project.
"""

from .runs import RunNotEnded, StartedRun, TaskAttempt
from .server import Server
from .server_host import TestKitError

__all__ = ["RunNotEnded", "Server", "StartedRun", "TaskAttempt", "TestKitError"]
