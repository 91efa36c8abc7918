"""Read documents: the definition of a workflow with its steps laid out, and the policy of a task.

A definition inside another document, at `subWorkflowParam.workflowDefinition`, belongs to the child run. Whatever
resolves or checks the parent's expressions takes it out first.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..definition import (
    DEFAULT_LIMITS,
    DEFAULT_TYPE,
    FIXED,
    MAX_DEPTH,
    TIME_OUT_RUN,
    Definition,
    Flow,
    Policy,
    RunLimits,
    Schema,
    Step,
    replace_at,
    runs_by_name,
    structure_of,
    structure_of_step,
    type_of,
    written_type,
)
from ..errors import ValidationError, ValidationFailed
from ..expressions.json_text import replace_texts
from ..primitives import JsonValue, fast_replace

ALLOWED_SECRETS = "_allowedSecrets"
"""Key in a resolved document: its steps may name only these secrets. Only the engine writes it; replies omit it."""


def read_definition(
    document: Mapping[str, Any],
    *,
    hash: str = "",
    publishes_task_events: bool = False,
    limits: RunLimits = DEFAULT_LIMITS,
) -> Definition:
    """Return the definition that the document describes. `limits`: those of its runs."""
    tasks = document.get("tasks") or ()
    allowed = document.get(ALLOWED_SECRETS)
    allowed_secrets = None if allowed is None else frozenset(allowed)
    steps = layout_steps(tasks, allowed_secrets=allowed_secrets)
    return Definition(
        name=str(document.get("name") or ""),
        version=_read_whole_number(document, "version", 1),
        document=document,
        steps=steps,
        first=str(tasks[0].get("taskReferenceName")) if tasks else None,
        hash=hash,
        timeout_seconds=_read_whole_number(document, "timeoutSeconds", 0),
        times_out=document.get("timeoutPolicy") == TIME_OUT_RUN,
        **_enforced_schemas(document, by_default=True),
        output_parameters=document.get("outputParameters") or {},
        # Steps of a dynamic fork may be permissive too; only its input says so.
        has_permissive=any(step.permissive or makes_branches(step) for step in steps.values()),
        publishes_task_events=publishes_task_events,
        publishes_listener_events=publishes_task_events
        or bool(document.get("workflowStatusListenerEnabled"))
        or any(step.document.get("onStateChange") or makes_branches(step) for step in steps.values()),
        limits=limits,
        allowed_secrets=allowed_secrets,
        breakpoints=(),
    )


def makes_branches(step: Step) -> bool:
    """Return True if tasks of the step bring steps of their own, which the definition does not show."""
    return structure_of(step.type).flow is Flow.DYNAMIC_FORK


Document = Mapping[str, Any]
SECRET_NAME = re.compile(r"\$\{\s*workflow\.secrets\.([\w-]+)")


def item_reference(ref: str) -> str:
    """Return the reference of the task that a FOR_EACH creates for an item."""
    return f"{ref}_item"


class LayoutBuilder:
    """The steps found so far."""

    def __init__(self, *, is_authored: bool, allowed_secrets: frozenset[str] | None) -> None:
        self.steps: dict[str, Step] = {}
        self.is_authored = is_authored
        self.allowed_secrets = allowed_secrets if is_authored else frozenset()

    def sequence(self, tasks: Sequence[Document], after: str | None, loops: tuple[str, ...], depth: int) -> str | None:
        """Lay out consecutive steps; `after` follows the last. Returns the reference of the first.

        Raises:
            ValidationFailed: when steps are nested too deeply.
        """
        if depth > MAX_DEPTH:
            raise ValidationFailed([ValidationError("tasks", f"Tasks are nested more than {MAX_DEPTH} levels deep.")])
        if not tasks:
            return after
        refs = [str(task.get("taskReferenceName")) for task in tasks]
        for task, follower in zip(tasks, [*refs[1:], after], strict=True):
            self.step(task, follower, loops, depth)
        return refs[0]

    def step(self, task: Document, follower: str | None, loops: tuple[str, ...], depth: int) -> None:
        ref = str(task.get("taskReferenceName"))
        if ref in self.steps:
            raise ValidationFailed([ValidationError("tasks", f"taskReferenceName {ref} is used twice.")])
        step = Step(
            ref=ref,
            name=str(task.get("name") or ref),
            type=type_of(task),
            document=task,
            follower=follower,
            loops=loops,
            policy=read_policy(task, is_ad_hoc=self.is_authored),
            inputs=task.get("inputParameters") or {},
            joins=tuple(task.get("joinOn") or ()),
            optional=bool(task.get("optional")),
            permissive=bool(task.get("permissive")),
            start_delay=_read_whole_number(task, "startDelay", 0),
            async_complete=bool(task.get("asyncComplete")),
            secrets=self._allowed(_named_secrets(task)) if self.is_authored else frozenset(),
            runtime_metadata=_runtime_metadata(task),
            is_authored=self.is_authored,
        )
        self.steps[ref] = step
        self.steps[ref] = fast_replace(step, **self._nested_fields(task, step, depth))

    def _allowed(self, secrets: frozenset[str]) -> frozenset[str]:
        return secrets if self.allowed_secrets is None else secrets & self.allowed_secrets

    def _nested_fields(self, task: Document, step: Step, depth: int) -> dict[str, Any]:
        """Lay out the bodies of a step, and return the fields that refer to them."""
        structure = structure_of(step.type)
        bodies = tuple(structure.bodies(task))
        if not bodies:
            return {}
        known = set(self.steps) if structure.iterates else set()
        loops = (*step.loops, step.ref) if structure.iterates else step.loops
        item = item_reference(step.ref) if structure.item_type else ""
        after = step.follower if structure.flow is Flow.CHOICE else None
        around = (*loops, item) if item else loops
        heads = {
            body.name: self.sequence(body.steps, after, around, depth + 1) if body.steps else None for body in bodies
        }
        inside = frozenset(set(self.steps) - known) if structure.iterates else frozenset()
        fields: dict[str, Any] = {"bodies": heads, "heads": tuple(filter(None, heads.values())), "inside": inside}
        if not item:
            return fields
        self.steps[item] = Step(item, step.name, structure.item_type, {}, Policy(), loops=loops, **fields)
        return {"bodies": {item: item}, "heads": (item,), "inside": inside | {item}}


def _named_secrets(task: Document) -> frozenset[str]:
    """Return the secrets that the author of a step names. Values from runs are data and can name none."""
    template = (task.get("taskDefinition") or {}).get("inputTemplate") or {}
    written = json.dumps([task.get("inputParameters") or {}, template], default=str)
    return frozenset(SECRET_NAME.findall(written))


def _runtime_metadata(task: Document) -> tuple[str, ...]:
    requested = (task.get("taskDefinition") or {}).get("runtimeMetadata")
    return tuple(name for name in requested if isinstance(name, str)) if isinstance(requested, list) else ()


def secrets_named_in(document: JsonValue) -> list[str]:
    """Return the secrets that a whole document names, in expressions or in `runtimeMetadata`, in alphabetical order."""
    names, pending = set(SECRET_NAME.findall(json.dumps(document, default=str))), [document]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            pending += part.values()
            requested = part.get("runtimeMetadata")
            names.update(map(str, requested if isinstance(requested, list) else ()))
        elif isinstance(part, list):
            pending += part
    return sorted(names)


def layout_steps(
    tasks: Sequence[Document],
    *,
    loops: tuple[str, ...] = (),
    is_authored: bool = True,
    allowed_secrets: frozenset[str] | None = None,
) -> dict[str, Step]:
    """Return the steps by reference.

    `is_authored`: an author wrote the steps; those of a dynamic fork come from data and can name no secrets.
    `allowed_secrets`: the secrets that the steps may name, or None for all.

    Raises:
        ValidationFailed: when the document cannot be laid out.
    """
    layout = LayoutBuilder(is_authored=is_authored, allowed_secrets=allowed_secrets)
    layout.sequence(tasks, None, loops, 0)
    return _add_joins(layout.steps)


def layout_branch(steps: dict[str, Step], head: str, join: str | None) -> dict[str, Step]:
    """Return the steps of a dynamic branch with one task. A join waits for it and for the case it leads to."""
    if not join:
        return steps
    last = {head, *_last_steps_of_cases(steps, steps[head])}
    return {ref: fast_replace(step, joined_by=(join,)) if ref in last else step for ref, step in steps.items()}


def _last_steps_of_cases(steps: Mapping[str, Step], switch: Step) -> Iterator[str]:
    """Yield the last steps of the cases of a switch at the end of a branch."""
    for ref in set(switch.heads if structure_of(switch.type).flow is Flow.CHOICE else ()):
        step = steps[ref]
        while step.follower:
            step = steps[step.follower]
        yield step.ref
        yield from _last_steps_of_cases(steps, step)


def _add_joins(steps: dict[str, Step]) -> dict[str, Step]:
    """Return the steps, each with the joins that wait for it."""
    joined_by: dict[str, list[str]] = {}
    for join in steps.values():
        if structure_of(join.type).flow is Flow.JOIN:
            for ref in {*join.joins, *(join.document.get("defaultExclusiveJoinTask") or ())}:
                joined_by.setdefault(ref, []).append(join.ref)
    for ref, joins in joined_by.items():
        if ref in steps:
            steps[ref] = fast_replace(steps[ref], joined_by=tuple(joins))
    return steps


def _enforced_schemas(document: Mapping[str, Any], *, by_default: bool) -> dict[str, Schema]:
    """Return the enforced schemas of a definition by part. The resolved definition contains them."""
    asked = document.get("enforceSchema")
    if not (by_default if asked is None else asked):
        return {}
    given = {"input_schema": document.get("inputSchema"), "output_schema": document.get("outputSchema")}
    return {part: schema for part, one in given.items() if isinstance(one, dict) and (schema := _read_schema(one))}


def _read_schema(given: Mapping[str, Any]) -> Schema | None:
    """Return a JSON schema; None for other languages, for external addresses, and for an empty one."""
    if given.get("type") not in (None, "JSON"):
        return None
    name = ", version ".join(str(given[part]) for part in ("name", "version") if given.get(part))
    if isinstance(given.get("data"), dict):
        return Schema(name, json.dumps(given["data"], sort_keys=True))
    return Schema(name, "") if given.get("name") and not given.get("externalRef") else None


BUILT_IN_LEASE_SECONDS = 120
"""The lease of built-in workers in seconds, longer than the maximum duration of their tasks."""
MAX_VALUE = 2**31 - 1
"""No span, count or limit is larger: in seconds it is 68 years."""
AD_HOC = {"retryCount": 3, "retryDelaySeconds": 60, "responseTimeoutSeconds": 3600}
"""The policy of a SIMPLE task without a task definition (execution §3)."""


def read_policy(task: Mapping[str, Any], *, is_ad_hoc: bool = True) -> Policy:
    """Return the policy of a step's document: its `taskDefinition`, overridden by the step's own `retryCount`.

    `is_ad_hoc`: a SIMPLE step without a task definition gets the defaults of one.
    """
    document = task.get("taskDefinition") or {}
    structure = structure_of_step(task)
    is_simple = written_type(task) == DEFAULT_TYPE
    defaults = AD_HOC if document or (is_ad_hoc and is_simple) else structure.policy_defaults
    retries = task.get("retryCount")
    lease = _read_whole_number(document, "responseTimeoutSeconds", defaults.get("responseTimeoutSeconds", 0))
    is_built_in, is_isolated = structure.is_built_in, structure.is_isolated
    return Policy(
        name=document.get("name") or task.get("name") or "",
        retries=_read_whole_number(document, "retryCount", defaults.get("retryCount", 0))
        if retries is None
        else _read_whole_number(task, "retryCount", 0),
        logic=document.get("retryLogic") or str(defaults.get("retryLogic") or FIXED),
        delay_seconds=_read_whole_number(document, "retryDelaySeconds", defaults.get("retryDelaySeconds", 60)),
        scale=_read_whole_number(document, "backoffScaleFactor", 1),
        max_delay_seconds=_read_whole_number(document, "maxRetryDelaySeconds", 0),
        jitter_ms=_read_whole_number(document, "backoffJitterMs", 0),
        total_seconds=_read_whole_number(document, "totalTimeoutSeconds", 0),
        timeout_seconds=_read_whole_number(document, "timeoutSeconds", 0),
        lease_seconds=min(lease or BUILT_IN_LEASE_SECONDS, BUILT_IN_LEASE_SECONDS) if is_built_in else lease,
        poll_seconds=_read_whole_number(document, "pollTimeoutSeconds", 0),
        timeout_policy=document.get("timeoutPolicy") or TIME_OUT_RUN,
        concurrent_limit=_read_whole_number(document, "concurrentExecLimit", 0),
        rate_count=_read_whole_number(document, "rateLimitPerFrequency", 0),
        rate_seconds=_read_whole_number(document, "rateLimitFrequencyInSeconds", 1),
        input_template=document.get("inputTemplate") or {},
        **_enforced_schemas(document, by_default=False),
        requeues_on_lost_lease=is_built_in,
        isolation_group=_read_stripped_text(document, "isolationGroupId") if is_isolated else "",
        name_space=_read_stripped_text(document, "executionNameSpace") if is_isolated else "",
    )


def _read_stripped_text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    return value.strip() if isinstance(value, str) else ""


def _read_whole_number(document: Mapping[str, Any], name: str, default: int) -> int:
    """Return an integer member from 0 to MAX_VALUE, or the default."""
    value = document.get(name)
    try:
        return default if value is None or value == "" else min(max(int(value), 0), MAX_VALUE)
    except (TypeError, ValueError, OverflowError):
        return default


PARAM, DEFINITION = "subWorkflowParam", "workflowDefinition"
Path = tuple[Any, ...]


def extract_definitions(value: JsonValue) -> tuple[Any, dict[Path, dict[str, Any]]]:
    """Return the value with null in place of each inline definition, and the definitions by their paths.

    The value itself stays as it is. A definition inside another one is part of that one.
    """
    definitions = dict(_find_definitions(value))
    if not definitions:
        return value, {}
    without = value
    for path in definitions:
        without = replace_at(without, path, None)
    return without, definitions


def restore_definitions(value: JsonValue, definitions: Mapping[Path, dict[str, Any]]) -> Any:
    """Return the value with the definitions that `extract_definitions` has removed."""
    for path, definition in definitions.items():
        value = replace_at(value, path, definition)
    return value


def inputs_without_definitions(step: Mapping[str, Any]) -> Any:
    """Return the step's `inputParameters` without the definitions whose expressions belong to a child run.

    Only a dynamic fork makes steps of its inputs; in the inputs of other steps a definition is data like any other.
    """
    inputs = step.get("inputParameters")
    makes_steps = structure_of_step(step).flow is Flow.DYNAMIC_FORK
    return extract_definitions(inputs)[0] if makes_steps else inputs


def param_without_definition(step: Mapping[str, Any]) -> Any:
    """Return the step's `subWorkflowParam` without a definition given in place."""
    return extract_definitions({PARAM: step.get(PARAM)})[0][PARAM]


