"""The pages and the REST API in another Django project, by one line in its urls.py."""

import pytest

from tests.browser.page_checks import chromium
from tests.in_process.new_project import NAME, PASSWORD, NewProject

CRAWL = """
import re
from accounts.models import User
from django.test import Client
from orders.models import Order
User.objects.create_user("boss@example.com", "secret", is_staff=True, is_superuser=True)
order = Order.objects.create(customer="ann")
order.begin()
browser = Client(headers={"Accept-Language": "de"})
first = browser.get("/conductor/admin/")
assert first.headers["Location"] == "/conductor/admin/login/?next=/conductor/admin/", first.headers
form = {"username": "boss@example.com", "password": "secret", "next": "/conductor/admin/"}
assert browser.post("/conductor/admin/login/", form).headers["Location"] == "/conductor/admin/"
from django.urls import reverse
todo, seen, problems = [reverse("conductor:run", args=[order.run_id]), "/conductor/admin/"], set(), []
FORMS = re.compile(r"/(do|labels|columns|archive|tool|breakpoints|delete|logout)/")
GEOMETRY = re.compile(r' (?:width|height|r|c?[xy][12]?)="[^"]*\\d,\\d{3}[^"]*"')
while todo:
    address = todo.pop()
    if address in seen or FORMS.search(address):
        continue
    seen.add(address)
    reply = browser.get(address)
    if reply.status_code not in (200, 204) and not reply.headers.get("Location", "").startswith("/conductor/admin/"):
        problems.append((address, reply.status_code))
    if reply.streaming or not reply.headers.get("Content-Type", "").startswith("text/html"):
        continue
    problems += GEOMETRY.findall(reply.content.decode())
    links = set(re.findall(r'(?:href|action|data-live|src)="(/[^"#?]*)', reply.content.decode()))
    problems += [(address, link) for link in links if not link.startswith(("/conductor/", "/static/"))]
    todo += [link for link in links if link.startswith("/conductor/admin/") and link != "/conductor/admin/queue/"]
theirs = browser.get("/admin/").content.decode()
docs = browser.get("/conductor/api/docs").content.decode()
files = re.findall('(?:src|href|data-document)="([^"]+)', docs)
problems += [each for each in files if not each.startswith("/conductor/api/") or browser.get(each).status_code != 200]
result = [problems, len(seen) > 80, len(files), "ops/ops.css" in theirs]
result.append(re.sub("<[^>]*>", "", theirs.partition('id="site-name"')[2].partition("</div>")[0]).strip(" >\\n"))
"""
STAFF = """
from accounts.models import User
from django.contrib.auth.models import Permission
from django.test import Client
user = User.objects.create_user("clerk@example.com", "secret", is_staff=True)
browser = Client()
browser.force_login(user)
before = browser.get("/conductor/admin/conductor/run/").status_code
user.user_permissions.add(Permission.objects.get(codename="view_run"))
after = [browser.get(f"/conductor/admin/conductor/{each}/").status_code for each in ("run", "secret")]
browser.logout()
other = User.objects.create_user("customer@example.com", "secret")
browser.force_login(other)
result = [before, *after, *(browser.get(f"/conductor/{each}").status_code for each in ("admin/", "api/secrets"))]
"""

