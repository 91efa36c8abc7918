"""The Python SDK's scheduler client: every method, and schedules on a live server."""

import pytest
from conductor.client.ai.schedule import Schedule, _list_infos
from conductor.client.ai.schedule_errors import InvalidCronExpression, ScheduleNotFound
from conductor.client.http.models.save_schedule_request import SaveScheduleRequest
from conductor.client.http.models.start_workflow_request import StartWorkflowRequest
from conductor.client.http.rest import ApiException
from conductor.client.orkes.models.metadata_tag import MetadataTag

from tests.clients.shop_workflow import Shop
from tests.clients.wait_until import eventually

NEVER_SOON = "0 0 0 1 1 *"


@pytest.fixture
def scheduler(clients):
    return clients.get_scheduler_client()


def wanted(name: str = "order-yearly", cron: str = NEVER_SOON, **fields) -> SaveScheduleRequest:
    start = StartWorkflowRequest(name="order", input={"a": 1})
    return SaveScheduleRequest(name=name, cron_expression=cron, start_workflow_request=start, **fields)


def test_a_schedule_is_saved_found_and_deleted(scheduler):
    scheduler.save_schedule(wanted(zone_id="Europe/Berlin", description="once a year"))

    found = scheduler.get_schedule("order-yearly")
    assert (found.name, found.cron_expression, found.zone_id) == ("order-yearly", NEVER_SOON, "Europe/Berlin")
    assert (found.paused, found.run_catchup_schedule_instances) == (False, False)
    assert (found.start_workflow_request.name, found.start_workflow_request.input) == ("order", {"a": 1})
    assert found.create_time == found.updated_time > 0
    scheduler.delete_schedule("order-yearly")

    with pytest.raises(ApiException) as missing:
        scheduler.get_schedule("order-yearly")
    assert missing.value.status == 404


def test_schedules_are_listed_for_a_workflow(scheduler):
    scheduler.save_schedule(wanted())

    assert [each.name for each in scheduler.get_all_schedules()] == ["order-yearly"]
    assert [each.name for each in scheduler.get_all_schedules("order")] == ["order-yearly"]
    assert scheduler.get_all_schedules("another") == []


def test_a_schedule_is_paused_with_a_reason_and_resumed(scheduler):
    scheduler.save_schedule(wanted())

    scheduler.pause_schedule("order-yearly", reason="inventory")
    found = scheduler.get_schedule("order-yearly")
    assert (found.paused, found.paused_reason) == (True, "inventory")
    scheduler.resume_schedule("order-yearly")
    scheduler.pause_schedule("order-yearly")
    scheduler._pause_resume_via_get("order-yearly", "resume")

    assert scheduler.get_schedule("order-yearly").paused is False


def test_all_schedules_are_paused_and_resumed(scheduler):
    scheduler.pause_all_schedules()
    scheduler.resume_all_schedules()

    scheduler.requeue_all_execution_records()


def test_next_times_are_returned(scheduler):
    first, second = scheduler.get_next_few_schedule_execution_times("@hourly", limit=2)

    assert second - first == 3_600_000
    begins = second + 10 * 3_600_000
    assert scheduler.get_next_few_schedule_execution_times(
        "@hourly", schedule_start_time=begins, schedule_end_time=begins + 3_600_000
    ) == [begins, begins + 3_600_000]
    assert scheduler.preview_next("@hourly", 1) == [first]


def test_tags_are_set_listed_and_deleted(scheduler):
    scheduler.save_schedule(wanted())

    scheduler.set_scheduler_tags([MetadataTag("team", "a"), MetadataTag("cost", "b")], "order-yearly")
    assert [(tag.key, tag.value) for tag in scheduler.get_scheduler_tags("order-yearly")] == [
        ("team", "a"),
        ("cost", "b"),
    ]
    scheduler.delete_scheduler_tags([MetadataTag("team", "a")], "order-yearly")

    assert [tag.key for tag in scheduler.get_scheduler_tags("order-yearly")] == ["cost"]
    assert [tag.key for tag in scheduler.get_schedule("order-yearly").tags] == ["cost"]


def test_errors_are_those_that_the_lifecycle_methods_expect(scheduler):
    with pytest.raises(InvalidCronExpression):
        scheduler.preview_next("* * * * *")
    for ask in (scheduler.pause, scheduler.resume):
        with pytest.raises(ScheduleNotFound):
            ask("nothing")
    scheduler.delete("nothing")


def test_the_schedules_of_an_agent_are_reconciled(scheduler, shop: Shop):
    shop.define("cut")
    scheduler.reconcile("order", [Schedule("a", NEVER_SOON), Schedule("b", NEVER_SOON, catchup=True, paused=True)])
    scheduler.reconcile("order", [Schedule("b", "@daily", input={"x": 1})])

    [info] = _list_infos(scheduler, "order")
    assert (info.name, info.short_name, info.cron, info.input) == ("order-b", "b", "@daily", {"x": 1})
    assert (info.paused, info.catchup) == (False, False)
    assert scheduler.run_now(info)
    scheduler.pause("order-b", "a reason")
    scheduler.resume("order-b")
    with pytest.raises(InvalidCronExpression):
        scheduler.reconcile("order", [Schedule("c", "five fields are too few")])


def test_a_schedule_fires_on_a_live_server_within_a_second(scheduler, shop: Shop):
    shop.define("cut")
    scheduler.save_schedule(wanted("each second", "* * * * * *"))

    def executions():
        return scheduler.search_schedule_executions(
            start=0, size=10, sort="scheduledTime:ASC", query="scheduleName IN (each second)"
        ).results

    eventually(lambda: len(executions()) >= 2)
    scheduler.pause_schedule("each second")

    first, second, *_ = executions()
    assert (first.state, first.schedule_name, first.workflow_name) == ("EXECUTED", "each second", "order")
    assert second.scheduled_time - first.scheduled_time == 1000
    assert first.execution_time - first.scheduled_time < 1000
    started = shop.workflows.get_workflow(first.workflow_id)
    assert started.input["_startedByScheduler"] == "each second"
    assert started.input["a"] == 1
