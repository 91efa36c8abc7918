"""Traces."""

import gzip
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.core.exceptions import ImproperlyConfigured
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from conductor_app.processes import sweeps
from conductor_app.system_tasks import registry
from conductor_app.tasks.commands.claims import claim_tasks
from conductor_app.telemetry import log_context as spans
from tests.builders import policy, step
from tests.management.server import ROOT
from tests.scenario import Scenario, run_commit_hooks

pytestmark = pytest.mark.django_db
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def seen():
    """Return the finished spans by name."""
    exporter = InMemorySpanExporter()
    spans.add_span_processor(SimpleSpanProcessor(exporter))
    yield lambda: {span.name: span for span in exporter.get_finished_spans()}
    spans.stop_tracing()


@pytest.fixture
def collector():
    """Yield a collector that receives OTLP over HTTP."""
    server = Collector()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    spans.stop_tracing()
    server.shutdown()
    server.server_close()


class Collector(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Receipt)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.received: list[tuple] = []


class Receipt(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
            facts = {each.key: each.value.string_value for each in sent.resource.attributes}
            found = [span for scope in sent.scope_spans for span in scope.spans]
            self.server.received += [(facts["service.name"], span) for span in found]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments):
        """Print nothing."""


def test_a_request_and_its_command_are_spans_of_the_callers_trace(client, clock, seen):
    scenario = Scenario(clock, step("pay"))
    scenario.worker("pay").polls()
    body = {"workflowInstanceId": scenario.id, "taskId": scenario.task("pay").id, "status": "COMPLETED"}

    client.post("/api/tasks", body, "application/json", headers={"traceparent": CALLER})

    request, command = seen()["POST /api/tasks"], [span for span in seen().values() if span.name == "change"][-1]
    assert format(request.context.trace_id, "032x") == "0af7651916cd43dd8448eb211c80319c"
    assert command.parent.span_id == request.context.span_id
    assert command.attributes["conductor.run_id"] == scenario.id
    assert request.attributes["http.response.status_code"] == 200


def test_a_start_and_an_address_carry_the_runs_id(client, clock, seen):
    scenario = Scenario(clock, step("pay"))

    client.get(f"/api/workflow/{scenario.id}")

    assert seen()["start"].attributes["conductor.run_id"] == scenario.id
    assert seen()["GET /api/workflow/<str:workflow>"].attributes["conductor.run_id"] == scenario.id


def test_a_workflow_name_is_not_mistaken_for_an_id(client, clock, seen):
    Scenario(clock, step("pay"))

    client.post("/api/workflow/order", {}, "application/json")

    assert "conductor.run_id" not in seen()["POST /api/workflow/<str:workflow>"].attributes


@pytest.mark.parametrize("hostile", ["", "x", "00-0-0-0", "00-" + "z" * 32 + "-" + "z" * 16 + "-01"])
def test_a_caller_that_cannot_be_read_is_no_caller(client, seen, hostile):
    assert client.get("/health", headers={"traceparent": hostile}).status_code == 200
    assert seen()["GET /health"].parent is None


def test_each_sweep_with_work_is_a_span(clock, seen):
    scenario = Scenario(clock, step("pay", policy=policy(lease_seconds=1)))
    scenario.worker("pay").polls()
    scenario.later(5)

    assert scenario.id in seen()["sweep_item"].attributes["conductor.item"]


def test_a_sweep_without_work_is_no_span(seen, clock):
    sweeps.sweep_once()

    assert seen() == {}


def test_the_work_of_a_built_in_worker_is_a_span(clock, seen):
    http = {"name": "call", "taskReferenceName": "call", "type": "HTTP", "inputParameters": {"uri": "nowhere"}}
    scenario = Scenario(clock, http)
    with run_commit_hooks():
        [attempt] = claim_tasks("HTTP", wait_ms=0)
        registry.run_attempt(attempt)

    found = seen()["HTTP"].attributes
    assert (found["conductor.run_id"], found["conductor.attempt_id"]) == (scenario.id, attempt.id)


def test_an_exception_marks_its_span_without_its_message(seen):
    with pytest.raises(ZeroDivisionError), spans.span("work", {}):
        raise ZeroDivisionError("the card is 4111")

    found = seen()["work"]
    assert (found.status.description, found.events) == ("ZeroDivisionError", ())


def test_without_an_endpoint_the_library_is_not_imported():
    program = (
        "import os, sys, django; os.environ['DJANGO_SETTINGS_MODULE'] = 'conductor_app.settings.testing';"
        "django.setup(); from conductor_app.telemetry import log_context as spans;"
        "assert spans.span('a', {}) is spans.span('b', {});"
        "assert not any(name.startswith('opentelemetry') for name in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


def test_spans_arrive_at_a_collector(monkeypatch, collector):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
    spans.start_tracing(collector.address)

    with spans.span("work", {"run_id": "r-1"}):
        pass
    spans.stop_tracing()

    [(service, found)] = collector.received
    assert (service, found.name) == ("conductor-app", "work")
    assert [(each.key, each.value.string_value) for each in found.attributes] == [("conductor.run_id", "r-1")]


def test_an_endpoint_without_the_library_is_refused_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)

    with pytest.raises(ImproperlyConfigured, match=r"OTEL_EXPORTER_OTLP_ENDPOINT requires OpenTelemetry"):
        spans.start_tracing("http://127.0.0.1:4318")