KEYS = """
import re
from accounts.models import User
from conductor_app.access.commands.users import Subject, insert_grants
from conductor_app.access.models import AuditEntry, CallerQuota, Grant, Preference
from conductor_app.access.tokens import create_key
from conductor_app.alerts.models import SavedView
from conductor_app.bulk.models import BulkOperation
from conductor_app.human_tasks.models import HumanTask
from conductor_app.runs.models import Attempt, Run
from conductor_app.schedules.models import Schedule
from django.test import Client
boss = User.objects.create_user("boss@example.com", is_staff=True, is_superuser=True)
clerk = User.objects.create_user("clerk@example.com", is_staff=True)
other = User.objects.create_user("other@example.com", is_staff=True)
rights = ["CREATE", "READ", "UPDATE", "DELETE", "EXECUTE"]
for kind, name in [("WORKFLOW_DEF", "ask"), ("WORKFLOW_SCHEDULE", "nightly"), ("EVENT_HANDLER", "paid")]:
    insert_grants([Subject(user_id=clerk.pk)], kind, name, rights, "boss")
browsers = {user: Client() for user in (boss, clerk, other)}
for user, browser in browsers.items():
    browser.force_login(user)
def send(user, address, data=None, *, method="post", status=200, kind="application/json"):
    reply = getattr(browsers[user], method)(f"/conductor/{address}", data, **({"content_type": kind} if kind else {}))
    assert reply.status_code == status, (address, reply.status_code, reply.content[:2000].decode())
    return reply
def form(user, address, data, status=302):
    return send(user, f"admin/{address}", data, kind="", status=status)
def page(user, address, status=200):
    reply = send(user, f"admin/{address}", method="get", kind="", status=status)
    return " ".join(re.sub("<[^>]*>", "", reply.content.decode()).split())
ask = {"name": "ask", "taskReferenceName": "ask", "type": "HUMAN"}
send(boss, "api/metadata/workflow", {"name": "ask", "version": 1, "ownerEmail": "a@example.com", "tasks": [ask]})
run_id = send(clerk, "api/workflow/ask", {}).content.decode()
send(other, "api/workflow/ask", {}, status=403)
key = Run.objects.get().starter_id
assert str(clerk.pk) == str(key), key
form(boss, "quotas/", {"do": "save", "kind": "user", "name": "clerk@example.com", "open_runs": "1"})
send(clerk, "api/workflow/ask", {}, status=429)
quotas = page(boss, "quotas/")
assert "1 of 1" in quotas and "clerk@example.com" in quotas
caller = f"user {key}"
assert 'selected>' in send(boss, "admin/quotas/", {"edit": caller}, method="get", kind="").content.decode()
form(boss, "quotas/", {"do": "remove", "caller": caller})
assert not CallerQuota.objects.exists()
schedule = {"name": "nightly", "cronExpression": "0 0 * * * *", "startWorkflowRequest": {"name": "ask"}}
send(clerk, "api/scheduler/schedules", schedule)
send(clerk, "api/scheduler/schedules/nightly/run")
action = {"action": "start_workflow", "start_workflow": {"name": "ask", "input": {}}}
handler = {"name": "paid", "event": "conductor:paid", "active": True, "actions": [action]}
send(clerk, "api/event", handler)
assert Schedule.objects.get().owner_id == key and set(Run.objects.values_list("starter_id", flat=True)) == {key}
[task] = Attempt.objects.filter(run_id=run_id)
form(clerk, f"human-tasks/{task.pk}/", {"do": "take"})
assert HumanTask.objects.get(claimed_by="clerk@example.com").claimer_id == key
assert "claimed by clerk@example.com" in page(boss, "human-tasks/")
form(boss, f"human-tasks/{task.pk}/", {"do": "hand_on", "to": "user:other@example.com"})
form(clerk, "views/", {"title": "of the clerk", "definition": "ask"})
[view] = SavedView.objects.all()
assert view.owner_id == key and "of the clerk" in page(clerk, "views/")
assert "of the clerk" not in page(boss, "views/")
form(clerk, "views/", {"do": "remove", "view": view.pk})
assert not SavedView.objects.exists()
form(clerk, "preferences/", {"density": "compact"})
assert Preference.objects.get().user == clerk
form(clerk, "bulk/plan/", {"definition": "ask", "action": "pause"})
[operation] = BulkOperation.objects.all()
assert operation.owner_id == key
page(clerk, f"bulk/{operation.pk}/")
own = AuditEntry.objects.filter(actor_id=key)
assert own.exists() and not own.exclude(actor="clerk@example.com").exists()
page(clerk, "conductor/auditentry/")
for name in ("first", "second"):
    id, secret = create_key(name)
    token = send(other, "api/token", {"keyId": id, "keySecret": secret}).json()["token"]
    started = Client().post("/conductor/api/workflow/ask", {}, "application/json", HTTP_X_AUTHORIZATION=token)
    assert started.status_code == 200, started.content
found = set(Run.objects.values_list("starter_id", flat=True)) - {key}
assert len(found) == 2 and found == {str(each) if isinstance(key, str) else each for each in
    User.objects.filter(application__isnull=False).values_list("pk", flat=True)}, found
page(boss, "conductor/application/")
page(boss, "conductor/grant/")
clerk.delete()
assert not Grant.objects.filter(target_id="ask", user__isnull=False).exists()
page(boss, "quotas/")
page(boss, f"conductor/run/{run_id}/change/")
result = "done"
"""
USER_KEYS = pytest.mark.parametrize("shop", ["", "uuid", "text"], indirect=True, ids=["numbers", "UUIDs", "texts"])


