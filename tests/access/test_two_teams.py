"""Grants count everywhere: who may see one team sees nothing of the other one, and everything of their own.

The addresses are those of all pages, endpoints, tools and exports: read from the URL patterns and the OpenAPI document,
and followed from page to page as an administrator.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2s
from html import escape, unescape
from typing import Any
from urllib.parse import parse_qsl, quote, urljoin, urlsplit

import pytest
from django.contrib.admin.templatetags.admin_urls import admin_urlname
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.http import HttpResponse
from django.test import Client
from django.urls import resolve, reverse

from conductor_app.agents.tools import TOOLS
from conductor_app.failures.models import FailureGroup
from conductor_app.runs.models import Attempt
from conductor_app.site.admin import site
from qa.hostile.endpoints import CONDUCTOR, PAGES, PARAMETER, Endpoint, all_endpoints
from qa.hostile.objects import Objects, read_objects
from tests.access.two_teams import ALPHA, BRAVO, ROLES, TEAMS, Team, create_teams
from tests.access.users import logged_in_client

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
LINK = re.compile(r'(?:href|src|action|data-[a-z-]+)="([/?][^"#]*)')
PEOPLE_ROLES = tuple(ROLES)
MAX_PER_PATTERN = 4
"""Followed links of one kind: the same page with other ids and values."""
NOT_FOLLOWED = re.compile(
    r"/logout/|/static/|/do/|/jsi18n/|/tasks/poll|/workflow/execute|/scheduler/(admin|schedules/[^/]+/(pause|resume))|clear\w+Cache"
)
PEOPLE = re.compile(f"(?:viewer|operator|author|worker)-of-(?:{ALPHA}|{BRAVO})")
OWN_TEXTS = re.compile(f"(?:viewer|operator|author|worker)-of-{ALPHA}")
VOLATILE = re.compile(r'csrfmiddlewaretoken" value="[^"]*"|data-rev="[^"]*"|nonce="[^"]*"')
"""What differs between two replies with the same content."""
FORMS = re.compile(r"/(?:add|edit|form|start|test|backfill|replay)/")
"""Pages of forms that require more than READ."""
ADMINISTRATORS_ONLY: dict[str, str] = {
    r"/admin/alert-targets/": "Targets have addresses and keys of systems for all teams.",
    r"/admin/auth/|/api/users": "Users and their roles are those of the server.",
    r"/admin/conductor/accesskey/|/api/applications/key/": "Keys belong to those who manage applications.",
    r"/admin/conductor/application/|/api/applications": "No grant on the applications is given here.",
    r"/admin/conductor/grant/|/admin/conductor/auditentry/.*action=grant": "Grants decide who sees what.",
    r"/admin/retention/|/admin/quotas/": "Limits of the server.",
    r"/api/model-budgets": "All budgets of the server. The page Budgets has those of the team.",
    r"/admin/system/|/api/admin/": "The state of the server and all of its queues.",
    r"/api/secrets/\w+$": "People read the value of no secret, whatever their role.",
}
"""Addresses that show the whole server, as patterns with the reason. A grant on a team's objects does not open them."""
OF_WORKERS = re.compile(r"/api/(?:workflow|tasks|metadata/(?:workflow|taskdefs))\b")
"""Addresses about the workflows and task definitions that the grants of the team's worker name."""
POSTED: dict[str, tuple[Any, ...]] = {
    "/api/human/tasks/search": ({}, {"freeText": BRAVO}, {"definitionNames": [f"{BRAVO}_approval"]}),
    "/api/workflow/bulk/search": (["RUNS"],),
    "/api/workflow/correlated/batch": (
        {"workflowNames": [f"{BRAVO}_order", f"{ALPHA}_order"], "correlationIds": [f"{BRAVO}-correlation"]},
    ),
    f"/api/workflow/{BRAVO}_order/correlated": ([f"{BRAVO}-correlation"],),
    "/api/secrets": ({},),
    "/api/insight/runs/RUN/plan": ({"operation": "retry"}, {"operation": "restart"}, {"operation": "terminate"}),
}
"""Bodies of requests that read although they are posted. RUN and RUNS stand for the other team's runs."""
SEARCHES = (
    "/admin/search/?q={}", "/admin/search/hits/?q={}", "/admin/search/hits/?q=start+{}",
    "/admin/search/hits/?q=pause+{}", "/admin/search/hits/?q={}-correlation",
    "/admin/search/hits/?q=retry+{}-correlation", "/admin/search/hits/?q={}+broke", "/admin/conductor/run/?q={}",
    "/admin/conductor/run/?name={}_order", "/admin/conductor/run/?correlation_id={}-correlation",
    "/admin/conductor/run/export.csv?name={}_order", "/admin/conductor/run/export.json?label={}-label",
    "/admin/conductor/workflowdefinition/?q={}", "/admin/conductor/workflowdefinition/export/?q={}",
    "/admin/conductor/taskdefinition/?q={}", "/admin/conductor/schedule/?q={}", "/admin/conductor/eventhandler/?q={}",
    "/admin/conductor/secret/?q={}", "/admin/conductor/variable/?q={}", "/admin/conductor/application/?q={}",
    "/admin/conductor/auditentry/?q={}_order:1", "/admin/conductor/auditentry/export.csv?q={}-operator",
    "/admin/conductor/auditentry/export.json?q={}_schedule", "/admin/conductor/grant/?q={}", "/admin/failures/?q={}",
    "/admin/failures/?definition={}_order", "/admin/queue/?name={}_pack", "/admin/workers/?q={}",
    "/admin/worker/?name={}-worker", "/admin/human-tasks/?q={}&assigned=all",
    "/admin/views/?definition={}_order",
    "/admin/bulk/plan/?definition={}_order", "/api/workflow/search?freeText={}",
    "/api/workflow/search?query=workflowType+%3D+%27{}_order%27", "/api/tasks/search?freeText={}",
    "/api/workflow/search-v2?freeText={}", "/api/metadata/workflow?name={}_order", "/api/insight/failures?text={}",
    "/api/insight/failures?definition={}_order", "/api/tasks/queue/polldata?taskType={}_pack",
    "/api/scheduler/search/executions?freeText={}", "/api/scheduler/schedules?workflowName={}_order",
    "/api/metadata/tags/workflow?value={}",
)  # fmt: skip
"""Addresses that search for a text, with a place for the name of a team."""
DJANGO_ADDRESSES = (
    "/admin/autocomplete/?app_label=conductor&model_name=grant&field_name=user&term={}",
    "/admin/autocomplete/?app_label=conductor&model_name=grant&field_name=group&term={}",
    "/admin/autocomplete/?app_label=conductor&model_name=run&field_name=parent&term={}",
    "/admin/jsi18n/", "/admin/password_change/", "/admin/password_change/done/", "/admin/conductor/", "/admin/auth/",
)  # fmt: skip
"""Addresses of Django's own views."""