def _find_definitions(value: JsonValue) -> Iterator[tuple[Path, dict[str, Any]]]:
    pending: list[tuple[Path, Any]] = [((), value)]
    while pending:
        path, item = pending.pop()
        if isinstance(item, dict):
            if path[-1:] == (PARAM,) and isinstance(item.get(DEFINITION), dict):
                yield (*path, DEFINITION), item[DEFINITION]
                item = {key: inner for key, inner in item.items() if key != DEFINITION}
            pending.extend(((*path, key), inner) for key, inner in item.items() if isinstance(inner, dict | list))
        elif isinstance(item, list):
            indexed = enumerate(item)
            pending.extend(((*path, index), inner) for index, inner in indexed if isinstance(inner, dict | list))


VARIABLE_NAME = re.compile(r"\$\{\s*workflow\.env\.([\w-]+)")
INPUT_OVERRIDE_KEY = "given"
"""Key in a task's step state for the inputs that an operator set. They replace inputs of its step in every attempt."""


def override_inputs(step: Step, given: Mapping[str, Any] | None) -> Step:
    """Return the step with its inputs replaced by `given`.

    Expressions in `given` are escaped, because they are data.
    """
    if not given:
        return step
    return fast_replace(
        step, inputs={**step.inputs, **replace_texts(dict(given), lambda text: text.replace("${", "$${"))}
    )


def name_step(step: Step, name: str) -> Step:
    """Return a DYNAMIC step as one of the type that a name names; another name is that of a task for workers."""
    type = name if runs_by_name(name) else DEFAULT_TYPE
    policy = step.policy
    if structure_of(type).is_built_in:
        lease = min(policy.lease_seconds or BUILT_IN_LEASE_SECONDS, BUILT_IN_LEASE_SECONDS)
        policy = replace(policy, lease_seconds=lease, requeues_on_lost_lease=True)
    return fast_replace(step, type=type, name=name, policy=policy, is_named_by_input=True)


def restore_step(step: Step, state: Mapping[str, Any]) -> Step:
    """Return the step of a stored task: with the name of its task, and with the inputs that an operator set."""
    named = name_step(step, str(state["name"])) if "name" in state and not step.is_named_by_input else step
    return override_inputs(named, state.get(INPUT_OVERRIDE_KEY))
