"""Limits of queues, alerts and roles in a folder: `conductor-app plan`, `apply`, `drift` and `export`."""

import pytest
import yaml

from conductor_app.access.commands import users as roles
from conductor_app.access.models import AuditEntry, GroupProfile
from conductor_app.ai.commands.budgets import BudgetLimits, save_budget
from conductor_app.alerts import commands as alert_targets
from conductor_app.alerts import commands as alerts
from conductor_app.alerts.models import Alert, AlertFiring, SavedView
from conductor_app.definitions.models import TaskDefinition

from .test_folder_commands import apply, edit_task, execute, plan, server, write  # noqa: F401

LIMITS = """\
kind: queue-limit
name: charge
concurrentExecLimit: 5
"""
ALERT = """\
name: Failed orders
selection: {definition: order, status: [FAILED]}
conditions:
  - type: count
    threshold: 3
    windowMinutes: 15
    targets: [on-call]
"""
ROLE = """\
kind: role
name: SHIPPING
permissions: [READ_WORKFLOW_DEF, EXECUTE_TASK_DEF]
"""


@pytest.fixture
def folder(tmp_path, server):  # noqa: F811
    """Return a folder with an alert, a role, and limits of a task definition that a worker has registered."""
    edit_task(retryCount=7)
    target()
    write(tmp_path, **{"charge.yaml": LIMITS, "alert.yaml": ALERT, "role.yaml": ROLE})
    return tmp_path


def target(name: str = "on-call"):
    return alert_targets.create_target("email", name, {"addresses": "on-call@example.com"}, "olga")


def view() -> SavedView:
    return SavedView.objects.get(name="Failed orders")


def limit_of_charge() -> int:
    return TaskDefinition.objects.get(name="charge").document["concurrentExecLimit"]


def permissions_of_role() -> set[str]:
    group = GroupProfile.objects.get(role="SHIPPING").group
    return set(group.permissions.values_list("codename", flat=True))


def test_apply_saves_limits_alerts_and_roles_and_a_second_plan_has_no_changes(folder):
    planned = plan(folder, expected=2)
    assert "~ queue-limit charge will be replaced\n    concurrentExecLimit: 0 to 5" in planned
    assert "+ alert Failed orders will be created" in planned
    assert "+ role SHIPPING will be created" in planned

    apply(folder, "--commit", "4711abc")

    document = TaskDefinition.objects.get(name="charge").document
    assert (document["concurrentExecLimit"], document["retryCount"]) == (5, 7)
    alert = view().alerts.get()
    assert (alert.threshold, alert.window_minutes) == (3, 15)
    assert view().is_shared
    assert permissions_of_role() == {"view_workflowdefinition", "execute_taskdefinition"}
    entry = AuditEntry.objects.get(object_type="role", object_id="SHIPPING")
    assert entry.reason == "Applied from shop, commit 4711abc"
    assert plan(folder, expected=0) == "Plan: 3 unchanged.\n"


def test_drift_reports_who_has_edited_limits_alerts_and_roles(folder):
    apply(folder)
    edit_task(retryCount=7, concurrentExecLimit=9)
    alerts.remove_alert(view().alerts.get().pk, "olga")
    roles.update_role("SHIPPING", ["READ_WORKFLOW_DEF"], "otto")

    shown = execute("drift", expected=2).output

    assert "queue-limit charge was edited by anonymous" in shown
    assert "concurrentExecLimit: 5 to 9" in shown
    assert "alert Failed orders was edited by olga" in shown
    assert "role SHIPPING was edited by otto" in shown
    assert "permission EXECUTE_TASK_DEF removed" in shown


def test_other_fields_of_the_task_definition_are_no_drift_of_its_limits(folder):
    apply(folder)

    edit_task(retryCount=1, concurrentExecLimit=5)

    execute("drift")


def test_export_writes_the_edits_of_the_server_into_the_files(folder):
    write(folder, **{"a_task.yaml": "name: pack\nretryCount: 3\n---\nname: SHIPPING\nretryCount: 3\n"})
    apply(folder)
    edit_task(retryCount=7, concurrentExecLimit=9)
    alerts.save_alert(view(), "absence", 2, 60, 60, "olga", targets=[target("pager").pk])
    roles.update_role("SHIPPING", ["READ_WORKFLOW_DEF"], "otto")

    execute("export", "-f", folder)

    assert yaml.safe_load((folder / "charge.yaml").read_text())["concurrentExecLimit"] == 9
    exported = yaml.safe_load((folder / "alert.yaml").read_text())
    assert [each["targets"] for each in exported["conditions"]] == [["on-call"], ["pager"]]
    assert yaml.safe_load((folder / "role.yaml").read_text())["permissions"] == ["READ_WORKFLOW_DEF"]
    assert "permissions" not in (folder / "a_task.yaml").read_text()
    apply(folder)
    execute("drift")


