"""People whose grants name one team change nothing of another one: each action of the pages about named objects.

The addresses are those of the URL patterns, with the rows of the other team.
"""

import json
import re

import pytest
from django.contrib.auth.models import User
from django.core import serializers
from django.db.models import Q
from django.test import Client
from django.urls import resolve, reverse
from django.views.generic import RedirectView

from conductor_app.access.commands.users import Subject, grant, revoke
from conductor_app.access.models import AccessKey, Application, Grant, Secret, Variable
from conductor_app.access.permissions import EXECUTE, READ, WORKFLOW_DEF
from conductor_app.ai.commands.budgets import BudgetLimits, save_budget
from conductor_app.ai.models import Integration, IntegrationModel, ModelBudget, Prompt
from conductor_app.alerts.models import AlertTarget, SavedView
from conductor_app.bulk.models import BulkOperation
from conductor_app.core.ai import DEFINITION, MONTH
from conductor_app.definitions.models import TaskDefinition, WorkflowDefinition
from conductor_app.events.models import EventDelivery, EventHandler, Webhook
from conductor_app.human_tasks.models import FormTemplate
from conductor_app.human_tasks.pages.tasks import ACTIONS as HUMAN_TASK_ACTIONS
from conductor_app.runs.models import Attempt
from conductor_app.schedules.models import Schedule
from conductor_app.schedules.pages.schedules import ACTIONS as SCHEDULE_ACTIONS
from qa.hostile.endpoints import PAGES, PARAMETER, all_endpoints
from tests.access.two_teams import ALPHA, BRAVO, create_teams
from tests.access.users import logged_in_client

pytestmark = [pytest.mark.slow, pytest.mark.one_database, pytest.mark.django_db]
NAMED_BRAVO = Q(name__startswith=BRAVO)
ROWS = {
    "/admin/conductor/workflowdefinition/": lambda: WorkflowDefinition.objects.filter(NAMED_BRAVO),
    "/admin/conductor/taskdefinition/": lambda: TaskDefinition.objects.filter(NAMED_BRAVO),
    "/admin/conductor/eventhandler/": lambda: EventHandler.objects.filter(NAMED_BRAVO),
    "/admin/conductor/schedule/": lambda: Schedule.objects.filter(NAMED_BRAVO),
    "/admin/workflows/": lambda: WorkflowDefinition.objects.filter(NAMED_BRAVO),
    "/admin/events/": lambda: EventDelivery.objects.filter(event__contains=BRAVO),
    "/admin/webhooks/": lambda: Webhook.objects.filter(NAMED_BRAVO),
    "/admin/form-templates/": lambda: FormTemplate.objects.filter(NAMED_BRAVO),
    "/admin/human-tasks/": lambda: Attempt.objects.filter(run__name__startswith=BRAVO),
    "/admin/conductor/secret/": lambda: Secret.objects.filter(NAMED_BRAVO),
    "/admin/conductor/variable/": lambda: Variable.objects.filter(NAMED_BRAVO),
    "/admin/conductor/application/": lambda: Application.objects.filter(name__contains=BRAVO),
    "/admin/conductor/accesskey/": lambda: AccessKey.objects.filter(application__name__contains=BRAVO),
    "/admin/conductor/grant/": lambda: Grant.objects.filter(target_id__startswith=BRAVO),
    "/admin/people/": lambda: User.objects.filter(username__endswith=BRAVO),
    "/admin/integrations/models/": lambda: IntegrationModel.objects.filter(integration__startswith=BRAVO),
    "/admin/integrations/of/": lambda: Integration.objects.filter(NAMED_BRAVO),
    "/admin/prompts/": lambda: Prompt.objects.filter(NAMED_BRAVO),
    "/admin/bulk/": lambda: BulkOperation.objects.filter(by__startswith=BRAVO),
    "/admin/views/": lambda: SavedView.objects.filter(owner__startswith=BRAVO),
    "/admin/alert-targets/": lambda: AlertTarget.objects.filter(NAMED_BRAVO),
}
"""The rows of the other team that the parameters of an address name, by the beginning of the address."""
ACTS = (*SCHEDULE_ACTIONS, "run", "listen", "rest")
ACTIONS = {
    "/admin/human-tasks/": HUMAN_TASK_ACTIONS,
    "/admin/integrations/models/": ("save", "delete"),
    "/admin/integrations/of/": ("save", "delete", "test", "add_model"),
    "/admin/prompts/": ("save", "delete", "try", "new_version"),
    "/admin/bulk/": ("pause", "resume", "approve", "stop", "withdraw", "retry_refused"),
    "/admin/views/": ("save", "remove"),
    "/admin/alert-targets/": ("save", "delete", "test"),
    "/admin/people/": ("save", "activate", "deactivate"),
    "/admin/webhooks/": ("save", "rotate", "delete"),
    "/admin/form-templates/": ("save", "delete"),
    "/admin/events/": (),
}
"""The actions that forms of a page name as `do`."""
STEPS = tuple({"step": step, "reason": "mine"} for step in ("run", "review", "try", "rule", "keep"))
FORMS = (*STEPS, {"delete_case": "case", "canvas": "show:"})
"""What forms of editors send."""


