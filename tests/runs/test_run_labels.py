"""Labels of runs: set at the start, changed later, searched, and recorded in the audit log."""

import json

import pytest
from django.urls import reverse

from conductor_app.access.models import AuditEntry
from conductor_app.core.errors import Invalid
from conductor_app.runs.commands import control
from conductor_app.runs.commands import repair as run_commands_repair
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import RunLabel
from tests.builders import simple
from tests.page_text import html, page_text, run_url
from tests.scenario import claim_and_report, define_workflow, start_run_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(clock):
    return start_run_of(simple("ship"))


def labels_of(run):
    return sorted(RunLabel.objects.filter(run_id=run.pk).values_list("name", flat=True))


def send(client, run, **said):
    return client.post(reverse("admin:run_labels", args=[run.pk]), said, follow=True)


def test_labels_are_added_and_removed_with_a_reason(operator, run):
    page = send(operator, run, labels="big customer,  black friday,big customer", reason="sorted by hand")

    assert labels_of(run) == ["big customer", "black friday"] and "2 labels added." in page_text(page)
    assert "?label=big+customer" in html(page)
    send(operator, run, remove="black friday")
    assert labels_of(run) == ["big customer"]
    noted = AuditEntry.objects.filter(object_type="run").order_by("pk")
    assert [(entry.actor, entry.action, entry.reason, entry.facts["labels"]) for entry in noted] == [
        ("olga", "add labels", "sorted by hand", ["big customer", "black friday"]),
        ("olga", "remove labels", "", ["black friday"]),
    ]


@pytest.mark.parametrize("label", ["", " ", "a,b", "x" * 65, "line\nbreak", "\ud800"])
def test_an_invalid_label_is_rejected(run, label):
    with pytest.raises(Invalid):
        control.add_labels(run.pk, [label], "ann")


def test_a_run_has_twenty_labels_at_most(operator, run):
    control.add_labels(run.pk, [f"l{n}" for n in range(20)], "ann")

    assert "A run can have at most 20 labels." in page_text(send(operator, run, labels="one more"))
    assert control.add_labels(run.pk, ["l3"], "ann") == [] and len(labels_of(run)) == 20


def test_a_viewer_sees_labels_and_cannot_change_them(viewer, run):
    control.add_labels(run.pk, ["vip"], "ann")

    assert "vip" in page_text(viewer.get(run_url(run)))
    assert send(viewer, run, remove="vip").status_code == 403 and labels_of(run) == ["vip"]


def test_runs_are_found_by_their_label(operator, run):
    other = start_run_of(simple("ship"), name="other")
    control.add_labels(run.pk, ["vip"], "ann")

    page = html(operator.get(reverse("admin:conductor_run_changelist"), {"label": "vip"}))

    assert run.pk in page and other.pk not in page


def test_labels_survive_a_restart_and_are_deleted_with_the_run(run):
    control.add_labels(run.pk, ["vip"], "ann")
    claim_and_report("ship")
    run_commands_repair.restart(run.pk, "ann")
    assert labels_of(run) == ["vip"]

    control.remove_run(run.pk, "ann", archive=False)
    assert labels_of(run) == []


def test_a_start_with_an_invalid_label_is_rejected(clock):
    define_workflow("order", simple("ship"))
    run_id = start_run(StartRequest("order", labels=("vip", "vip", " gold ")), "ann")
    assert sorted(RunLabel.objects.filter(run_id=run_id).values_list("name", flat=True)) == ["gold", "vip"]

    with pytest.raises(Invalid):
        start_run(StartRequest("order", labels=("a,b",)), "ann")
    assert RunLabel.objects.count() == 2


def test_clients_add_read_and_change_labels(client, clock):
    define_workflow("order", simple("ship"))
    body = json.dumps({"name": "order", "labels": ["vip"]})
    run_id = client.post("/api/workflow", body, content_type="application/json").content.decode()
    address = f"/api/workflow/{run_id}/labels"

    assert client.get(address).json() == ["vip"]
    assert client.put(address, '["gold"]', content_type="application/json").json() == ["gold", "vip"]
    assert client.delete(address, '["vip", "none"]', content_type="application/json").json() == ["gold"]
    assert client.put(address, '["a,b"]', content_type="application/json").status_code == 400
    assert client.get("/api/workflow/nobody/labels").status_code == 404
    refused = json.dumps({"name": "order", "labels": "vip"})
    assert client.post("/api/workflow", refused, content_type="application/json").status_code == 400
