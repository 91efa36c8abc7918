"""Hints that work may have arrived. Any of them may be lost: who waits looks again by itself within a second."""

from .channel import announce, is_closing, listening, on_announce, waiting

__all__ = ["announce", "is_closing", "listening", "on_announce", "waiting"]
