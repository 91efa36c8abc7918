"""Random changes of a definition: the next version has added, removed and reordered steps."""

from collections.abc import Iterator
from copy import deepcopy
from random import Random

from tests.builders import Document, fork, noop, step

LISTS = ("defaultCase", "loopOver", "tryTasks", "catchDefault", "finallyTasks")
PAIRED = ("JOIN", "EXCLUSIVE_JOIN", "FORK_JOIN", "FORK_JOIN_DYNAMIC")


def step_sequences(tasks: list[Document]) -> Iterator[list[Document]]:
    yield tasks
    for task in tasks:
        inner = [*(task.get("decisionCases") or {}).values(), *(task.get("forkTasks") or [])]
        inner += [case["tasks"] for case in task.get("catchCases") or []]
        inner += [task.get(name) or [] for name in LISTS]
        for each in inner:
            if each:
                yield from step_sequences(each)


def is_joined(document: Document, task: Document) -> bool:
    """Return whether a join names this step; without it, the join would wait forever."""
    ref = task["taskReferenceName"]
    return any(ref in (each.get("joinOn") or ()) for tasks in step_sequences(document["tasks"]) for each in tasks)


def next_version(random: Random, document: Document) -> Document:
    """Return the next version: with added, removed and moved steps."""
    document = deepcopy(document) | {"version": document["version"] + 1}
    for number in range(random.randint(1, 4)):
        tasks = random.choice(list(step_sequences(document["tasks"])))
        place = random.randrange(len(tasks))
        ref = f"new{document['version']}_{number}"
        chance = random.random()
        if chance < 0.4:
            fresh = (
                [step(ref, "pay")]
                if random.random() < 0.6
                else fork([step(ref, "pay")], [noop(ref + "n")], join=ref + "j")
            )
            at = place + 1 if tasks[place]["type"] not in PAIRED else len(tasks)
            tasks[at:at] = fresh if at == len(tasks) or tasks[at]["type"] not in PAIRED[:2] else []
        elif (
            chance < 0.75
            and len(tasks) > 1
            and tasks[place]["type"] not in PAIRED
            and not is_joined(document, tasks[place])
        ):
            del tasks[place]
        elif len(tasks) > 1 and not any(task["type"] in PAIRED for task in tasks):
            random.shuffle(tasks)
    return document
