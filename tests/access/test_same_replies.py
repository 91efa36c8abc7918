"""A caller without rights gets the same reply for what exists and for what does not.

The addresses are those of all endpoints and pages with parameters. One parameter at a time is that of an object of the
other team, and then one of nothing. Ids of runs, tasks, files, keys and webhooks are random: nobody can try them.
"""

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from django.apps import apps
from django.db.models import Model, Q, QuerySet
from django.test import Client

from conductor_app.access.models import AccessKey
from conductor_app.alerts.models import Alert
from conductor_app.bulk.models import BulkOperation
from conductor_app.definitions.models import WorkflowDefinition
from conductor_app.failures.models import FailureGroup
from conductor_app.runs.models import Attempt, Run
from conductor_app.utils import process_state
from qa.hostile.endpoints import CONDUCTOR, PAGES, PARAMETER, Endpoint, all_endpoints
from tests.access.two_teams import ALPHA, BRAVO, create_teams
from tests.access.users import logged_in_client
from tests.database_baseline import restore_baseline

pytestmark = [pytest.mark.slow, pytest.mark.one_database, pytest.mark.django_db]
NO_ID, NO_NUMBER, NO_NAME = "00000000-0000-4000-8000-000000000000", "987654321", f"{BRAVO}_nothing"
RANDOM_IDS = frozenset(("workflow", "workflow_id", "run_id", "task_id", "attempt_id", "webhook_id", "key_id"))
NAMES = {
    r"taskdefs|metadata/task/|admin/task/|poll|requeue|/queues": "pack", r"schedul": "schedule",
    r"/event": "handler", r"/schema": "schema", r"template": "form", r"/prompts": "prompt",
    r"/integrations": "models", r"/secrets": "secret", r"/environment": "variable", r"": "order",
}  # fmt: skip
"""The object whose name an address has, by a pattern of the address."""
ROWS_BY_PARAMETER = {
    "group_id": FailureGroup.objects.filter(definition__startswith=BRAVO),
    "alert_id": Alert.objects.filter(view__name__startswith=BRAVO),
    "operation_id": BulkOperation.objects.filter(reason__startswith=BRAVO),
    "task_id": Attempt.objects.filter(run__name=f"{BRAVO}_order", status="PENDING"),
    "key_id": AccessKey.objects.filter(application__name__contains=BRAVO),
    "pk": WorkflowDefinition.objects.filter(name__startswith=BRAVO),
}
TEXTS = {
    "ref": f"{BRAVO}_pack_ref", "correlation_id": f"{BRAVO}-correlation", "event": f"kafka:{BRAVO}_topic",
    "prompt": f"{BRAVO}_prompt", "model": f"{BRAVO}_model", "user_id": f"viewer-of-{BRAVO}",
    "integration": f"{BRAVO}_models",
}  # fmt: skip
CHOICES = {"status": "COMPLETED", "version": "1", "act": "pause", "field": "input", "role": "USER", "number": "1",
           "format": "csv", "kind": "WORKFLOW_DEF", "file": NO_ID, "upload": NO_ID}  # fmt: skip
"""Parameters that are no names of objects, or random."""
VOLATILE = re.compile(r'[0-9a-f]{32}|name="csrfmiddlewaretoken" value="[^"]*"|\d{4}-\d\d-\d\dT[\d:.+Z-]*')


