"""DYNAMIC: the task to be done is named by an input."""

from collections.abc import Iterator

from ..definition import Key, Step
from ..effects import Effect
from ..errors import StepRefused
from ..knowledge import Knowledge
from .kind import Kind, inputs_of
from .queued import queued

LONGEST_NAME = 255


class Dynamic(Kind):
    """A worker's task whose name is the value of the input that `dynamicTaskNameParam` names (execution §8.2)."""

    type = "DYNAMIC"
    is_queued = True
    hears_outside = True

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        inputs = inputs_of(step, know, key, know.run, now)
        parameter = step.document.get("dynamicTaskNameParam") or ""
        name = inputs.get(parameter)
        if not isinstance(name, str) or not name.strip():
            raise StepRefused(
                f"The input '{parameter}' of {step.ref} must hold the name of the task to run; it is {name!r}."
            )
        if len(name) > LONGEST_NAME or "\0" in name:
            raise StepRefused(f"The task to run is named by at most {LONGEST_NAME} characters; NUL is none of them.")
        yield queued(step, key, know, now, name, know.domain(name), inputs)
