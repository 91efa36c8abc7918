"""`conductor-app import`, against the recorded replies of a real conductor-oss server."""

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError

from conductor_app.access.commands.secrets import put_secret, put_variable
from conductor_app.access.models import AuditEntry, Variable
from conductor_app.definitions.commands import save_task, save_workflow
from conductor_app.definitions.models import TaskDefinition, WorkflowDefinition
from conductor_app.events.models import EventHandler
from conductor_app.schedules.models import Schedule
from conductor_app.tools.importers import compatibility
from tests.importers.commands import execute, import_conductor
from tests.importers.recorded_source import recorded_source

pytestmark = [pytest.mark.slow, pytest.mark.one_database, pytest.mark.django_db]
CREATED, UNCHANGED, SKIPPED = "created", "unchanged", "skipped"
ORDERS = {"order:1", "order:2"}


@pytest.fixture
def source():
    with recorded_source() as running:
        yield running


@pytest.fixture
def imported(source):
    return import_conductor(source.address)


def own_order(**fields):
    step = {"name": "charge", "taskReferenceName": "charge", "type": "SIMPLE"}
    return {"name": "order", "version": 1, "schemaVersion": 2, "tasks": [step], **fields}


def test_it_imports_what_a_conductor_server_lists(imported):
    assert imported.items("task definition") == {"charge": CREATED, "ship": CREATED}
    assert imported.items("workflow definition") == dict.fromkeys(
        [*sorted(ORDERS), "notify:1", "summarize:1", "follow:1"], CREATED
    )
    assert imported.items("event handler") == {"paid": CREATED, "from_sqs": CREATED}
    assert imported.items("environment variable") == {"region": CREATED, "stage": CREATED}
    assert Variable.objects.get(pk="region").value == "eu-central"
    assert TaskDefinition.objects.get(name="ship").document["retryLogic"] == "EXPONENTIAL_BACKOFF"


def test_an_object_that_this_server_refuses_is_left_out_with_the_reason_and_the_others_are_imported(imported):
    broken = next(each for each in imported.report["items"] if each["name"] == "broken")

    assert imported.items("schedule") == {"nightly": CREATED, "broken": SKIPPED}
    assert "99 99 * *" in broken["reason"]
    assert imported.status == 4


def test_schedules_and_handlers_wait_until_an_operator_activates_them(imported, source):
    assert Schedule.objects.get(name="nightly").is_paused
    assert Schedule.objects.get(name="nightly").paused_reason == f"Imported from {source.address}"
    assert not EventHandler.objects.get(name="paid").is_active


def test_with_activate_they_keep_their_state(source):
    import_conductor(source.address, "--activate")

    assert not Schedule.objects.get(name="nightly").is_paused
    assert [each.is_active for each in EventHandler.objects.order_by("name")] == [False, True]


def test_a_second_import_changes_nothing(imported, source, clock):
    entries = AuditEntry.objects.count()

    again = import_conductor(source.address)

    assert again.report["counts"] == {UNCHANGED: 12, SKIPPED: 1}
    assert AuditEntry.objects.count() == entries


def test_a_second_import_keeps_what_an_operator_has_activated(imported, source):
    EventHandler.objects.filter(name="paid").update(is_active=True)
    Schedule.objects.filter(name="nightly").update(is_paused=False)

    again = import_conductor(source.address)

    assert again.items("event handler") == {"paid": UNCHANGED, "from_sqs": UNCHANGED}
    assert not Schedule.objects.get(name="nightly").is_paused


def test_an_import_that_was_interrupted_continues(source):
    save_task(source.documents("/metadata/taskdefs")[0], "olga")

    done = import_conductor(source.address)

    assert done.items("task definition") == {"charge": UNCHANGED, "ship": CREATED}


def test_the_audit_log_has_the_import_and_each_object(imported, source):
    entries = AuditEntry.objects.filter(object_type="workflow_definition", object_id="order:2")
    whole = AuditEntry.objects.get(object_type="import")

    assert [(each.action, each.reason) for each in entries] == [("create", f"Imported from {source.address}")]
    assert whole.object_id == source.address
    assert whole.facts == {CREATED: 12, SKIPPED: 1}
    assert whole.actor.startswith("import by ")


def test_a_dry_run_prints_the_plan_and_changes_nothing(source):
    plan = execute("import_conductor", "--from", source.address, "--dry-run")

    assert "+ workflow definition order, version 2\n" in plan.output
    assert "! schedule broken: cannot be imported: " in plan.output
    assert "Plan: 12 to create, 1 left out." in plan.output
    assert plan.status == 4
    assert not AuditEntry.objects.exists()


