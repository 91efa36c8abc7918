"""Each ended call is counted once: in the usage of its hour, in its cost, and in the metrics."""

import pytest
from prometheus_client import generate_latest

from conductor_app.ai.commands import calls as usage
from conductor_app.ai.commands.budgets import begin_call
from conductor_app.ai.commands.calls import Estimate, call_key
from conductor_app.ai.models import IntegrationModel, ModelCall, ModelUsage
from conductor_app.telemetry.metrics import REGISTRY
from tests.ai.paying_worker import PayingWorker, settings_of
from tests.builders import step
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db
DAY = 86_400
NOON = 1_803_902_400_000


@pytest.fixture
def worker(clock):
    Scenario(clock, step("first", "ask"), step("second", "ask"), step("third", "ask"), name="w")
    return PayingWorker()


def test_the_calls_of_an_hour_are_added_up(worker, clock):
    IntegrationModel.objects.create(integration="openai", name="small", input_price=150, output_price=600)
    worker.calls_and_reports(prompt=1_000, completion=500)
    clock.advance(seconds=3_599)
    worker.calls_and_reports(prompt=1, completion=0)

    [row] = ModelUsage.objects.all()
    assert (row.hour, row.integration, row.model, row.definition, row.caller) == (
        *(NOON, "openai", "small"),
        *("w", "ann"),
    )
    assert (row.calls, row.failures, row.prompt_tokens, row.completion_tokens) == (2, 0, 1_001, 500)
    # 1,000 tokens at 150 and 500 at 600 per thousand; one token at 150 per thousand, rounded up.
    assert row.cost == 150 + 300 + 1
    assert sorted(ModelCall.objects.values_list("cost", flat=True)) == [1, 450]


def test_another_hour_has_a_row_of_its_own(worker, clock):
    worker.calls_and_reports()
    clock.advance(seconds=3_600)
    worker.calls_and_reports()

    assert list(ModelUsage.objects.order_by("hour").values_list("hour", "calls")) == [(NOON, 1), (NOON + 3_600_000, 1)]


def test_a_failed_call_counts_as_a_call_and_a_failure(worker):
    worker.polls()
    worker.pays(status="FAILED")

    [row] = ModelUsage.objects.all()
    assert (row.calls, row.failures, row.prompt_tokens, row.cost) == (1, 1, 0, 0)


def test_a_model_without_a_price_costs_nothing(worker):
    worker.calls_and_reports()

    assert ModelUsage.objects.get().cost == 0


def test_a_call_whose_reply_is_not_committed_is_not_counted(worker, monkeypatch):
    worker.polls()

    class Killed(Exception):
        pass

    record_usage = usage.record_usage

    def record_and_die(*call):
        record_usage(*call)
        raise Killed

    monkeypatch.setattr("conductor_app.ai.commands.calls.record_usage", record_and_die)
    with pytest.raises(Killed):
        worker.pays()

    assert not ModelUsage.objects.exists()
    assert ModelCall.objects.get().status == "STARTED"


def test_a_reply_that_is_used_again_is_not_counted_again(worker):
    worker.polls()
    worker.pays()
    again = begin_call(worker.claimed, settings_of(), call_key(worker.claimed, "question"), Estimate())

    assert (again.status, again.reply) == ("REPLIED", {"text": "yes"})
    assert ModelUsage.objects.get().calls == 1


def test_calls_and_usage_are_deleted_after_their_retention(worker, clock, settings):
    settings.CONDUCTOR_AI_CALL_DAYS, settings.CONDUCTOR_AI_USAGE_DAYS = 1, 2
    worker.calls_and_reports()
    clock.advance(seconds=DAY + 1)
    assert usage.prune_usage(100) == 1
    assert not ModelCall.objects.exists()

    clock.advance(seconds=DAY)
    assert usage.prune_usage(100) == 1
    assert not ModelUsage.objects.exists()


def test_a_pass_deletes_at_most_the_given_number_of_rows(worker, clock, settings):
    settings.CONDUCTOR_AI_CALL_DAYS = 1
    worker.calls_and_reports()
    worker.calls_and_reports()
    clock.advance(seconds=2 * DAY)

    assert usage.prune_usage(1) == 1
    assert ModelCall.objects.count() == 1


def test_metrics_have_calls_tokens_cost_and_duration_of_each_model(worker):
    IntegrationModel.objects.create(integration="openai", name="measured", input_price=1_000_000, output_price=0)
    worker.model = "measured"
    worker.calls_and_reports(prompt=1_500, completion=7)
    worker.polls()
    worker.pays(status="FAILED")

    text = generate_latest(REGISTRY).decode()
    labels = 'integration="openai",model="measured"'
    assert f'conductor_model_calls_total{{{labels},result="replied"}} 1.0' in text
    assert f'conductor_model_calls_total{{{labels},result="failed"}} 1.0' in text
    assert 'direction="prompt",integration="openai",model="measured"} 1500.0' in text
    assert f"conductor_model_cost_total{{{labels}}} 1.5" in text
    assert f"conductor_model_call_seconds_count{{{labels}}} 1.0" in text
