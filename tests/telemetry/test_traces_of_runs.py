"""One trace per run: stored with it, passed on, and exported from its rows after its end."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import requests
from django.core.exceptions import ImproperlyConfigured
from django.urls import reverse
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from conductor_app.core.trace_context import first_traceparent, parse_traceparent, span_id_of
from conductor_app.events.commands import handlers as event_handlers
from conductor_app.events.commands.intake import receive_event
from conductor_app.events.sinks.base import trace_headers, with_trace_of
from conductor_app.runs.commands import tracing
from conductor_app.runs.commands.tracing import export_traces
from conductor_app.runs.models import Run
from conductor_app.settings import environment
from conductor_app.system_tasks.http import Http, HttpLimits
from conductor_app.system_tasks.publishing import EventWorker, KafkaPublish
from conductor_app.tasks.commands.claims import claim_tasks
from conductor_app.telemetry import log_context as spans
from tests.builders import definition, event, policy, simple, start_workflow, step, sub_workflow
from tests.clients.wait_until import eventually
from tests.free_port import free_port
from tests.recording_web_server import json_answer, running_web_server
from tests.runs.test_statements import Counted
from tests.scenario import Scenario, register_definitions, run_commit_hooks
from tests.telemetry.test_spans import CALLER, collector  # noqa: F401 - a fixture

pytestmark = pytest.mark.django_db
_, TRACE, SPAN, _ = CALLER.split("-")
TRACED = {"traceparent": CALLER}
CHILD = definition(step("cut"), name="child")
HTTP = {"name": "call", "taskReferenceName": "call", "type": "HTTP"}


def below(id: str) -> str:
    return f"00-{TRACE}-{span_id_of(id)}-01"


@pytest.fixture
def exported(settings):
    """Export the spans of runs, to an object that keeps them."""
    settings.CONDUCTOR_TRACES_ENDPOINT = "http://collector.example.org"
    spans.process_exporter.value = InMemorySpanExporter()
    yield spans.process_exporter.value
    spans.stop_tracing()


def by_name(exported) -> dict:
    return {span.name: span for span in exported.get_finished_spans()}


def id_of(span) -> str:
    return format(span.context.span_id, "016x")


@pytest.mark.parametrize("address", ["/api/workflow", "/api/workflow/order", "/api/workflow/start/order/1"])
def test_the_trace_of_a_start_request_is_stored_with_the_run(client, clock, address):
    register_definitions(definition(step("pay")))

    run_id = client.post(address, {"name": "order"}, "application/json", headers=TRACED).content.decode()

    assert Run.objects.get(pk=run_id).traceparent == CALLER
    assert client.get(f"/api/workflow/{run_id}").json()["traceparent"] == CALLER


@pytest.mark.parametrize("hostile", ["", "x", CALLER.replace("b7", "zz"), f"00-{'0' * 32}-{SPAN}-01", CALLER * 99])
def test_an_invalid_trace_is_none(client, clock, hostile):
    register_definitions(definition(step("pay")))

    run_id = client.post("/api/workflow/order", {}, "application/json", headers={"traceparent": hostile})

    assert Run.objects.get(pk=run_id.content.decode()).traceparent is None


def test_a_newer_version_of_the_header_is_read_as_the_first():
    assert parse_traceparent(f"01-{TRACE}-{SPAN}-00-more") == f"00-{TRACE}-{SPAN}-00"


def test_a_worker_gets_the_trace_with_its_attempt_as_parent(client, clock):
    scenario = Scenario(clock, step("pay"), step("ship"), start=TRACED)

    task = client.get("/api/tasks/poll/pay").json()

    assert task["runtimeMetadata"] == {"traceparent": below(scenario.task("pay").id)}


def test_a_task_without_a_trace_has_no_such_field(client, clock):
    Scenario(clock, step("pay"))

    assert "runtimeMetadata" not in client.get("/api/tasks/poll/pay").json()


def test_without_a_trace_a_start_writes_no_column_more(clock):
    register_definitions(definition(step("pay"), sub_workflow("sub")), CHILD)

    with Counted() as without:
        Scenario(clock, step("pay"), sub_workflow("sub"), others=[CHILD])
    with Counted() as traced:
        Scenario(clock, step("pay"), sub_workflow("sub"), others=[CHILD], start=TRACED)

    inserts = [sql for sql in without.statements if sql.startswith("INSERT INTO conductor_run ")]
    assert inserts and not any("traceparent" in sql.partition("VALUES")[0] for sql in inserts)
    assert traced.count == without.count


def test_runs_that_a_run_starts_belong_to_its_trace(clock):
    scenario = Scenario(clock, sub_workflow("sub"), others=[CHILD], start=TRACED)
    successor = Scenario(clock, start_workflow("next", name="child", input={}), others=[CHILD], start=TRACED)

    assert scenario.child("sub").row.traceparent == below(scenario.task("sub").id)
    started = successor.task("next").output["workflowId"]
    assert Run.objects.get(pk=started).traceparent == below(successor.id)


@pytest.mark.parametrize(("own", "sent"), [({}, None), ({"TraceParent": "mine"}, "mine")])
def test_an_http_task_passes_the_trace_on_unless_it_sets_the_header(clock, own, sent):
    with running_web_server() as server:
        server.answers["/"] = json_answer({})
        request = {"uri": f"{server.url}/", "method": "GET", "headers": own}
        scenario = Scenario(clock, {**HTTP, "inputParameters": {"http_request": request}}, start=TRACED)
        [attempt] = claim_tasks("HTTP", wait_ms=0)

        assert Http(lambda: HttpLimits(allowed_networks=("127.0.0.0/8",))).work_on(attempt).status == "COMPLETED"

    assert server.asked[0]["headers"]["traceparent"] == (sent or below(scenario.task("call").id))


def test_an_event_task_passes_the_trace_on_in_its_payload(clock):
    scenario = Scenario(clock, event("tell", "kafka:orders"), start=TRACED)
    [attempt] = claim_tasks("EVENT", wait_ms=0)

    payload = EventWorker().inputs_of(attempt)["payload"]

    assert trace_headers(payload) == {"traceparent": below(scenario.task("tell").id)}


def test_a_kafka_message_has_the_trace_as_a_header(clock):
    inputs = {"kafka_request": {"topic": "orders", "value": 1}}
    publish = {"name": "say", "taskReferenceName": "say", "type": "KAFKA_PUBLISH", "inputParameters": inputs}
    scenario = Scenario(clock, publish, start=TRACED)
    [attempt] = claim_tasks("KAFKA_PUBLISH", wait_ms=0)

    request = KafkaPublish().inputs_of(attempt)["kafka_request"]

    assert request["headers"] == {"traceparent": below(scenario.task("say").id)}


def test_an_event_starts_a_run_in_its_trace(clock):
    register_definitions(definition(step("pay")))
    action = {"action": "start_workflow", "start_workflow": {"name": "order"}}
    handler = {"name": "orders", "event": "nats:orders", "active": True, "actions": [action]}
    event_handlers.create_handlers([handler], "ann")

    with run_commit_hooks():
        receive_event("nats:orders", "m1", with_trace_of({"n": 1}, CALLER), "nats")

    assert Run.objects.get().traceparent == CALLER


def test_a_webhook_starts_a_run_in_the_trace_of_its_request(api, clock):
    api.define(simple("pay"))
    secret = {"verifier": "HEADER_BASED", "headers": {"X-Key": "a secret"}}
    webhook = api.post("/metadata/webhook", {"name": "shop", "workflowsToStart": {"order": 1}, **secret}).json()

    assert api.post(f"/webhook/{webhook['id']}", {"n": 1}, **{"X-Key": "a secret", **TRACED}).status_code == 200

    assert Run.objects.get().traceparent == CALLER


def test_the_spans_of_a_run_are_exported_after_its_end(clock, exported):
    scenario = Scenario(clock, step("pay"), start=TRACED)
    assert export_traces() == 0
    clock.advance(seconds=2)
    scenario.worker("pay").polls()
    clock.advance(seconds=3)
    scenario.worker("pay").completes()

    assert export_traces() == 1
    found = by_name(exported)
    run, task, attempt, queue = (found[name] for name in ("order", "pay", "attempt 1", "queue"))
    assert {format(span.context.trace_id, "032x") for span in found.values()} == {TRACE}
    assert [format(span.parent.span_id, "016x") for span in (run, task, attempt, queue)] == [
        SPAN,
        id_of(run),
        id_of(task),
        id_of(attempt),
    ]
    assert id_of(attempt) == span_id_of(scenario.task("pay").id)
    assert len({id_of(span) for span in found.values()}) == 4
    assert [(span.end_time - span.start_time) // 1_000_000 for span in (run, attempt, queue)] == [5_000, 5_000, 2_000]
    assert (run.attributes["conductor.run_id"], run.status.status_code) == (scenario.id, StatusCode.OK)
    assert export_traces() == 0


def test_a_run_without_a_callers_trace_begins_one_if_traces_are_exported(clock, exported):
    scenario = Scenario(clock, step("pay"))
    scenario.worker("pay").completes()

    assert scenario.row.traceparent == first_traceparent(scenario.id)
    assert export_traces() == 1
    assert by_name(exported)["order"].parent is None


def test_a_failed_attempt_is_an_error_without_its_reason(clock, exported):
    scenario = Scenario(clock, step("pay", policy=policy(retries=0)), start=TRACED)
    scenario.worker("pay").fails("the card is 4111-1111")

    export_traces()

    assert [span.status.status_code for span in exported.get_finished_spans()[:3]] == [StatusCode.ERROR] * 3
    assert not any("4111-1111" in span.to_json() for span in exported.get_finished_spans())


def test_a_trace_that_the_caller_does_not_record_is_not_exported(clock, exported):
    scenario = Scenario(clock, step("pay"), start={"traceparent": CALLER[:-2] + "00"})
    scenario.worker("pay").completes()

    assert export_traces() == 1
    assert exported.get_finished_spans() == ()


def test_a_collector_that_does_not_answer_gets_the_spans_later(clock, exported, monkeypatch):
    scenario = Scenario(clock, step("pay"), start=TRACED)
    scenario.worker("pay").completes()
    with monkeypatch.context() as broken:
        broken.setattr(exported, "export", lambda spans: SpanExportResult.FAILURE)
        assert export_traces() == 0

    assert export_traces() == 1


def test_the_spans_of_many_runs_are_sent_together(clock, exported, monkeypatch):
    requests = []
    monkeypatch.setattr(tracing, "MAX_SPANS", 10)
    monkeypatch.setattr(exported, "export", lambda spans: requests.append(len(spans)) or SpanExportResult.SUCCESS)
    for _ in range(8):
        Scenario(clock, step("pay"), start=TRACED).worker("pay").completes()

    assert export_traces() == 8

    assert requests == [10, 10, 10, 2]


def test_a_run_whose_last_spans_are_refused_is_sent_again(clock, exported, monkeypatch):
    answers = iter([SpanExportResult.SUCCESS, SpanExportResult.FAILURE])
    for _ in range(3):
        Scenario(clock, step("pay"), start=TRACED).worker("pay").completes()
    with monkeypatch.context() as broken:
        broken.setattr(tracing, "MAX_SPANS", 6)
        broken.setattr(exported, "export", lambda spans: next(answers))
        assert export_traces() == 1

    assert export_traces() == 2


def test_the_spans_of_a_run_that_ended_more_than_a_week_ago_are_not_sent(clock, exported):
    scenario = Scenario(clock, step("pay"), start=TRACED)
    scenario.worker("pay").completes()
    clock.advance(seconds=7 * 24 * 3_600)

    assert export_traces() == 0


def test_a_retried_run_exports_each_attempt_once_and_its_own_span_again(clock, exported):
    scenario = Scenario(clock, step("pay", policy=policy(retries=0)), start=TRACED)
    scenario.worker("pay").fails()
    export_traces()
    clock.advance(seconds=1)
    scenario.retry()
    scenario.worker("pay").completes()

    assert export_traces() == 1
    names = [span.name for span in exported.get_finished_spans()]
    assert (names.count("attempt 1"), names.count("attempt 2"), names.count("order")) == (1, 1, 2)
    assert len({id_of(span) for span in exported.get_finished_spans() if span.name == "order"}) == 1


def test_the_search_for_runs_to_export_reads_their_index(clock, exported):
    with Counted() as counted:
        assert export_traces() == 0

    [sql] = counted.statements
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {'QUERY PLAN ' if connection.vendor == 'sqlite' else ''}{sql}")
        assert "run_to_trace" in str(cursor.fetchall())


def test_a_run_has_a_link_to_its_trace_on_its_page_and_in_its_panel(admin_client, clock, settings):
    settings.CONDUCTOR_TRACE_URL = "https://traces.example.org/{trace_id}"
    scenario = Scenario(clock, step("pay"), start=TRACED)

    page = admin_client.get(f"{reverse('admin:conductor_run_change', args=[scenario.id])}?task=pay").content.decode()

    assert page.count(f'href="https://traces.example.org/{TRACE}"') == 2


@pytest.mark.parametrize("address", ["https://traces.example.org/", "traces/{trace_id}"])
def test_an_address_of_traces_without_scheme_or_place_is_refused(monkeypatch, address):
    monkeypatch.setenv("TRACE_URL", address)

    with pytest.raises(ImproperlyConfigured, match="TRACE_URL"):
        environment.trace_address("TRACE_URL")


def test_spans_of_a_run_arrive_in_the_protocol(clock, collector, settings, monkeypatch):  # noqa: F811 - the fixture
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
    settings.CONDUCTOR_TRACES_ENDPOINT = collector.address
    scenario = Scenario(clock, step("pay"), start=TRACED)
    scenario.worker("pay").completes()
    spans.start_tracing(collector.address)

    export_traces()

    assert {span.name for _, span in collector.received} == {"order", "pay", "attempt 1", "queue"}
    assert {span.trace_id.hex() for _, span in collector.received} == {TRACE}


OTELCOL = shutil.which("otelcol-contrib") or shutil.which("otelcol")


@pytest.mark.skipif(not OTELCOL, reason="requires an OpenTelemetry collector with the exporter `file`")
def test_a_real_collector_accepts_the_spans_of_a_run(clock, settings, monkeypatch, tmp_path):
    address, found = f"127.0.0.1:{free_port()}", tmp_path / "spans.json"
    settings.CONDUCTOR_TRACES_ENDPOINT = f"http://{address}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{address}")
    config = {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": address}}}},
        "exporters": {"file": {"path": str(found)}},
        "service": {
            "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["file"]}},
            "telemetry": {"metrics": {"level": "none"}},
        },
    }
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    scenario = Scenario(clock, step("pay"), start=TRACED)
    scenario.worker("pay").completes()
    process = subprocess.Popen([OTELCOL, "--config", str(tmp_path / "config.yaml")], stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: answers(f"http://{address}/"), 30)
        spans.start_tracing(f"http://{address}")
        assert export_traces() == 1
        eventually(lambda: names_in(found) == {"order", "pay", "attempt 1", "queue"}, 30)
    finally:
        spans.stop_tracing()
        process.terminate()
        process.wait()


def answers(address: str) -> bool:
    try:
        return bool(requests.get(address, timeout=5).status_code)
    except requests.ConnectionError:
        return False


def names_in(file: Path) -> set[str]:
    lines = file.read_text().splitlines() if file.exists() else []
    resources = [resource for line in lines for resource in json.loads(line)["resourceSpans"]]
    scopes = [scope for resource in resources for scope in resource["scopeSpans"]]
    return {span["name"] for scope in scopes for span in scope["spans"] if span["traceId"] == TRACE}