@dataclass(frozen=True)
class Shown:
    """What a caller is shown at an address: the teams that are named there, except in what the caller has sent."""

    status: int
    teams: frozenset[str]


@dataclass
class Caller:
    """A client that is signed in. It opens each address once."""

    client: Client
    shown: dict[str, Shown] = field(default_factory=dict)

    def open(self, path: str) -> Shown:
        if path not in self.shown:
            status, text = fetch(self.client, path)
            assert status < 500, (path, status)
            text = without_repeated(path, OWN_TEXTS.sub("", text)) if status == 200 else ""
            self.shown[path] = Shown(status, frozenset(team for team in TEAMS if team in text))
        return self.shown[path]


@pytest.fixture(scope="module")
def teams(django_db_setup, django_db_blocker):
    """Create both teams once: the tests of this module only read."""
    from conductor_app.utils import process_state
    from tests.database_baseline import restore_baseline

    with django_db_blocker.unblock():
        process_state.reset()
        yield create_teams()
        restore_baseline()


@pytest.fixture(scope="module")
def callers(teams, django_db_blocker) -> dict[str, Caller]:
    """Return the people and the worker of the first team, each signed in once."""
    team: Team = teams[ALPHA]
    with django_db_blocker.unblock():
        people = {role: logged_in_client(getattr(team, role)) for role in PEOPLE_ROLES}
    clients = people | {"worker": Client(headers={"X-Authorization": team.worker_key})}
    return {role: Caller(client) for role, client in clients.items()}


@pytest.fixture(scope="module")
def addresses(teams, django_db_blocker) -> dict[str, frozenset[str]]:
    """Return every address that an administrator can open, with the teams that it names.

    Of those that show the administrator the same, letter by letter, one is returned.
    """
    with django_db_blocker.unblock():
        root = Client(raise_request_exception=False)
        root.force_login(User.objects.create_superuser("root-of-all"))
        distinct: dict[tuple[str, bytes], tuple[str, frozenset[str]]] = {}
        for path, shown, content in crawl(root):
            distinct.setdefault(content, (path, shown))
        return dict(distinct.values())


@pytest.fixture(autouse=True)
def token_access(settings):
    settings.CONDUCTOR_API_ACCESS = "token"


