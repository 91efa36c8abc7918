"""Searching runs and tasks in the language that clients know (api §6), and in a little more of it."""

from .grammar import Clause, Value
from .pages import Page, Search
from .places import Places
from .questions import Question
from .runs import RUNS
from .tasks import TASKS

__all__ = ["RUNS", "TASKS", "Clause", "Page", "Places", "Question", "Search", "Value"]
