"""Everything that can be refused, on one page: the class is the reason, its docstring the sentence a person reads."""


class RequestRefused(Exception):
    """The request was refused."""

    def __init__(self, message: str = "", **facts: object) -> None:
        self.message = message or (self.__doc__ or "").strip()
        self.facts = facts
        super().__init__(self.message)


class NotFound(RequestRefused):
    """There is no such thing."""


class Expired(NotFound):
    """It has expired."""


class Invalid(RequestRefused):
    """The request cannot be understood."""


class PayloadTooLarge(Invalid):
    """It is larger than it may be."""


class ValidationFailed(Invalid):
    """Validation failed, check below errors for detail."""

    def __init__(self, complaints: "list[ValidationError]") -> None:
        super().__init__("Validation failed, check below errors for detail.")
        self.complaints = complaints


class InputInvalid(ValidationFailed):
    """The input of a run does not fit the schema of its definition; the paths of its complaints begin with `input`."""


class OutputInvalid(ValidationFailed):
    """What a person says of a task does not fit the schema of its output; the paths begin with `output`."""

    def __init__(self, message: str, complaints: "list[ValidationError]") -> None:
        super().__init__(complaints)
        self.message = message


class Conflict(RequestRefused):
    """The state of things forbids it."""


class NotAllowedInState(Conflict):
    """What was asked is not possible in this state."""


class AlreadyResolved(Conflict):
    """The attempt has ended already; the report came too late."""


class RevisionChanged(Conflict):
    """It has moved on since it was looked at; look at it again."""


class Busy(RequestRefused):
    """Others keep changing the same run; try again in a moment."""


class PayloadMissing(Busy):
    """What is kept elsewhere is not there any more; somebody has to put it back, or to begin anew."""


class QueueFull(RequestRefused):
    """As much waits there as may wait; try again when some of it is taken."""


class Forbidden(RequestRefused):
    """The caller may not do this."""


class Unauthenticated(RequestRefused):
    """The caller is not known."""


class StepRefused(RequestRefused):
    """A step cannot be entered as it is written."""


class RunCannotContinue(StepRefused):
    """A step cannot be entered, and the original ends the run without a task for it.

    Where a step around it takes failures, or the step is optional, its task fails as for StepRefused.
    """


class ValidationError:
    """One thing that is wrong in a document: where, what, and the offending value if it is a simple one."""

    __slots__ = ("message", "path", "value")

    def __init__(self, path: str, message: str, value: object = None) -> None:
        self.path, self.message, self.value = path, message, value

    def __repr__(self) -> str:
        return f"{self.path}: {self.message}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValidationError) and (self.path, self.message) == (other.path, other.message)

    def __hash__(self) -> int:
        return hash((self.path, self.message))
