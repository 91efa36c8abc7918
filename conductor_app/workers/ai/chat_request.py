"""The inputs of calls."""


class InputRejected(Exception):
    """The input of the task is invalid, or a retry cannot succeed for another reason."""
