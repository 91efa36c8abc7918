"""Random definitions: nested forks, switches, loops, waits and dynamic forks, with every kind of failure."""

from random import Random

from tests.builders import (
    Document,
    catch,
    definition,
    dynamic_fork,
    each,
    exclusive_join,
    fork,
    human,
    join,
    loop,
    noop,
    policy,
    set_variable,
    step,
    sub_workflow,
    switch,
    terminate,
    try_,
    wait,
)

TYPES = ("pay", "ship", "mail")
"""The queues that random work waits in."""
TIMEOUTS = ("RETRY", "RETRY", "TIME_OUT_WF", "ALERT_ONLY")


class DefinitionGenerator:
    """One definition being drawn."""

    def __init__(self, random: Random, deepest: int, children: bool, terminates: bool) -> None:
        self.random, self.deepest, self.children, self.terminates = random, deepest, children, terminates
        self.refs: list[str] = []
        self.is_hidden = False  # in a branch that the definition does not show
        self.hidden: set[str] = set()

    def ref(self, kind: str) -> str:
        self.refs.append(f"{kind}{len(self.refs) + 1}")
        return self.refs[-1]

    def sequence(self, depth: int, most: int = 3) -> list[Document]:
        """Return consecutive steps."""
        kinds = [self.work, self.work, self.work, self.quick, self.wait]
        if depth < self.deepest:
            kinds += [self.fork, self.switch, self.loop, self.dynamic_fork, self.try_, self.each]
        drawn = (self.random.choice(kinds)(depth + 1) for _ in range(self.random.randint(1, most)))
        return [inner for given in drawn for inner in given]

    def work(self, _depth: int) -> list[Document]:
        shown = [ref for ref in self.refs if ref not in self.hidden and not self.is_hidden]
        earlier = self.random.choice(shown or ["workflow"])
        inputs = {"earlier": f"${{{earlier}.output.n}}", "variable": "${workflow.variables.v}"}
        return [step(self.ref("w"), self.random.choice(TYPES), inputs=inputs, policy=self.policy(), **self.mood())]

    def policy(self) -> Document:
        draw = self.random.choice
        limits = {"poll_seconds": draw((0, 0, 40)), "total_seconds": draw((0, 0, 0, 200))}
        limits |= {"lease_seconds": draw((20, 3600)), "timeout_policy": draw(TIMEOUTS)}
        return policy(retries=draw((0, 1, 2)), delay_seconds=draw((0, 5)), **limits)

    def mood(self) -> Document:
        return self.random.choice(({}, {}, {}, {"optional": True}, {"permissive": True}))

    def quick(self, _depth: int) -> list[Document]:
        if self.terminates and self.random.random() < 0.3:
            return [terminate(self.ref("t"), self.random.choice(("COMPLETED", "FAILED", "TERMINATED")), "enough")]
        if self.children and self.random.random() < 0.4:
            return [sub_workflow(self.ref("s"), policy=policy(retries=self.random.choice((0, 1))), **self.mood())]
        return [noop(self.ref("n")) if self.random.random() < 0.5 else set_variable(self.ref("v"), v=len(self.refs))]

    def wait(self, _depth: int) -> list[Document]:
        return [wait(self.ref("p"), duration="7 s") if self.random.random() < 0.7 else human(self.ref("h"))]

    def fork(self, depth: int) -> list[Document]:
        branches = [self.sequence(depth, 2) for _ in range(self.random.randint(1, 3))]
        on = [self.random.choice(branch)["taskReferenceName"] for branch in branches]
        forked = fork(*branches, join=self.ref("j"), on=None if self.random.random() < 0.7 else on)
        return [*forked, join(self.ref("j"), on)] if self.random.random() < 0.1 else forked

    def switch(self, depth: int) -> list[Document]:
        ref = self.ref("c")
        cases = {case: self.sequence(depth, 2) for case in ("a", "b")[: self.random.randint(1, 2)]}
        default = self.sequence(depth, 1) if self.random.random() < 0.5 else []
        chosen = switch(ref, cases, default, inputs={"case": self.random.choice("abx")})
        lasts = [branch[-1]["taskReferenceName"] for branch in [*cases.values(), default] if branch]
        if self.random.random() < 0.3 and chosen["inputParameters"]["case"] in cases:
            return [chosen, exclusive_join(self.ref("x"), lasts)]
        return [chosen]

    def loop(self, depth: int) -> list[Document]:
        keep = {"keepLastN": self.random.choice((1, 2))} if self.random.random() < 0.4 else {}
        body = self.sequence(depth, 2)
        if self.random.random() < 0.3:
            return [loop(self.ref("l"), *body, inputs={"_items": [1, 2][: self.random.randint(0, 2)], **keep})]
        return [loop(self.ref("l"), *body, times=self.random.randint(1, 3), inputs=keep)]

    def each(self, depth: int) -> list[Document]:
        ref, settings = self.ref("e"), {}
        if self.random.random() < 0.4:
            settings["parallel"] = self.random.choice((2, 3))
        if self.random.random() < 0.3:
            settings["keepLastN"] = self.random.choice((1, 2))
        if self.random.random() < 0.5:
            settings["onItemFailure"] = "CONTINUE"
        body = self.sequence(depth, 2)
        head = body[0]
        if head["type"] == "SIMPLE" and not self.is_hidden:
            head["inputParameters"]["item"] = f"${{{ref}.output.item}}"
        items = ["x", "y", "z", "u"][: self.random.choice((0, 1, 2, 2, 3, 4))]
        return [each(ref, *body, items=items, **settings) | self.mood()]

    def try_(self, depth: int) -> list[Document]:
        body = self.sequence(depth, 2)
        kinds = ["FAILED", "TIMED_OUT", ["CANCELED", "FAILED_WITH_TERMINAL_ERROR"]]
        on = [
            catch(*(self.sequence(depth, 1) if self.random.random() < 0.8 else ()), status=self.random.choice(kinds))
            for _ in range(self.random.randint(0, 2))
        ]
        default = self.sequence(depth, 1) if not on or self.random.random() < 0.4 else []
        last = self.sequence(depth, 1) if self.random.random() < 0.4 else []
        return [try_(self.ref("t"), *body, on=on, default=default, last=last) | self.mood()]

    def dynamic_fork(self, depth: int) -> list[Document]:
        if self.random.random() < 0.3:
            inputs = {"forkTaskInputs": [1, 2][: self.random.randint(0, 2)], "forkTaskName": self.random.choice(TYPES)}
            return dynamic_fork(self.ref("f"), self.ref("j"), inputs, optional=self.random.random() < 0.3)
        known, was_hidden, self.is_hidden = len(self.refs), self.is_hidden, True
        branches = [self.sequence(depth, 1)[0] for _ in range(self.random.randint(0, 3))]
        self.is_hidden, self.hidden = was_hidden, self.hidden | set(self.refs[known:])
        branches = [branch for branch in branches if branch["type"] != "JOIN"]
        return dynamic_fork(self.ref("f"), self.ref("j"), inputs={"tasks": branches, "inputs": {}})


def random_definition(
    random: Random, *, deepest: int = 3, children: bool = False, terminates: bool = False, **fields: object
) -> Document:
    """Return a definition that can be run to its end by completing its tasks."""
    return definition(*DefinitionGenerator(random, deepest, children, terminates).sequence(0, 5), **fields)
