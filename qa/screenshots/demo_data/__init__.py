"""Demo data for screenshots: a week of product returns at a shop, and the operators' work on them.

The engine itself creates the data with a simulated clock before the server starts. No job is overdue; open runs are
those that the screenshots show as waiting.
"""

from conductor_app.failures import commands as failure_groups
from conductor_app.utils import clock
from qa.screenshots.demo_data import model_calls, operations, returns


def create_everything() -> None:
    """Create all demo data."""
    now = clock.now()
    returns.create_returns(now)
    failure_groups.group_failures(1000)
    operations.create_records(now)
    model_calls.create_model_calls(now)