def crawl(root: Client) -> Iterator[tuple[str, frozenset[str], tuple[str, bytes]]]:
    """Open each address, and the links of each page. Yields the address, the teams that it names, and its content."""
    objects = read_objects()
    waiting = [path for endpoint in all_endpoints() for path in paths_of(endpoint, objects)]
    known, kinds = set(waiting), Counter[str]()
    while waiting:
        path = waiting.pop(0)
        status, text = fetch(root, path)
        if status != 200:
            continue
        content = VOLATILE.sub("", without_repeated(path, PEOPLE.sub("", text)))
        digest = blake2s(content.encode(), digest_size=16).digest()
        view = resolve(urlsplit(path).path).route
        yield path, frozenset(team for team in TEAMS if team in content), (view, digest)
        for found in LINK.findall(text) if path.startswith("/admin") else ():
            link = urljoin(path, unescape(found))
            if link not in known and link.startswith("/") and not NOT_FOLLOWED.search(link) and _is_new(link, kinds):
                known.add(link)
                waiting.append(link)


def _is_new(link: str, kinds: Counter[str]) -> bool:
    """Return whether the page was opened only a few times, or never with one of these parameters."""
    path, _, query = link.partition("?")
    page = re.sub(r"[0-9a-f-]{36}|\d+|[A-Za-z0-9_-]{22}|(alpha|bravo)\w*", "N", path)
    keys = [page, *(f"{page}?{name}" for name in re.findall(r"([^&=]+)=", query))]
    is_new = any(kinds[key] < MAX_PER_PATTERN for key in keys)
    kinds.update(keys)
    return is_new


def paths_of(endpoint: Endpoint, objects: Objects) -> list[str]:
    """Return the addresses of an endpoint that can be read, with the ids of the objects of both teams."""
    if (
        endpoint.area not in (PAGES, CONDUCTOR)
        or "GET" not in endpoint.bodies
        or NOT_FOLLOWED.search(endpoint.template)
    ):
        return []
    paths = [endpoint.template]
    for name in PARAMETER.findall(endpoint.template):
        values = known_values(name, endpoint.template, objects)
        marker = re.compile(rf"<(?:\w+:)?{name}>")
        paths = [marker.sub(quote(value, safe="/"), path) for path in paths for value in values]
    return paths[:MAX_PATHS]


MAX_PATHS = 14
NAMED = ("order", "pack", "ship", "schedule", "handler", "webhook", "schema", "form", "secret", "variable", "models",
         "prompt", "approval", "parent")  # fmt: skip


def known_values(parameter: str, template: str, objects: Objects) -> list[str]:
    if parameter in ("name", "task_type", "taskType", "key", "integration", "workflowName"):
        return [f"{team}_{name}" for team in (ALPHA, BRAVO) for name in NAMED]
    return list(objects.known(parameter, template))[:14]


def fetch(client: Client, path: str) -> tuple[int, str]:
    # Messages about the requests before, such as one that names an object that does not exist.
    client.cookies.pop("messages", None)
    reply = client.get(path, headers={"Accept": "*/*"})
    content = b"".join(reply.streaming_content) if reply.streaming else reply.content
    return reply.status_code, content.decode(errors="replace")


def without_repeated(path: str, text: str) -> str:
    """Return a reply in lower case, without its address and the values of its filters: a page repeats both."""
    query, text = urlsplit(path).query, text.lower()
    for repeated in (urlsplit(path).path, query, *(value for _, value in parse_qsl(query))):
        once = quote(repeated, safe="")
        for written in {repeated, escape(repeated), once, quote(once, safe="")} - {""}:
            text = text.replace(written.lower(), "")
    return text


@pytest.mark.one_database
@pytest.mark.parametrize("role", [*PEOPLE_ROLES, "worker"])
def test_nothing_of_another_team_is_shown(callers, addresses, role):
    caller = callers[role]

    assert not [path for path in addresses if BRAVO in caller.open(path).teams]


@pytest.mark.one_database
@pytest.mark.parametrize("role", [*PEOPLE_ROLES, "worker"])
def test_everything_of_ones_own_team_is_shown(callers, addresses, role):
    caller = callers[role]

    hidden = [path for path, shown in addresses.items() if ALPHA in shown and is_hidden(caller, path, shown)]

    if role == "worker":
        assert not [path for path in hidden if OF_WORKERS.match(path)]
        return
    closed = re.compile("|".join(ADMINISTRATORS_ONLY))
    forms = FORMS if role != "author" else re.compile(r"(?!)")
    assert not [path for path in hidden if not closed.match(path) and not forms.search(path)]


def is_hidden(caller: Caller, path: str, shown: frozenset[str]) -> bool:
    """Return whether a caller does not see its own team at an address that names it.

    A page of the other team, named by an id, may suggest names of both teams to an administrator.
    """
    found = caller.open(path)
    return ALPHA not in found.teams and BRAVO not in path.lower() and not (BRAVO in shown and found.status == 404)