BUDGET_ALERT = """\
name: Budgets
conditions:
  - type: budget
    targets: [on-call]
  - type: budget
    threshold: 95
    budget: {scope: DEFINITION, name: agent, period: DAY}
    targets: [on-call]
"""


def test_an_alert_on_budgets_is_applied_with_its_defaults(folder):
    save_budget(BudgetLimits("DEFINITION", "agent", "DAY", max_tokens=1_000), "olga")
    write(folder, **{"budgets.yaml": BUDGET_ALERT})

    apply(folder)

    rows = Alert.objects.filter(kind="budget").order_by("threshold")
    found = rows.values_list("threshold", "repeat_minutes", "budget")
    assert list(found) == [(80, 1440, None), (95, 1440, {"scope": "DEFINITION", "name": "agent", "period": "DAY"})]
    plan(folder, expected=0)
    execute("drift")


def test_an_alert_on_an_unknown_budget_is_a_problem(folder):
    write(folder, **{"budgets.yaml": BUDGET_ALERT})

    assert "There is no budget DEFINITION agent per DAY. Create it on the page Budgets." in plan(folder, expected=1)


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ("{type: count, budget: {scope: ALL, period: DAY}, targets: [on-call]}", "belongs to a condition of the type"),
        ("{type: budget, budget: {scope: ALL}, targets: [on-call]}", "Missing period of the budget"),
        ("{type: budget, budget: {scope: MOON, period: DAY}, targets: [on-call]}", "scope"),
        ("{type: budget, threshold: 101, targets: [on-call]}", "The threshold must be 1 to 100"),
    ],
)
def test_an_invalid_condition_on_budgets_is_a_problem(folder, condition, problem):
    write(folder, **{"budgets.yaml": f"kind: alert\nname: Budgets\nconditions: [{condition}]\n"})

    assert problem in plan(folder, expected=1)


def test_an_unchanged_condition_of_a_changed_alert_keeps_its_incident(folder):
    apply(folder)
    view().alerts.update(incident_at=5)
    more = "  - {type: age, threshold: 90, targets: [on-call]}\n"
    write(folder, **{"alert.yaml": ALERT + more})

    apply(folder)

    assert list(view().alerts.order_by("pk").values_list("kind", "incident_at")) == [("count", 5), ("age", None)]
    assert not AlertFiring.objects.exists()


def test_prune_deletes_alerts_and_roles_and_removes_the_limits(folder):
    apply(folder)
    for name in ("alert", "charge", "role"):
        (folder / f"{name}.yaml").unlink()
    write(folder, **{"pack.yaml": "name: pack\n"})

    apply(folder, "--prune")

    assert not SavedView.objects.exists()
    assert not GroupProfile.objects.filter(role="SHIPPING").exists()
    assert limit_of_charge() == 0
    assert TaskDefinition.objects.get(name="charge").document["retryCount"] == 7


def test_limits_that_move_into_the_task_definition_of_the_folder_stay(folder):
    apply(folder)
    write(folder, **{"charge.yaml": "name: charge\nretryCount: 7\nconcurrentExecLimit: 5\n"})

    apply(folder, "--prune")

    assert limit_of_charge() == 5
    assert plan(folder, expected=0) == "Plan: 3 unchanged.\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{LIMITS}---\nname: charge\n", "The task definition charge is in a folder. State its limits there."),
        ("kind: queue-limit\nname: pack\n", "There is no task definition pack. Register it"),
        (f"{LIMITS}rateLimitPerFrequency: -1\n", "rateLimitPerFrequency: must be greater than or equal to 0"),
        (f"{LIMITS}retryCount: 3\n", "retryCount: is unknown. Use: name, concurrentExecLimit"),
        (
            ALERT.replace("on-call", "unknown"),
            "There is no alert target 'unknown'. Create it on the page Alerts",
        ),
        (ALERT.replace("count", "many"), "conditions[0].type: type must be one of count, share, absence, age"),
        (ALERT.replace("threshold: 3", "threshold: 0"), "The threshold must be 1 to 1,000,000 (got 0)."),
        (ALERT.replace("definition:", "workflow:"), "Unknown filter: workflow."),
        (ROLE.replace("SHIPPING", "ADMIN"), "The role ADMIN is built in and cannot be changed."),
        (ROLE.replace("READ_WORKFLOW_DEF", "READ_ALL"), "Unknown permissions: READ_ALL."),
    ],
)
def test_a_document_that_cannot_be_saved_is_a_problem_of_the_plan(folder, text, message):
    for path in folder.glob("*.yaml"):
        path.unlink()
    write(folder, **{"odd.yaml": text})

    assert message in plan(folder, expected=1)
