"""Runs played in memory."""

from .parts import Mock, Part, Script
from .play import Play

__all__ = ["Mock", "Part", "Play", "Script"]
