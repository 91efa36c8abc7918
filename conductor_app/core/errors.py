"""Reasons for which a request is refused, and the texts of reasons.

The docstring of a class is its default message. A reason is quoted at each level above, so its length is limited.
"""


class RequestRefused(Exception):
    def __init__(self, message: str = "", **facts: object) -> None:
        self.message = message or (self.__doc__ or "").strip()
        self.facts = facts
        super().__init__(self.message)


class NotFound(RequestRefused):
    """Not found."""


class Expired(NotFound):
    """The resource has expired."""


class Invalid(RequestRefused):
    """The request is invalid."""


class PayloadTooLarge(Invalid):
    """The payload exceeds the size limit."""


class UnsupportedMediaType(Invalid):
    """The body has an encoding or a charset that the server does not read."""


class ValidationFailed(Invalid):
    """Validation failed, check below errors for detail."""

    def __init__(self, validation_errors: "list[ValidationError]") -> None:
        super().__init__("Validation failed, check below errors for detail.")
        self.validation_errors = validation_errors


class InputInvalid(ValidationFailed):
    """The input of a run does not match the schema of its definition; the paths of the errors begin with `input`."""


class OutputInvalid(ValidationFailed):
    """The output for a task does not match its schema; the paths of the errors begin with `output`."""

    def __init__(self, message: str, validation_errors: "list[ValidationError]") -> None:
        super().__init__(validation_errors)
        self.message = message


class Conflict(RequestRefused):
    """The request conflicts with the current state."""


class NotAllowedInState(Conflict):
    """The operation is not allowed in the current state."""


class AlreadyResolved(Conflict):
    """The attempt has already ended. The report was not accepted."""


class RevisionChanged(Conflict):
    """The resource changed after it was read. Read it again and retry."""


class Busy(RequestRefused):
    """The run is being changed concurrently. Try again later."""


class PayloadMissing(Busy):
    """The stored payload is missing. Restore it, or restart the run."""


class QuotaExceeded(Busy):
    """The caller has exceeded a quota. Try again later."""

    def __init__(self, message: str, retry_after: int) -> None:
        """`retry_after`: the seconds after which a repeated request may succeed."""
        super().__init__(message)
        self.retry_after = retry_after


class QueueFull(RequestRefused):
    """The queue is full. Retry later."""


class Forbidden(RequestRefused):
    """The caller is not authorized for this operation."""


class Unauthenticated(RequestRefused):
    """The caller is not authenticated."""


class StepRefused(RequestRefused):
    """The step cannot be entered as defined."""


class RunCannotContinue(StepRefused):
    """The step cannot be entered, and Conductor ends the run without creating a task for it.

    If an enclosing step handles failures, or the step is optional, its task fails as for StepRefused.
    """


class ValidationError:
    """One error in a document: its path, a message, and the invalid value if it is a scalar."""

    __slots__ = ("message", "path", "value")

    def __init__(self, path: str, message: str, value: object = None) -> None:
        self.path, self.message, self.value = path, message, value

    def __repr__(self) -> str:
        return f"{self.path}: {self.message}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValidationError) and (self.path, self.message) == (other.path, other.message)

    def __hash__(self) -> int:
        return hash((self.path, self.message))


class PayloadOverLimit(Exception):
    """A payload that the engine composes exceeds the maximum size. Nothing is written (execution §1.6)."""

    def __init__(self, what: str, max_bytes: int, size: int = 0) -> None:
        """`size`: 0 if the payload was not composed to its end."""
        taken = f"{size} bytes" if size else f"more than {max_bytes} bytes"
        super().__init__(f"{what} would take {taken}; {max_bytes} are allowed.")


MAX_ATTEMPT_REASON_LENGTH = 8_000
"""The maximum length of an attempt's reason: a stack trace of about a hundred lines."""
CONDUCTOR_LENGTH = 500
"""The maximum length of a task's reason in the responses of Conductor (api §3.6)."""
MAX_REASON_LENGTH = 2_000
MAX_QUOTED_LENGTH = 1_500
"""The maximum length of a reason within another one, so that the link behind it is not cut off."""
_GAP = "\n…\n"


def shorten_reason(reason: str, most: int = MAX_REASON_LENGTH) -> str:
    """Return the reason, cut to the maximum length.

    A reason of several lines is cut in its middle, because the last lines of a stack trace name its cause.
    """
    if len(reason) <= most:
        return reason
    if "\n" not in reason:
        return f"{reason[: most - 1]}…"
    end = reason[-(most // 2) :]
    end = end.partition("\n")[2] or end
    return reason[: most - most // 2 - len(_GAP)] + _GAP + end


def quote_reason(reason: str, source: str) -> str:
    """Return the reason of another workflow, cut to the maximum length of a quote, with a link to that workflow."""
    if len(reason) <= MAX_QUOTED_LENGTH:
        return reason
    return f"{shorten_reason(reason, MAX_QUOTED_LENGTH).removesuffix('…')}… (see workflow {source})"


class StorageUnavailable(Exception):
    """The storage cannot be reached, or does not have the payload."""


class StorageFileMissing(StorageUnavailable):
    """The storage can be reached and does not have the payload."""