@pytest.fixture
def teams():
    created = create_teams()
    for team in created:
        webhook = Webhook.objects.get(name=f"{team}_webhook")
        reply = Client().post(
            f"/webhook/{webhook.pk}", {"order": 1}, content_type="application/json", headers={"X-Key": f"{team} key"}
        )
        assert reply.status_code == 200
    return created


@pytest.fixture
def operator(teams):
    return logged_in_client(teams[ALPHA].operator)


@pytest.fixture
def author(teams):
    return logged_in_client(teams[ALPHA].author)


def addresses():
    for endpoint in all_endpoints():
        prefix = next((each for each in ROWS if endpoint.template.startswith(each)), None)
        names = [name for name in PARAMETER.findall(endpoint.template) if name != "act"]
        if endpoint.area != PAGES or prefix is None or len(names) != 1:
            continue
        for pk in ROWS[prefix]().values_list("pk", flat=True)[:1]:
            path = re.sub(rf"<(?:\w+:)?{names[0]}>", str(pk), endpoint.template)
            paths = (re.sub(r"<(?:\w+:)?act>", act, path) for act in (ACTS if "act>" in path else [""]))
            # Django redirects other addresses below a row to its page.
            yield from (each for each in paths if getattr(resolve(each).func, "view_class", None) is not RedirectView)


def forms_of(path: str) -> list[dict[str, str]]:
    """Return the forms that are sent to an address: of its actions, of editors, and one without an action."""
    acts = next((acts for prefix, acts in ACTIONS.items() if path.startswith(prefix)), ())
    is_editor = re.match(r"/admin/conductor/(workflow|task)definition/|/admin/conductor/(eventhandler|schedule)/", path)
    plain = {"reason": "mine", "text": "mine"}
    return [plain, *(plain | {"do": act} for act in acts), *(FORMS if is_editor else ())]


def stored_rows() -> str:
    return serializers.serialize("json", [row for find in ROWS.values() for row in find().order_by("pk")])


@pytest.mark.parametrize("role", ["operator", "author"])
def test_no_page_changes_a_row_of_another_team(teams, role, request):
    before, allowed, client = stored_rows(), [], request.getfixturevalue(role)
    paths = list(dict.fromkeys(addresses()))

    for path in paths:
        for form in forms_of(path):
            reply = client.post(path, form)
            # Django's own views redirect to the first page when there is no such row.
            if reply.status_code not in (403, 404, 405) and reply.headers.get("Location") != reverse("admin:index"):
                allowed.append((path, form, reply.status_code))

    assert not {path for path, _, _ in allowed}
    assert len(paths) > 60
    assert not [prefix for prefix in ROWS if not any(path.startswith(prefix) for path in paths)]
    assert stored_rows() == before


def definition(name, child="alpha_order"):
    step = {
        "name": "child",
        "taskReferenceName": "child",
        "type": "SUB_WORKFLOW",
        "subWorkflowParam": {"name": child},
        "inputParameters": {"value": "${child.output.x}"},
    }
    return json.dumps({"name": name, "version": 1, "ownerEmail": "a@example.org", "tasks": [step]})


