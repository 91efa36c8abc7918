"""What operators may ask of a run, a module for each idea; every command is a function (run, know, now) → effects."""

from ..decide import nothing
from .controls import Abandon, pause, release, resume, terminate
from .retry import retry

__all__ = ["Abandon", "nothing", "pause", "release", "resume", "retry", "terminate"]
