"""Metrics of calls of models, by integration and model."""

from dataclasses import dataclass

from prometheus_client import Counter, Histogram

from .. import process_state
from ..process_state import Slot
from .metrics import MAX_NAMES, OTHER_NAMES, REGISTRY

LABELS = ("integration", "model")
LATENCY_BUCKETS = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0, 600.0)

MODEL_CALLS = Counter(
    "conductor_model_calls", "Calls of models that have ended.", (*LABELS, "result"), registry=REGISTRY
)
MODEL_TOKENS = Counter(
    "conductor_model_tokens", "Tokens that calls of models have used.", (*LABELS, "direction"), registry=REGISTRY
)
MODEL_COST = Counter(
    "conductor_model_cost", "Cost of calls of models, in the currency of the prices.", LABELS, registry=REGISTRY
)
MODEL_CALL_SECONDS = Histogram(
    "conductor_model_call_seconds",
    "Duration of the calls of models that replied.",
    LABELS,
    registry=REGISTRY,
    buckets=LATENCY_BUCKETS,
)
_known: Slot[set[tuple[str, str]]] = process_state.slot(set)


@dataclass(frozen=True, slots=True)
class CallMeasure:
    """What is measured of one call. `cost`: in millionths of the currency."""

    integration: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cost: int
    duration_ms: int
    is_failure: bool


def observe_call(call: CallMeasure) -> None:
    """Add an ended call to the metrics. At most MAX_NAMES models have labels of their own."""
    labels = (call.integration, call.model)
    known = _known.value
    if labels not in known:
        if len(known) >= MAX_NAMES:
            labels = (OTHER_NAMES, OTHER_NAMES)
        else:
            known.add(labels)
    MODEL_CALLS.labels(*labels, "failed" if call.is_failure else "replied").inc()
    MODEL_TOKENS.labels(*labels, "prompt").inc(call.prompt_tokens)
    MODEL_TOKENS.labels(*labels, "completion").inc(call.completion_tokens)
    MODEL_COST.labels(*labels).inc(call.cost / 1_000_000)
    if not call.is_failure:
        MODEL_CALL_SECONDS.labels(*labels).observe(call.duration_ms / 1000)
