"""Demo data of operators: notes, requests, saved views and open work."""

from typing import Any

from django.contrib.auth.models import Group, User

from conductor_app.access.commands import applications
from conductor_app.access.commands import secrets as secrets_and_variables
from conductor_app.ai.commands import integrations, prompts
from conductor_app.alerts import commands as alert_targets
from conductor_app.alerts import commands as alerts
from conductor_app.bulk import commands as bulk_commands
from conductor_app.bulk import executor as bulk_executor
from conductor_app.definitions import commands as definition_commands
from conductor_app.definitions.sources.commands import KINDS, apply_plan
from conductor_app.definitions.sources.plan import SourceFolder, plan_source
from conductor_app.events.commands import handlers as event_handlers
from conductor_app.events.commands import intake as event_intake
from conductor_app.events.commands import webhooks
from conductor_app.failures import commands as failure_groups
from conductor_app.failures.models import FailureGroup
from conductor_app.human_tasks import commands as human_tasks
from conductor_app.runs.commands import debugging, retention
from conductor_app.runs.commands.debugging import BreakpointRequest
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import Attempt, Task
from conductor_app.schedules import commands as schedules
from conductor_app.taskcluster.auth import commands as scope_roles
from conductor_app.tasks.commands import queues as queue_commands
from conductor_app.tasks.commands.claims import claim_tasks
from conductor_app.utils.formatting import DAY, HOUR, MINUTE, SECOND
from qa.screenshots.demo_data.returns import RETURN, freeze_time_at, start_return, work_on_task

PLACED = "conductor:shop:return_announced"
LETTER = "Write to ${customer} in ${language}.\nThe refund of ${amount} for order ${order} is on its way."
NIGHTS: dict[str, Any] = {"cronExpression": "0 30 2 * * *", "zoneId": "Europe/Berlin"}
TRACKING = {
    "name": "track_parcel",
    "version": 1,
    "tasks": [
        {
            "type": "WAIT_FOR_WEBHOOK",
            "name": "delivered",
            "taskReferenceName": "delivered",
            "inputParameters": {"matches": {"$['status']": "delivered", "$['parcel']": "${workflow.input.parcel}"}},
        }
    ],
}
HANDLER = {
    "name": "begin_return",
    "event": PLACED,
    "condition": "$.total > 20 && $.country == 'DE'",
    "evaluatorType": "javascript",
    "actions": [{"action": "start_workflow", "start_workflow": {"name": RETURN, "input": {"order": "${order}"}}}],
    "active": True,
}


def create_records(now: int) -> None:
    """Create the records that the screens show."""
    create_staff()
    create_failure_notes(now)
    create_schedules(now)
    create_event_handlers(now)
    create_tags(now)
    create_integrations_and_prompts(now)
    create_views_and_alerts(now)
    create_open_returns(now)
    create_stopped_run()
    create_drift()


def create_staff() -> None:
    for name, role in (("ann", "Authors"), ("otto", "Operators"), ("vera", "Viewers")):
        person = User.objects.create_user(name, f"{name}@example.com", is_staff=True)
        person.groups.add(Group.objects.get(name=role))


def create_failure_notes(now: int) -> None:
    first, second, *_ = FailureGroup.objects.order_by("-count")
    with freeze_time_at(now - 90 * MINUTE):
        failure_groups.transition_group(first.pk, "acknowledge", "otto", "payments-3 is being replaced (OPS-2207)")
        failure_groups.assign_group(first.pk, "otto", "otto")
        failure_groups.annotate_group(first.pk, "Only build 42 of the payment workers is affected.", "otto")
        failure_groups.transition_group(second.pk, "resolve", "otto", "closed accounts are paid by cheque", version=3)


def create_schedules(now: int) -> None:
    with freeze_time_at(now - 3 * DAY):
        more: dict[str, Any]
        for name, more in {
            "nightly_return_report": NIGHTS | {"description": "Returns of the last day."},
            "hourly_carrier_sync": {"cronExpression": "0 0 * * * *", "zoneId": "UTC", "paused": True},
            "monday_stock_count": {"cronExpression": "0 0 6 * * MON", "zoneId": "Europe/London"},
        }.items():
            schedules.save_schedule(
                {"name": name, **more, "startWorkflowRequest": {"name": RETURN, "input": {}}}, "ann"
            )


def create_event_handlers(now: int) -> None:
    with freeze_time_at(now - 5 * HOUR):
        event_handlers.create_handlers(
            [HANDLER, {**HANDLER, "name": "count_returns", "condition": "$.total > 0", "active": False}], "ann"
        )
        webhooks.create_webhook(
            {
                "name": "carrier",
                "verifier": "HMAC_BASED",
                "headerKey": "X-Signature",
                "secretValue": "carrier-says-so",
                "receiverWorkflowNamesToVersions": {"track_parcel": 0},
            },
            "ann",
        )
        definition_commands.save_workflow(TRACKING, "ann", overwrite=True)
        for number in range(3):
            start_run(StartRequest("track_parcel", input={"parcel": f"DE-77{number}4190"}), "ann")
    for number, (total, country) in enumerate([(19, "DE"), (84, "FR"), (240, "AT"), (12, "DE")]):
        with freeze_time_at(now - (50 - 11 * number) * MINUTE):
            told = {"order": f"R-9{number}017", "total": total, "country": country}
            event_intake.receive_event(PLACED, f"shop-{number}", told, "api")