NEW = {
    "conductor/workflowdefinition/add/": lambda name: {"document": definition(name)},
    "conductor/taskdefinition/add/": lambda name: {"document": json.dumps({"name": name, "ownerEmail": "a@b.org"})},
    "conductor/eventhandler/add/": lambda name: {
        "document": json.dumps({
            "name": name, "event": "conductor:x",
            "actions": [{"action": "start_workflow", "start_workflow": {"name": f"{ALPHA}_order"}}],
        })
    },
    "conductor/schedule/add/": lambda name: {
        "name": name, "expression": "0 0 0 * * ?", "zone": "UTC", "workflow": f"{ALPHA}_order", "overlap": "ALLOW",
    },
    "webhooks/new/": lambda name: {
        "name": name, "verifier": "BASIC", "user": "u", "secret": "s" * 20, "starts": f"{ALPHA}_order",
    },
    "form-templates/new/": lambda name: {
        "document": json.dumps({"name": name, "version": 1, "jsonSchema": {"type": "object"}, "templateUI": {}})
    },
    "conductor/secret/add/": lambda name: {"name": name, "value": "v"},
    "conductor/variable/add/": lambda name: {"name": name, "value": "v"},
}  # fmt: skip
MODELS = {
    "conductor/workflowdefinition/add/": WorkflowDefinition,
    "conductor/taskdefinition/add/": TaskDefinition,
    "conductor/eventhandler/add/": EventHandler,
    "conductor/schedule/add/": Schedule,
    "webhooks/new/": Webhook,
    "form-templates/new/": FormTemplate,
    "conductor/secret/add/": Secret,
    "conductor/variable/add/": Variable,
}


def test_authors_create_objects_with_the_names_of_their_grants_only(author):
    for address, form in NEW.items():
        rows = MODELS[address].objects

        own = author.post(f"/admin/{address}", form(f"{ALPHA}_new"))
        other = author.post(f"/admin/{address}", form(f"{BRAVO}_new"))

        assert own.status_code in (200, 302), (address, own.content.decode())
        assert other.status_code == 403, address
        assert rows.filter(name=f"{ALPHA}_new").exists(), (address, own.content.decode())
        assert not rows.filter(name=f"{BRAVO}_new").exists()


def test_authors_do_not_save_over_the_objects_of_another_team(author):
    for address, form in NEW.items():
        name = MODELS[address].objects.filter(NAMED_BRAVO).values_list("name", flat=True)[0]

        assert author.post(f"/admin/{address}", form(name)).status_code == 403, address


def test_the_checks_of_a_draft_offer_and_know_no_name_of_another_team(author):
    draft = definition(f"{ALPHA}_draft", child="other")

    for address in ("check", "canvas"):
        reply = author.post(f"/admin/conductor/workflowdefinition/{address}/", {"document": draft})

        assert reply.status_code == 200
        assert f"{ALPHA}_order" in reply.content.decode()
        assert BRAVO not in reply.content.decode()


def test_a_draft_that_names_another_teams_workflow_does_not_show_its_outputs(author):
    draft = definition(f"{ALPHA}_draft", child=f"{BRAVO}_order")

    reply = author.post("/admin/conductor/workflowdefinition/check/", {"document": draft}).content.decode()

    assert f"{BRAVO}_out" not in reply


def test_a_bundle_of_another_team_is_neither_exported_nor_imported(author):
    exported = author.get("/admin/conductor/workflowdefinition/export/").content.decode()
    bundle = json.dumps({"workflows": [json.loads(definition(f"{BRAVO}_order"))]})
    own = json.dumps({"workflows": [json.loads(definition(f"{ALPHA}_taken"))]})
    address = "/admin/conductor/workflowdefinition/import/"

    assert f"{ALPHA}_order" in exported
    assert BRAVO not in exported
    assert author.post(address, {"text": bundle, "step": "take"}).status_code == 403
    assert author.post(address, {"text": own, "step": "take"}).status_code == 302
    assert WorkflowDefinition.objects.filter(name=f"{ALPHA}_taken").exists()


