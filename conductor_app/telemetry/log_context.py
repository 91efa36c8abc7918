"""The context of the current operation, which is added to log lines and spans, and spans for OpenTelemetry.

OpenTelemetry's libraries are imported only if an endpoint is configured.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from ..core.errors import RequestRefused
from ..utils import process_state
from ..utils.process_state import Wiring

_tracer: Wiring[Any] = process_state.wiring(None)
_provider: Wiring[Any] = process_state.wiring(None)
process_exporter: Wiring[Any] = process_state.wiring(None)
"""Sends the spans of ended runs. None without an endpoint."""
_no_span = nullcontext()


def start_tracing(endpoint: str) -> None:
    """Start to send spans to the collector, unless `endpoint` is empty. The library reads its own variables.

    Raises:
        ImproperlyConfigured: when the libraries of OpenTelemetry are not installed.
    """
    if not endpoint:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as missing:
        raise ImproperlyConfigured(
            "OTEL_EXPORTER_OTLP_ENDPOINT requires OpenTelemetry. Install conductor-app with its extra `traces`."
        ) from missing
    add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    process_exporter.value = OTLPSpanExporter()


def stop_tracing() -> None:
    """Send the remaining spans and stop tracing."""
    if _provider.value is not None:
        _provider.value.shutdown()
    if process_exporter.value is not None:
        process_exporter.value.shutdown()
    _tracer.value = _provider.value = process_exporter.value = None


def add_span_processor(processor: Any) -> None:
    """Add a processor for all spans."""
    from opentelemetry.sdk.trace import TracerProvider

    provider = TracerProvider(resource=resource_of_spans())
    provider.add_span_processor(processor)
    _provider.value, _tracer.value = provider, provider.get_tracer("conductor_app")


def resource_of_spans() -> Any:
    """Return what the spans of this server have in common: the name of the service, and what the environment adds."""
    from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource

    return Resource({SERVICE_NAME: "conductor-app"}).merge(OTELResourceDetector().detect())


def current_traceparent() -> str | None:
    """Return the context of the current span, or None without one."""
    if _tracer.value is None:
        return None
    from opentelemetry.trace import get_current_span

    context = get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def span(
    name: str, facts: Mapping[str, Any], caller: Mapping[str, str] | None = None, *, is_request: bool = False
) -> AbstractContextManager[Any]:
    """Return a span around a block. `caller`: headers that may contain the span of the caller."""
    return _no_span if _tracer.value is None else _start_span(name, facts, caller, is_request)


@contextmanager
def _start_span(
    name: str, facts: Mapping[str, Any], caller: Mapping[str, str] | None, is_request: bool
) -> Iterator[Any]:
    from opentelemetry.trace import SpanKind, Status, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = TraceContextTextMapPropagator().extract(caller) if caller else None
    kind = SpanKind.SERVER if is_request else SpanKind.INTERNAL
    attributes = {f"conductor.{name}": fact for name, fact in facts.items()}
    # The message of an exception may contain user data, so only its type is sent.
    with _tracer.value.start_as_current_span(
        name, context, kind, attributes, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except Exception as error:
            if not isinstance(error, RequestRefused):
                current.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise


MAX_FACT_LENGTH = 200
"""The maximum length of a fact. Ids are shorter. Longer texts of clients are truncated."""
RUN_FACT_NAMES = ("run_id", "task_id", "attempt_id")

_context: ContextVar[dict[str, str | int]] = ContextVar("log_context", default={})  # noqa: B039 - the dictionary is never mutated


@contextmanager
def log_context(operation: str, *, caller: Mapping[str, str] | None = None, **facts: str | int) -> Iterator[None]:
    """Add facts to the log lines of the block, and trace it as a span, of the trace of the `caller` if there is one."""
    new_facts = _format_facts(facts)
    before = _context.get()
    if new_facts.get("run_id", before.get("run_id")) != before.get("run_id"):
        before = {name: fact for name, fact in before.items() if name not in RUN_FACT_NAMES}
    token = _context.set({**before, **new_facts})
    try:
        with span(operation, new_facts, caller):
            yield
    finally:
        _context.reset(token)


def reset(**facts: str | int) -> None:
    """Replace the facts of this thread, because it starts another operation."""
    _context.set(_format_facts(facts))


def bind(**facts: str | int) -> None:
    """Add facts to the current operation."""
    _context.set({**_context.get(), **_format_facts(facts)})


def merge_context(logger: Any, method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Return a log line with the facts of its context. Its own facts take precedence."""
    for name, fact in _context.get().items():
        line.setdefault(name, fact)
    return line


def _format_facts(facts: dict[str, str | int]) -> dict[str, str | int]:
    return {name: fact[:MAX_FACT_LENGTH] if isinstance(fact, str) else fact for name, fact in facts.items() if fact}


def request_id() -> str:
    """Return the id of the current HTTP request, or ""."""
    return str(_context.get().get("request_id", ""))