def test_a_dry_run_that_would_change_something_ends_with_status_3(source):
    source.reply("/scheduler/schedules", [])

    assert import_conductor(source.address, "--dry-run").status == 3
    assert import_conductor(source.address).status == 0
    assert import_conductor(source.address, "--dry-run").status == 0


def test_without_a_terminal_it_imports_only_with_yes(source):
    with pytest.raises(CommandError, match="Add --yes to import without a question"):
        execute("import_conductor", "--from", source.address)

    assert not WorkflowDefinition.objects.exists()


def test_on_a_terminal_it_asks_and_only_yes_imports(source, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: "y")
    with pytest.raises(CommandError, match="Nothing was imported"):
        execute("import_conductor", "--from", source.address)
    assert not WorkflowDefinition.objects.exists()

    monkeypatch.setattr("builtins.input", lambda question: "yes")
    assert "Result: 12 created, 1 left out." in execute("import_conductor", "--from", source.address).output


def test_a_definition_that_differs_stays_and_the_plan_shows_the_differences(source):
    save_workflow(own_order(timeoutSeconds=60), "olga", overwrite=False)

    plan = execute("import_conductor", "--from", source.address, "--yes")

    assert "! workflow definition order, version 1: differs, kept as it is here" in plan.output
    assert "      time limit in seconds 60 to 0\n" in plan.output
    assert WorkflowDefinition.objects.get(name="order", version=1).document["timeoutSeconds"] == 60
    assert plan.status == 4


def test_replace_overwrites_what_differs(source):
    save_workflow(own_order(timeoutSeconds=60), "olga", overwrite=False)

    done = import_conductor(source.address, "--on-conflict=replace")

    assert done.items("workflow definition")["order:1"] == "replaced"
    assert WorkflowDefinition.objects.get(name="order", version=1).document["timeoutSeconds"] == 0


def test_new_version_keeps_both_and_a_second_import_recognizes_it(source):
    save_workflow(own_order(timeoutSeconds=60), "olga", overwrite=False)
    save_workflow(own_order(version=2, timeoutSeconds=60), "olga", overwrite=False)

    done = import_conductor(source.address, "--on-conflict=new-version")
    again = import_conductor(source.address, "--on-conflict=new-version")

    assert {done.items("workflow definition")[each] for each in ORDERS} == {"saved as a new version"}
    assert sorted(WorkflowDefinition.objects.filter(name="order").values_list("version", flat=True)) == [1, 2, 3, 4]
    assert WorkflowDefinition.objects.get(name="order", version=1).document["timeoutSeconds"] == 60
    assert {again.items("workflow definition")[each] for each in ORDERS} == {UNCHANGED}


def test_fail_imports_nothing_if_something_differs(source):
    save_workflow(own_order(timeoutSeconds=60), "olga", overwrite=False)

    with pytest.raises(CommandError, match="Nothing was imported"):
        import_conductor(source.address, "--on-conflict=fail")
    assert not TaskDefinition.objects.exists()


def test_the_value_of_a_variable_that_differs_is_not_printed(source):
    put_variable("region", "us-secret-1", "olga")

    plan = execute("import_conductor", "--from", source.address, "--dry-run")

    assert "! environment variable region: differs" in plan.output
    assert "us-secret-1" not in plan.output
    assert "eu-central" not in plan.output


def test_it_lists_the_secrets_that_are_missing_and_the_steps_that_need_them(source):
    put_secret("unused", "x", "olga")

    report = import_conductor(source.address, "--dry-run").report

    assert report["missing_secrets"] == [
        {"name": "carrier_key", "is_in_source": False, "users": ["ship"]},
        {"name": "payment_key", "is_in_source": True, "users": ["notify (step call)"]},
    ]
    assert report["missing_variables"] == [{"name": "shop", "is_in_source": False, "users": ["notify (step call)"]}]


def test_it_lists_the_workflows_that_definitions_start_and_no_server_has(source):
    child = {
        "name": "child",
        "taskReferenceName": "child",
        "type": "SUB_WORKFLOW",
        "subWorkflowParam": {"name": "gone"},
    }
    source.reply("/metadata/workflow", [own_order(tasks=[child], failureWorkflow="lost")])
    source.reply("/metadata/workflow/names-and-versions", {})
    source.reply("/scheduler/schedules", [])

    report = import_conductor(source.address, "--dry-run").report

    assert {each["name"]: each["users"] for each in report["missing_workflows"]} == {
        "gone": ["order (step child)"],
        "lost": ["order"],
        "notify": ["paid"],
    }


def test_versions_that_the_list_leaves_out_are_read_one_by_one(source):
    versions = source.documents("/metadata/workflow")
    source.reply("/metadata/workflow", [each for each in versions if (each["name"], each["version"]) != ("order", 1)])
    source.reply("/metadata/workflow/order", next(each for each in versions if each["name"] == "order"))

    done = import_conductor(source.address)

    assert [each["query"] for each in source.requests("/metadata/workflow/order")] == [{"version": ["1"]}]
    assert done.items("workflow definition")["order:1"] == CREATED


