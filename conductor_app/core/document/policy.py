"""A task definition's document → the Policy of a step."""

from collections.abc import Mapping
from typing import Any

from ..definition import FIXED, TIME_OUT_RUN, Policy
from ..step_structure import DEFAULT_TYPE, structure_of_step, written_type
from .schemas import enforced_schemas

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
    lease = read_whole_number(document, "responseTimeoutSeconds", defaults.get("responseTimeoutSeconds", 0))
    is_built_in, is_isolated = structure.is_built_in, structure.is_isolated
    return Policy(
        name=document.get("name") or task.get("name") or "",
        retries=read_whole_number(document, "retryCount", defaults.get("retryCount", 0))
        if retries is None
        else read_whole_number(task, "retryCount", 0),
        logic=document.get("retryLogic") or str(defaults.get("retryLogic") or FIXED),
        delay_seconds=read_whole_number(document, "retryDelaySeconds", defaults.get("retryDelaySeconds", 60)),
        scale=read_whole_number(document, "backoffScaleFactor", 1),
        max_delay_seconds=read_whole_number(document, "maxRetryDelaySeconds", 0),
        jitter_ms=read_whole_number(document, "backoffJitterMs", 0),
        total_seconds=read_whole_number(document, "totalTimeoutSeconds", 0),
        timeout_seconds=read_whole_number(document, "timeoutSeconds", 0),
        lease_seconds=min(lease or BUILT_IN_LEASE_SECONDS, BUILT_IN_LEASE_SECONDS) if is_built_in else lease,
        poll_seconds=read_whole_number(document, "pollTimeoutSeconds", 0),
        timeout_policy=document.get("timeoutPolicy") or TIME_OUT_RUN,
        concurrent_limit=read_whole_number(document, "concurrentExecLimit", 0),
        rate_count=read_whole_number(document, "rateLimitPerFrequency", 0),
        rate_seconds=read_whole_number(document, "rateLimitFrequencyInSeconds", 1),
        input_template=document.get("inputTemplate") or {},
        **enforced_schemas(document, by_default=False),
        requeues_on_lost_lease=is_built_in,
        isolation_group=read_stripped_text(document, "isolationGroupId") if is_isolated else "",
        name_space=read_stripped_text(document, "executionNameSpace") if is_isolated else "",
    )


def read_stripped_text(document: Mapping[str, Any], name: str) -> str:
    """Return a stripped text member, or ""."""
    value = document.get(name)
    return value.strip() if isinstance(value, str) else ""


def read_whole_number(document: Mapping[str, Any], name: str, default: int) -> int:
    """Return an integer member from 0 to MAX_VALUE, or the default."""
    value = document.get(name)
    try:
        return default if value is None or value == "" else min(max(int(value), 0), MAX_VALUE)
    except (TypeError, ValueError, OverflowError):
        return default
