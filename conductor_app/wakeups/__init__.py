"""Hints that work may have arrived. Any of them may be lost: who waits looks again by itself within a second."""

from .channel import announce, close, is_closing, listening, on_announce, prepare, waiting
from .waiters import news_of

__all__ = ["announce", "close", "is_closing", "listening", "news_of", "on_announce", "prepare", "waiting"]