def test_an_interrupted_import_says_how_it_continues(source, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)

    def interrupt(question):
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", interrupt)

    with pytest.raises(CommandError, match="import again to continue"):
        execute("import_conductor", "--from", source.address)


def test_it_lists_the_workflows_that_still_run_on_the_source(source):
    running = import_conductor(source.address, "--dry-run").report["running"]

    assert [(each["name"], each["count"]) for each in running] == [("order", 3), ("summarize", 1)]
    assert running[0]["oldest"].startswith("20")


def test_many_running_workflows_are_counted_by_definition_with_one_request_each(source):
    result = {"workflowType": "order", "startTime": 1_700_000_000_000}
    source.reply("/workflow/search", {"totalHits": 2_000_000, "results": [result]})

    running = import_conductor(source.address, "--dry-run").report["running"]

    asked = [each["query"]["query"][0] for each in source.requests("/workflow/search")]
    assert asked == ["status IN (RUNNING,PAUSED)"] + [
        f"workflowType='{name}' AND status IN (RUNNING,PAUSED)" for name in ("follow", "notify", "order", "summarize")
    ]
    assert running[0] == {"name": "follow", "count": 2_000_000, "oldest": "2023-11-14T22:13:20Z"}


def test_it_reports_what_this_server_does_differently(source):
    output = execute("import_conductor", "--from", source.address, "--dry-run").output

    for words in (
        "    ! count: its script uses Java (Java.type…)",
        "    ! call: billing.internal is a private address. Permit its network with HTTP_TASK_ALLOWED_NET",
        "    ! publish: sqs is not configured. Set EVENT_QUEUES_SQS_URL.",
        "    ! event: sqs is not configured. Set EVENT_QUEUES_SQS_URL.",
    ):
        assert words in output


def test_it_reports_a_broker_that_this_server_does_not_support():
    [finding] = compatibility.handler_findings({"event": "nats_stream:orders"})

    assert "this server receives no events of 'nats_stream'. It knows conductor, amqp_queue" in finding.text


def test_only_limits_the_import_to_some_kinds(source):
    done = import_conductor(source.address, "--only=workflows", "--only=event-handlers")

    assert {each["kind"] for each in done.report["items"]} == {"workflow definition", "event handler"}
    assert not TaskDefinition.objects.exists()


def test_a_workflow_is_checked_with_the_input_templates_of_the_source(source):
    source.reply(
        "/metadata/taskdefs", [{"name": "call", "inputTemplate": {"http_request": {"uri": "http://a.example"}}}]
    )
    step = {"name": "call", "taskReferenceName": "call", "type": "HTTP", "inputParameters": {}}
    source.reply("/metadata/workflow", [own_order(tasks=[step])])

    done = import_conductor(source.address)

    assert done.items("workflow definition") == {"order:1": CREATED}


def test_an_owner_limits_what_schedules_and_handlers_may_do(source):
    get_user_model().objects.create_user("olga")
    source.reply("/scheduler/schedules", [])

    done = import_conductor(source.address, "--owner=olga", "--only=event-handlers")

    assert done.items("event handler") == {"paid": "failed", "from_sqs": "failed"}
    assert "EXECUTE" in done.errors
    with pytest.raises(CommandError, match="There is no user bob"):
        import_conductor(source.address, "--owner=bob")


def test_tags_of_the_source_are_added_to_those_here(source):
    source.reply("/metadata/tags", [{"key": "team", "value": "shop"}])
    for path in ("/metadata/workflow/order/tags", "/metadata/task/charge/tags"):
        source.reply(path, [{"key": "team", "value": "shop", "type": "METADATA"}])

    done, again = import_conductor(source.address), import_conductor(source.address)

    assert done.items("tags") == {"workflow order": CREATED, "task charge": CREATED}
    assert again.items("tags") == {"workflow order": UNCHANGED, "task charge": UNCHANGED}


def test_users_and_webhooks_are_counted_and_not_imported(source):
    source.reply("/users", [{"id": "ann"}, {"id": "bob"}])
    source.reply("/applications", [{"id": "shop"}])

    output = execute("import_conductor", "--from", source.address, "--dry-run").output

    assert "Not imported, because they hold permissions or secrets: 2 users, 1 applications." in output
    assert not get_user_model().objects.filter(username="ann").exists()


def test_a_name_from_the_source_cannot_control_the_terminal(source):
    source.reply("/metadata/taskdefs", [{"name": "a\x1b[2Jb"}])

    output = execute("import_conductor", "--from", source.address, "--dry-run").output

    assert "\x1b" not in output