@pytest.mark.parametrize("role", ["viewer", "operator", "worker"])
def test_a_search_for_the_name_of_another_team_finds_nothing(callers, role):
    caller = callers[role].client
    searches = [address.format(BRAVO) for address in (*SEARCHES, *DJANGO_ADDRESSES)]

    found = {path: texts for path in searches if (texts := names_of_bravo(fetch(caller, path)[1], path))}

    assert not found


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_a_search_for_the_name_of_ones_own_team_finds_something(callers, role):
    caller = callers[role].client

    for path in ("/admin/search/hits/?q={}", "/admin/search/hits/?q={}-correlation", "/admin/search/hits/?q={}+broke"):
        assert f"{ALPHA}_" in fetch(caller, path.format(ALPHA))[1], path


@pytest.mark.one_database
@pytest.mark.parametrize("role", ["viewer", "operator", "worker"])
def test_addresses_of_django_and_of_history_name_nothing_of_another_team(callers, role):
    paths = []
    for model in site._registry:
        for key in model._default_manager.order_by("-pk").values_list("pk", flat=True)[:MAX_PER_PATTERN]:
            kind = ContentType.objects.get_for_model(model).pk
            page = f"{reverse(admin_urlname(model._meta, 'changelist'))}{quote(str(key), safe='')}"
            paths += [f"/admin/r/{kind}/{key}/", *(f"{page}/{name}/" for name in ("history", "delete", "password"))]

    assert not [path for path in paths if BRAVO in callers[role].open(path).teams]


@pytest.mark.parametrize("role", ["viewer", "operator", "worker"])
def test_posted_searches_and_plans_return_nothing_of_another_team(teams, callers, role):
    caller, others = callers[role].client, list(teams[BRAVO].runs.values())

    for path, bodies in POSTED.items():
        for body in bodies:
            for run in others if "RUN/" in path else others[:1]:
                sent = [*others, *teams[ALPHA].runs.values()] if body == ["RUNS"] else body
                reply = caller.post(path.replace("RUN/", f"{run}/"), sent, content_type="application/json")
                assert reply.status_code < 500
                assert reply.status_code != 200 or not names_of_bravo(reply.content.decode(), (path, body)), path


def names_of_bravo(text: str, sent: object) -> set[str]:
    """Return the texts of the other team in a reply, except those that the request contained."""
    name = re.compile(rf"{BRAVO}[\w-]*")
    return set(name.findall(text.lower())) - set(name.findall(str(sent).lower()))


MAY_BE_REFUSED = (
    *("plan_operation", "compare_runs", "wait_for_run", "validate_workflow_definition", "test_workflow_definition"),
)
"""Tools whose calls are errors for a viewer, or for a run that has failed."""


def agent_calls(team: Team) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a call of each reading tool with the objects of a team."""
    values: dict[str, list[Any]] = {
        "workflowId": [*team.runs.values()],
        "taskId": [*Attempt.objects.filter(run__in=team.runs.values()).values_list("pk", flat=True)],
        "queue": [f"{team.name}_pack"],
        "id": [*FailureGroup.objects.filter(definition__startswith=team.name).values_list("pk", flat=True)],
        "name": [f"{team.name}_order"],
        "operation": ["retry"],
        "definition": [{"name": f"{team.name}_order", "version": 1, "schemaVersion": 2, "tasks": []}],
    }
    for tool in TOOLS:
        if tool.acts:
            continue
        for value in values[tool.required[0]] if tool.required else [None]:
            arguments = {name: values[name][0] for name in tool.required} | (
                {"waitSeconds": 0} if tool.follows_run else {}
            )
            yield tool.name, arguments | ({tool.required[0]: value} if tool.required else {})
    yield "search_runs", {"workflow": f"{team.name}_order"}
    yield "search_runs", {"text": team.name}
    yield "list_failures", {"view": "all", "text": team.name}
    yield "test_workflow_definition", {"name": f"{team.name}_order"}


def call_tool(token: str, tool: str, arguments: Mapping[str, Any]) -> HttpResponse:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {"Accept": "application/json", "Authorization": f"Bearer {token}"}
    return Client().post("/mcp", message, content_type="application/json", headers=headers)


@pytest.mark.parametrize("role", ["viewer", "operator", "worker"])
def test_agents_see_nothing_of_another_team_and_what_is_theirs(teams, role):
    token = teams[ALPHA].worker_key if role == "worker" else teams[ALPHA].agent_keys[role]

    for team in (teams[ALPHA], teams[BRAVO]):
        for tool, arguments in agent_calls(team):
            reply = call_tool(token, tool, arguments)
            result = reply.json()["result"]

            assert not names_of_bravo(reply.content.decode(), arguments), (tool, arguments)
            if team.name == ALPHA and role != "worker" and tool not in MAY_BE_REFUSED:
                assert not result["isError"], (tool, arguments, result)
