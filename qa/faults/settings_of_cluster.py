"""The cluster profile with fault points and a clock that can be stepped."""

from conductor_app.settings.cluster import *  # noqa: F403
from qa.faults import product_hooks

product_hooks.install()
