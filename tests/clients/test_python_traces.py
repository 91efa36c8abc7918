"""Workers of the Python SDK whose spans join the trace of their run: the example of the documentation."""

from conductor.client.http.models.task import Task
from conductor.client.http.models.task_result import TaskResult
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from conductor_app.core.trace_context import span_id_of
from tests.clients.shop_workflow import Shop, result_of, serve_tasks, worker


def test_the_span_of_a_worker_is_below_that_of_its_attempt(shop: Shop, configuration, settings):
    settings.CONDUCTOR_TRACES_ENDPOINT = "http://collector.example.org"
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("shop")

    def cut(task: Task) -> TaskResult:
        parent = TraceContextTextMapPropagator().extract(task.runtime_metadata or {})
        with tracer.start_as_current_span("cut", parent):
            return result_of(task, "COMPLETED", output_data=task.runtime_metadata)

    shop.define("cut")
    with serve_tasks(configuration, worker("cut", cut)):
        run = shop.wait_for_end(shop.start())

    [span] = exporter.get_finished_spans()
    [task] = run.tasks
    assert format(span.parent.span_id, "016x") == span_id_of(task.task_id)
    assert format(span.context.trace_id, "032x") == task.output_data["traceparent"].split("-")[1]
