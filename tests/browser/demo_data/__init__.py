"""What stands behind the pictures: a week of goods that come back to a shop, and those who look after them.

Played before the server starts, by the engine itself and a clock that is turned back: nothing in it is late, and what
is left open is what the pictures show as waiting.
"""

from conductor_app import clock
from conductor_app.engine.failures import failure_groups
from tests.browser.demo_data import operations, returns


def create_everything() -> None:
    """All of it."""
    now = clock.now()
    returns.create_returns(now)
    failure_groups.group_failures(1000)
    operations.create_records(now)