@pytest.mark.django_db(transaction=True)
@USER_KEYS
def test_all_pages_are_below_the_path_and_the_admin_site_of_the_project_stays_its_own(shop):
    assert shop.execute(CRAWL) == [[], True, 5, False, "Django-Verwaltung"]


@pytest.mark.django_db(transaction=True)
@USER_KEYS
def test_what_users_own_and_may_do_is_stored_by_keys_of_any_type(shop):
    assert shop.execute(KEYS) == "done"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "settings",
    [
        {"USE_TZ": False, "TIME_ZONE": "Asia/Kathmandu"},
        {"LANGUAGE_CODE": "ar", "LANGUAGES": [["ar", "Arabic"]], "USE_THOUSAND_SEPARATOR": True},
    ],
    ids=["without time zones", "another language"],
)
def test_pages_work_with_other_settings_of_the_project_and_an_admin_site_of_its_own(shop, settings):
    apps = ["shop.apps.ShopAdminConfig", "django.contrib.auth", "django.contrib.contenttypes"]
    apps += ["django.contrib.sessions", "django.contrib.messages", "django.contrib.staticfiles"]
    shop.change(INSTALLED_APPS=[*apps, "conductor_app", "accounts", "orders"], **settings)

    assert shop.execute(CRAWL) == [[], True, 5, False, "Shop"]


@pytest.mark.django_db(transaction=True)
def test_permissions_of_the_users_of_the_project_decide(shop):
    assert shop.execute(STAFF) == [403, 200, 403, 302, 401]


@pytest.mark.django_db(transaction=True)
def test_a_project_is_offered_only_commands_with_a_prefix(shop):
    said = shop.manage("help")

    listed = said.partition("[conductor_app]")[2].partition("[")[0].split()
    assert listed == ["conductor_access_key", "conductor_definitions", "conductor_worker"]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return NewProject(tmp_path_factory.mktemp("depot"))


@pytest.mark.parametrize("kind", ["WSGI", "ASGI"])
def test_the_python_sdk_uses_the_api_below_the_path(project, kind):
    from conductor.client.configuration.configuration import Configuration
    from conductor.client.configuration.settings.authentication_settings import AuthenticationSettings
    from conductor.client.http.models import StartWorkflowRequest, TaskResult
    from conductor.client.orkes_clients import OrkesClients

    project.manage("conductor_definitions", "--apply")
    key = AuthenticationSettings(*project.access_key())
    with project.served(kind) as url:
        clients = OrkesClients(Configuration(base_url=f"{url}/flows", authentication_settings=key))
        run_id = clients.get_workflow_client().start_workflow(StartWorkflowRequest(name="parcel"))
        task = clients.get_task_client().poll_task("pack")
        assert task.workflow_instance_id == run_id
        done = TaskResult(task_id=task.task_id, workflow_instance_id=run_id, status="COMPLETED")
        clients.get_task_client().update_task(done)
        assert clients.get_workflow_client().get_workflow(run_id, include_tasks=True).status == "COMPLETED"


@pytest.fixture
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    if not (found := chromium()):
        pytest.skip("there is no Chromium here; CHROMIUM may name one")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()


def test_an_administrator_of_the_project_retries_a_run_in_the_browser(project, browser):
    from playwright.sync_api import expect

    project.manage("conductor_definitions", "--apply")
    run_id = project.manage(
        "shell",
        "--no-imports",
        "-c",
        "from conductor_app import start_workflow, terminate\n"
        "id = start_workflow('parcel', {}); terminate(id, reason='Out of boxes'); print('RUN', id)",
    ).split()[-1]
    with project.served("runserver") as url:
        page = browser.new_page(base_url=url)
        page.set_default_timeout(60_000)
        problems = []
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.goto(f"/flows/admin/conductor/run/{run_id}/change/")
        page.get_by_label("Username").fill(NAME)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("#content")).to_contain_text("Out of boxes", timeout=60_000)
        page.locator("#act-retry > summary").click()
        page.locator("#act-retry").get_by_role("button").click()
        expect(page.locator("#act-pause")).to_have_count(1, timeout=60_000)
        assert problems == []
