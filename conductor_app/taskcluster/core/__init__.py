"""Decisions on standalone tasks: rules, commands and effects that mirror those of runs.

They share attempts, state machines and ids with runs. They have fewer effects and no data requests, because a task is
always loaded completely.
"""