def create_tags(now: int) -> None:
    with freeze_time_at(now - 2 * DAY):
        secrets_and_variables.put_secret("payments_token", "s3cr3t-of-the-bank", "ann", "quarterly rotation")
        secrets_and_variables.put_secret("carrier_password", "another-one", "ann")
        secrets_and_variables.put_variable("returns_address", "Lagerstraße 7, 20357 Hamburg", "ann", "moved to Hamburg")
        application = applications.create_application("returns-desk", "olga", "WORKER")
        applications.create_key(application.pk, "olga")
        scope_roles.create_role("repo:shop/*", ["queue:create-task:demo/*"], "Builds of the shop.", "olga")
        retention.save_policy("", 30, 90, 100, "olga")
        retention.save_policy(RETURN, 14, 60, 0, "olga")


def create_integrations_and_prompts(now: int) -> None:
    """Create an integration with two models, and a prompt in two versions."""
    with freeze_time_at(now - 3 * DAY):
        settings = {"api_key": "sk-of-the-shop", "base_url": "https://llm.example.com/v1"}
        integrations.save_integration(
            "shop-models", {"type": "openai", "description": "Models of the shop", "configuration": settings}, "ann"
        )
        prices = {"inputPrice": 2_500, "outputPrice": 10_000, "maxTokens": 5_000_000, "frequency": "monthly"}
        integrations.save_model("shop-models", "gpt-4o", prices, "ann")
        integrations.save_model("shop-models", "gpt-4o-mini", {"inputPrice": 150, "outputPrice": 600}, "ann")
        integrations.save_integration("on-premises", {"type": "ollama", "enabled": False}, "ann")
        prompts.save_prompt("refund-letter", LETTER, "ann", description="Answers a return", models=["shop-models"])
    with freeze_time_at(now - DAY):
        prompts.save_prompt("refund-letter", f"{LETTER}\nAt most ${{words}} words.", "otto", new_version=True)


def create_views_and_alerts(now: int) -> None:
    refused = {"definition": RETURN, "status": ["FAILED"]}
    with freeze_time_at(now - 4 * HOUR):
        view = alerts.save_view("Refunds that failed", refused, "olga", is_shared=True, is_tile=True)
        mailbox = alert_targets.create_target("email", "Returns team", {"addresses": "returns@example.com"}, "olga")
        slack = {"url": "https://hooks.slack.com/services/T0/B0/x"}
        channel = alert_targets.create_target("slack", "#returns", slack, "olga")
        alerts.save_alert(view, "count", 3, 60, 120, "olga", targets=[mailbox.pk, channel.pk])
        alerts.save_view(
            "Expensive returns", {"definition": RETURN, "inside": "input.expensive=yes"}, "otto", is_shared=True
        )
    asked = bulk_commands.BulkRequest(
        "retry", refused, "the bank is available again", canary_size=4, canary_share=50, rate=1.0
    )
    with freeze_time_at(now - 9 * MINUTE):
        operation = bulk_commands.start(asked, "otto")
    for second in range(5):
        with freeze_time_at(now - 9 * MINUTE + second * SECOND):
            bulk_executor.run_due_operations()
    with freeze_time_at(now - 8 * MINUTE):
        bulk_commands.pause(operation, "otto", "the bank asked for a pause of an hour")


def create_open_returns(now: int) -> None:
    """Create returns that wait: for a person, for a worker, for a limit, and for a paused queue."""
    for number in range(3):
        start_return(now - (60 + 100 * number) * MINUTE, 4211 + 977 * number, expensive=True)
        spent = work_on_task(now - (59 + 100 * number) * MINUTE, "collect_return", 4_000, label="RL0815")
        work_on_task(spent + 500, "inspect_goods", 11_000, verdict="damaged")
    asked = Task.objects.filter(ref="approve_refund").latest("pk")
    with freeze_time_at(now - 30 * MINUTE):
        human_tasks.add_comment(asked.pk, "The customer sent pictures; see the ticket.", "otto")
    for number in range(9):
        start_return(now - (20 - 2 * number) * MINUTE, 30_011 + 531 * number)
        if number < 6:
            work_on_task(
                now - (19 - 2 * number) * MINUTE, "collect_return", 3_000 + 200 * number, label=f"RL77{number}"
            )
    with freeze_time_at(now - 3_000):
        claim_tasks("inspect_goods", worker="hall-1@7", count=2, wait_ms=0)
    first = Attempt.objects.filter(queue="collect_return", status="PENDING").earliest("pk")
    with freeze_time_at(now - 2_000):
        queue_commands.pause_queue("collect_return", "otto", "the van is in repair until noon")
        queue_commands.drain_worker("hall-2@7", "otto", "update to build 8")
        queue_commands.prioritize(first.pk, 90, "otto", "long-standing customer")


def create_stopped_run() -> None:
    """Create a run that a breakpoint has stopped, and a breakpoint of a definition."""
    price = {"price": "${workflow.input.price}", "evaluatorType": "graaljs", "expression": "$.price * 0.9"}
    tasks = [
        {"type": "INLINE", "name": ref, "taskReferenceName": ref, "inputParameters": price}
        for ref in ("compute_discount", "round_price", "publish_price")
    ]
    definition_commands.save_workflow({"name": "price_update", "version": 1, "tasks": tasks}, "ann", overwrite=True)
    stop = (BreakpointRequest("round_price"),)
    start_run(StartRequest("price_update", input={"price": 129.9}, breakpoints=stop), "ann")
    condition = BreakpointRequest("refund_customer", "failure", "${workflow.input.total} > 500")
    debugging.set_definition_breakpoint(RETURN, 2, condition, "ann")


def create_drift() -> None:
    """Apply a folder, and edit one of its definitions here."""
    document = {"name": "label_parcel", "retryCount": 3, "ownerEmail": "returns@example.com"}
    folder = SourceFolder("shop-workflows", [document, {**document, "name": "weigh_parcel"}], "4711abc")
    list(apply_plan(plan_source(folder, KINDS, "ann")))
    definition_commands.save_task({**document, "retryCount": 7}, "olga", reason="the label printer is slow")
