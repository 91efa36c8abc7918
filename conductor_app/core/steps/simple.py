"""Work for a worker: SIMPLE, every type that the language does not know, and the types of built-in workers."""

from collections.abc import Iterator

from ..definition import Key, Step
from ..effects import Effect
from ..knowledge import Knowledge, spelled_type
from ..language.policy import BUILT_IN_TYPES
from .kind import Kind, inputs_of
from .queued import queued


class Simple(Kind):
    """Waits in the queue that is named after it until a worker claims it."""

    type = "SIMPLE"
    is_queued = True

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        task_type = spelled_type(step.type, step.name)
        # The types of built-in workers never get a domain (execution §5.3).
        domain = "" if step.type in BUILT_IN_TYPES else know.domain(task_type)
        yield queued(step, key, know, now, task_type, domain, inputs_of(step, know, key, know.run, now))