@pytest.fixture(scope="module")
def teams(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock():
        process_state.reset()
        yield create_teams()
        restore_baseline()


@pytest.fixture(autouse=True)
def token_access(settings):
    settings.CONDUCTOR_API_ACCESS = "token"


def of_bravo(rows: QuerySet[Model]) -> QuerySet[Model]:
    """Return the rows whose texts have the name of the team, or all if there are none."""
    texts = [each.name for each in rows.model._meta.fields if each.get_internal_type() in ("CharField", "TextField")]
    named = rows.filter(Q(*((f"{text}__contains", BRAVO) for text in texts), _connector=Q.OR)) if texts else rows
    return named if named.exists() else rows


def values_of(parameter: str, template: str) -> tuple[str, str] | None:
    """Return what an address has for an object of the other team, and for nothing. None: there are no such objects."""
    if parameter in CHOICES:
        return CHOICES[parameter], ""
    if parameter in TEXTS:
        return TEXTS[parameter], f"{TEXTS[parameter]}_nothing"
    if page := re.match(r"/admin/(conductor|auth)/(\w+)/", template):
        rows = of_bravo(apps.get_model(page[1], page[2].replace("solo", "standalonetask"))._default_manager.all())
    elif parameter in ("workflow", "workflow_id", "run_id"):
        rows = Run.objects.filter(name=f"{BRAVO}_order", status="RUNNING")
    elif parameter in ("task_id", "attempt_id"):
        rows = ROWS_BY_PARAMETER["task_id"].all()
    elif parameter in ROWS_BY_PARAMETER:
        rows = ROWS_BY_PARAMETER[parameter].all()
    elif parameter in ("name", "task_type", "key", "queue", "workflow_name"):
        name = next(name for pattern, name in NAMES.items() if re.search(pattern, template))
        return f"{BRAVO}_{name}", NO_NAME
    elif parameter == "id" and re.match(r"/api/(users|groups)", template):
        return f"viewer-of-{BRAVO}", NO_NAME
    else:
        return None
    value = rows.values_list("pk", flat=True).first()
    return None if value is None else (str(value), NO_NUMBER if str(value).isdigit() else NO_ID)


def pairs(endpoint: Endpoint) -> Iterator[tuple[str, str, str, str]]:
    """Yield addresses of an object of the other team and of nothing, each with the text that differs."""
    values = {name: values_of(name, endpoint.template) for name in PARAMETER.findall(endpoint.template)}
    known = {name: each for name, each in values.items() if each is not None}
    for name in known.keys() - RANDOM_IDS if known.keys() == values.keys() else ():
        present, absent = known[name]
        if absent:
            others = {each: found for each, (found, _) in known.items()}
            paths = [_path(endpoint.template, {**others, name: text}) for text in (present, absent)]
            yield paths[0], present, paths[1], absent


def _path(template: str, values: dict[str, str]) -> str:
    return PARAMETER.sub(lambda found: quote(values[found[1]], safe="/"), template)


def reply_of(client: Client, method: str, path: str, text: str) -> tuple[int, str, str]:
    """Return the reply without the text that the address has."""
    kind = "application/x-www-form-urlencoded" if path.startswith("/admin") else "application/json"
    client.cookies.pop("messages", None)
    reply = client.generic(method, path, "[]" if "bulk" in path or path.endswith("tags") else "{}", kind)
    content = b"".join(reply.streaming_content) if reply.streaming else reply.content
    shown = VOLATILE.sub("", content.decode(errors="replace"))
    for written in {text, quote(text, safe="")}:
        # Many numbers of a page are those of icons.
        before, after = (r"(?<=[/ ])", r"(?=[/.])") if written.isdigit() else (r"(?<!\w)", r"(?!\w)")
        shown = re.sub(f"{before}{re.escape(written)}{after}", "", shown)
    return reply.status_code, shown, reply.headers.get("Location", "").replace(text, "")


@pytest.mark.parametrize("area", [CONDUCTOR, PAGES])
def test_a_caller_without_rights_gets_the_same_reply_for_what_exists_and_what_does_not(teams, area):
    team = teams[ALPHA]
    callers = {"viewer": logged_in_client(team.viewer)}
    if area == CONDUCTOR:
        callers["worker"] = Client(headers={"X-Authorization": team.worker_key})
    tried, different = set(), []

    for endpoint in all_endpoints():
        for present, name, absent, no_name in pairs(endpoint) if endpoint.area == area else ():
            tried.add(endpoint.template)
            for method in endpoint.bodies:
                for role, client in callers.items():
                    replies = reply_of(client, method, present, name), reply_of(client, method, absent, no_name)
                    if replies[0] != replies[1]:
                        different.append((role, method, present, *(each[0] for each in replies), *replies))

    assert not [each[:5] for each in different]
    assert len(tried) > 60


def test_a_webhook_is_not_named_to_a_caller_who_has_its_id_only(teams):
    webhook = apps.get_model("conductor", "Webhook").objects.get(name=f"{BRAVO}_webhook").pk
    client = logged_in_client(teams[ALPHA].author)

    for id in (webhook, NO_ID):
        own = {"name": f"{ALPHA}_hook", "verifier": "HEADER_BASED", "headers": {"k": "v"}}
        replies = [
            client.get(f"/api/metadata/webhook/{id}"),
            client.put(f"/api/metadata/webhook/{id}", own, content_type="application/json"),
            client.delete(f"/api/metadata/webhook/{id}"),
        ]
        assert [reply.status_code for reply in replies] == [403] * 3
        assert BRAVO not in "".join(reply.content.decode() for reply in replies)


def test_a_late_report_by_reference_still_changes_nothing_without_an_error(teams):
    run = teams[ALPHA].runs["completed"]
    worker = Client(headers={"X-Authorization": teams[ALPHA].worker_key})

    reply = worker.post(f"/api/queue/update/{run}/{ALPHA}_pack_ref/COMPLETED", {}, content_type="application/json")

    assert reply.status_code == 200
