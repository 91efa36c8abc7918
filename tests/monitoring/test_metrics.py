"""Metrics for monitoring systems."""

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client.openmetrics.parser import text_string_to_metric_families as text_string_to_open_metrics_families
from prometheus_client.parser import text_string_to_metric_families

from conductor_app.access import tokens
from conductor_app.access import tokens as access_keys
from conductor_app.core.snapshot import NEVER
from conductor_app.monitoring.queries.health import measure_load, waiting_by_queue
from conductor_app.processes import sweeps
from conductor_app.runs.models import Message
from conductor_app.telemetry import metrics
from tests.access.users import create_application
from tests.builders import definition, fork, step, sub_workflow
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _names_of_other_tests(monkeypatch):
    """Count by name although other tests in this process have used more names than the limit allows."""
    monkeypatch.setattr(metrics, "MAX_NAMES", 100_000)


def scraped(**headers):
    """Return every sample by name and labels."""
    reply = Client(headers=headers).get("/metrics")
    assert reply.status_code == 200, reply.content
    return samples_of(reply.content)


def samples_of(text):
    families = text_string_to_metric_families(text.decode())
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


@pytest.mark.parametrize("path", ["/metrics", "/actuator/prometheus"])
def test_both_paths_return_prometheus_metrics(path):
    reply = Client().get(path)

    assert (reply.status_code, reply["Content-Type"].partition(";")[0]) == (200, "text/plain")
    assert samples_of(reply.content)["conductor_database_up",] == 1


def test_a_queue_reports_its_size_and_oldest_task(clock):
    Scenario(clock, *fork([step("a")], [step("b")]))
    clock.advance(seconds=7)

    found = scraped()

    assert found["conductor_queue_depth", "a"] == 1
    assert found["conductor_queue_oldest_seconds", "a"] == 7


def test_queues_above_the_limit_are_counted_as_one(clock):
    Scenario(clock, *fork([step("a")], [step("b")], [step("c")]))

    queues = measure_load(max_queues=1, others="(others)").queues

    assert {name: waiting.count for name, waiting in queues.items()} == {"a": 1, "(others)": 2}


def test_queues_are_counted_in_the_index_of_the_claim(clock):
    Scenario(clock, step("a"))
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")

    plan = waiting_by_queue().explain()

    # PostgreSQL may choose either index for two rows; one of them being used is enough.
    assert "attempt_to_claim" in plan or (connection.vendor == "postgresql" and "Seq Scan" not in plan)


def test_a_scrape_takes_three_statements(clock):
    Scenario(clock, step("a"))

    with CaptureQueriesContext(connection) as asked:
        scraped()

    assert len(asked) == 3


def test_results_of_runs_and_attempts_are_counted(clock):
    before = scraped()
    scenario = Scenario(clock, step("pay"), name="counted")
    scenario.worker("pay").fails()
    other = scenario.starts("counted")
    other.terminate()

    after = scraped()

    def more(*sample):
        return after.get(sample, 0) - before.get(sample, 0)

    assert more("conductor_runs_started_total", "counted") == 2
    assert more("conductor_runs_ended_total", "counted", "FAILED") == 1
    assert more("conductor_runs_ended_total", "counted", "TERMINATED") == 1
    assert more("conductor_attempts_ended_total", "FAILED", "SIMPLE") == 1
    assert more("conductor_attempts_ended_total", "CANCELED", "SIMPLE") == 1
    assert more("conductor_claim_seconds_count", "yes") == 1
    assert more("conductor_report_seconds_count", "yes") == 1


def test_a_child_started_by_a_run_is_counted(clock):
    before = scraped().get(("conductor_runs_started_total", "child"), 0)
    Scenario(clock, sub_workflow("s", "child"), others=[definition(step("x"), name="child")])

    assert scraped()["conductor_runs_started_total", "child"] - before == 1


def test_names_above_the_limit_are_counted_together(monkeypatch):
    monkeypatch.setattr(metrics, "MAX_NAMES", 2)
    counted = metrics.LabeledCounter("test_names", "For this test.", "name", "status")
    for name in ("a", "b", "c", "d", "a"):
        counted.count(name, "ENDED")

    found = samples_of(metrics.render_metrics("")[0])

    assert {name: found["test_names_total", name, "ENDED"] for name in ("a", "b", "(others)")} == {
        "a": 2, "b": 1, "(others)": 2,
    }  # fmt: skip


def test_pending_messages_and_sweeps_are_exported(clock):
    sweeps.sweep_until(0)
    Message.objects.create(subject="release", sent_at=clock.now(), due_at=clock.now() + 60_000, facts={})
    clock.advance(seconds=3)

    found = scraped()

    assert (found["conductor_outbox_messages",], found["conductor_outbox_oldest_seconds",]) == (1, 3)
    assert found["conductor_sweep_failed", "wake_runs"] == 0
    assert found["conductor_sweep_lag_seconds", "wake_runs"] == 0
    assert found["conductor_sweep_last_pass_seconds", "wake_runs"] == 3


