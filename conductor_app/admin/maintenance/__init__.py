"""Upkeep: who did what, how long it is kept, how the engine itself is."""
