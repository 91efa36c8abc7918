"""Hints that work may have arrived. Any of them may be lost: who waits looks again by itself within a second."""

from .channel import announce, count_waiting, is_closing, on_announce, prepare_backend, subscribe, wake_all_and_close
from .waiters import broadcast_topic

__all__ = [
    "announce",
    "broadcast_topic",
    "count_waiting",
    "is_closing",
    "on_announce",
    "prepare_backend",
    "subscribe",
    "wake_all_and_close",
]
