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


@pytest.mark.django_db(transaction=True)
def test_all_pages_are_below_the_path_and_the_admin_site_of_the_project_stays_its_own(shop):
    assert shop.execute(CRAWL) == [[], True, 5, False, "Django-Verwaltung"]


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