def test_a_viewer_changes_nothing_of_the_own_team(teams):
    viewer = logged_in_client(teams[ALPHA].viewer)
    row = WorkflowDefinition.objects.get(name=f"{ALPHA}_order")
    schedule = Schedule.objects.get(name=f"{ALPHA}_schedule")
    webhook = Webhook.objects.get(name=f"{ALPHA}_webhook")

    assert viewer.get(f"/admin/conductor/workflowdefinition/{row.pk}/change/").status_code == 200
    assert viewer.post(f"/admin/conductor/workflowdefinition/{row.pk}/archive/").status_code == 403
    assert viewer.post(f"/admin/conductor/schedule/{schedule.pk}/do/delete/").status_code == 403
    assert viewer.post(f"/admin/webhooks/{webhook.pk}/", {"do": "delete"}).status_code == 403


def test_budgets_and_vector_indexes_require_a_role_to_change(author, operator):
    budget = save_budget(BudgetLimits(DEFINITION, f"{BRAVO}_order", MONTH, max_tokens=1), "root")
    forms = ({"do": "remove", "budget": budget.pk}, {"do": "save", "scope": DEFINITION, "name": f"{BRAVO}_order"},
             {"do": "allow", "attempt": "x"}, {"do": "alert", "percent": "80"})  # fmt: skip

    for client in (author, operator):
        assert {client.post("/admin/budgets/", form).status_code for form in forms} == {403}
        assert client.post("/admin/vector-indexes/", {"database": "d", "index": "i"}).status_code == 403

    assert ModelBudget.objects.filter(pk=budget.pk, max_tokens=1).exists()


def test_a_colleague_steers_an_operation_on_a_workflow_of_its_team(teams, operator):
    own, other = (BulkOperation.objects.get(by=f"{team}-operator") for team in (ALPHA, BRAVO))
    BulkOperation.objects.update(state="WORKING", ended_at=None)
    viewer = logged_in_client(teams[ALPHA].viewer)

    assert viewer.post(f"/admin/bulk/{own.pk}/", {"do": "pause"}).status_code == 403
    assert operator.post(f"/admin/bulk/{other.pk}/", {"do": "pause"}).status_code == 404
    assert operator.post(f"/admin/bulk/{own.pk}/", {"do": "pause"}).status_code == 302

    assert BulkOperation.objects.get(pk=own.pk).state == "PAUSED"
    assert BulkOperation.objects.get(pk=other.pk).state == "WORKING"


def test_a_person_whose_grants_were_reduced_sees_at_once_what_is_left(teams):
    person = teams[ALPHA].operator
    client, subject = logged_in_client(person), Subject(user_id=person.pk)
    pages = ("/admin/conductor/run/", "/admin/conductor/run/export.csv", f"/admin/search/hits/?q={ALPHA}-correlation")
    failed = f"/admin/conductor/run/{teams[ALPHA].runs['failed']}/change/"

    def shown() -> list[str]:
        replies = [client.get(page) for page in pages]
        return [b"".join(each.streaming_content if each.streaming else [each.content]).decode() for each in replies]

    assert all(f"{ALPHA}_order" in page for page in shown())
    revoke(subject, WORKFLOW_DEF, f"{ALPHA}_*", [READ, EXECUTE], "person", "root")
    grant(subject, WORKFLOW_DEF, f"{ALPHA}_approval", [READ], "person", "root")

    assert not [page for page in shown() if f"{ALPHA}_order" in page]
    assert f"{ALPHA}_approval" in shown()[0]
    refused, unknown = client.get(failed), client.get("/admin/conductor/run/no-such-run/change/")
    assert (refused.status_code, unknown.status_code) == (404, 404)
    for each in (refused, unknown):
        assert "exists, or your grants do not include its workflow." in each.content.decode()
    assert client.post(f"/admin/conductor/run/{teams[ALPHA].runs['human']}/do/pause/").status_code == 403