def test_undelivered_messages_are_counted_by_receiver_and_not_as_pending(clock):
    for subject in ("started", "begin", "publish", "a subject of a newer version"):
        Message.objects.create(subject=subject, sent_at=1, due_at=NEVER)

    found = scraped()

    counts = {kind: found["conductor_undelivered_messages", kind] for kind in ("run", "sink", "event", "other")}
    assert counts == {"run": 2, "sink": 1, "event": 0, "other": 1}
    assert (found["conductor_outbox_messages",], found["conductor_outbox_oldest_seconds",]) == (0, 0)


OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


def test_metrics_have_the_names_of_conductor_too_if_it_is_configured(clock, settings):
    before = scraped()
    settings.CONDUCTOR_METRICS_CONDUCTOR_NAMES = True
    Scenario(clock, step("pay"), name="shop").worker("pay").fail_terminally()
    scenario = Scenario(clock, step("pay"), name="shop")
    scenario.worker("pay").completes()
    assert not scenario.worker("pay").report_again()
    Scenario(clock, step("pay"), name="shop")

    found = scraped()

    assert found["workflow_start_success_total", "shop"] == 3
    assert found["workflow_failure_total", "FAILED", "shop"] == 1
    assert ("workflow_failure_total", "COMPLETED", "shop") not in found
    assert found["task_queue_depth", "pay"] == 1
    late = found["conductor_report_seconds_count", "no"]
    assert found["task_update_conflict_total",] == late == before["conductor_report_seconds_count", "no"] + 1


def test_metrics_with_the_names_of_conductor_are_valid_in_both_formats(clock, settings):
    settings.CONDUCTOR_METRICS_CONDUCTOR_NAMES = True
    Scenario(clock, step("pay"))

    text = Client(headers={"Accept": OPEN_METRICS}).get("/metrics").content.decode()

    families = {family.name: family for family in text_string_to_open_metrics_families(text)}
    assert families["workflow_start_success"].samples[0].labels.keys() == {"workflowName"}
    assert families["task_queue_depth"].type == "gauge"


def test_metrics_have_their_own_names_only_by_default(clock):
    Scenario(clock, step("pay"))

    names = {name for name, *_ in scraped()}
    assert not names & {"workflow_start_success_total", "workflow_failure_total", "task_queue_depth"}


def test_metrics_are_served_without_the_database(clock):
    def nothing_answers(*_):
        raise OperationalError("gone")

    with connection.execute_wrapper(nothing_answers):
        found = scraped()

    assert found["conductor_database_up",] == 0
    assert "conductor_claim_seconds_count" in {name for name, *_ in found}


class TestWithLogins:
    """A server that others can reach."""

    TOKEN = "m" * 20

    @pytest.fixture(autouse=True)
    def with_logins(self, settings):
        settings.CONDUCTOR_API_ACCESS = "token"

    def ask(self, **headers):
        return Client(headers=headers).get("/metrics")

    def test_strangers_are_refused(self):
        reply = self.ask()

        assert (reply.status_code, reply["WWW-Authenticate"]) == (401, "Bearer")
        assert b"conductor_" not in reply.content

    @pytest.mark.parametrize("given", ["Bearer wrong", "Bearer ", "Bearer", "Basic eDp5", "Bearer \xe9"])
    def test_a_wrong_token_is_refused(self, settings, given):
        settings.CONDUCTOR_METRICS_TOKENS = (self.TOKEN,)

        assert self.ask(Authorization=given).status_code == 401

    def test_no_token_is_not_an_empty_token(self, settings):
        settings.CONDUCTOR_METRICS_TOKENS = ()

        assert self.ask(Authorization="Bearer ").status_code == 401

    def test_a_token_of_its_own_lets_a_monitoring_system_in(self, settings):
        settings.CONDUCTOR_METRICS_TOKENS = ("another token", self.TOKEN)

        assert self.ask(Authorization=f"Bearer {self.TOKEN}").status_code == 200

    @pytest.mark.parametrize(("role", "status"), [("USER_READ_ONLY", 200), ("WORKER", 403)])
    @pytest.mark.parametrize("header", ["X-Authorization", "Authorization"])
    def test_an_api_token_with_access_to_all_runs_can_read_metrics(self, role, status, header):
        made = create_application("watcher", role)
        key_id, _ = access_keys.new_key(made)
        token = tokens.issue_token(key_id, made.name)

        reply = self.ask(**{header: f"Bearer {token}" if header == "Authorization" else token})

        assert reply.status_code == status
