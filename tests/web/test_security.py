"""Every page keeps the content security policy that it sends."""

import re

import pytest

from conductor_app.definitions.models import WorkflowDefinition
from conductor_app.site.sidebar import used_entries
from tests.access.users import client_with
from tests.builders import simple
from tests.page_text import html, run_url
from tests.scenario import start_run_of

LISTS = [
    "/admin/",
    "/admin/queues/",
    *(
        f"/admin/conductor/{name}/"
        for name in ("run", "workflowdefinition", "taskdefinition", "auditentry", "accesskey")
    ),
    "/admin/conductor/workflowdefinition/add/",
    "/admin/conductor/taskdefinition/add/",
    "/admin/conductor/accesskey/add/",
    "/admin/auth/user/",
    "/admin/auth/user/add/",
    "/admin/auth/group/",
    "/admin/password_change/",
]
INLINE = re.compile(r"<style|\sstyle=|<script(?![^>]*\bsrc=)|\son[a-z]+=|javascript:", re.I)


def test_a_page_contains_nothing_that_its_policy_forbids(operator):
    for path in LISTS:
        response = operator.get(path)

        assert "script-src 'self';" in response["Content-Security-Policy"], path
        assert not INLINE.search(html(response)), path


def test_the_page_of_a_run_obeys_the_policy(operator, clock):
    run = start_run_of(simple("ship"))

    assert not INLINE.search(html(operator.get(run_url(run, task="ship"))))


def test_the_login_page_obeys_the_policy(client, db):
    assert not INLINE.search(html(client.get("/admin/login/")))


def test_every_list_takes_few_queries(viewer, django_assert_max_num_queries):
    # A process checks once a minute whether the menu has Taskcluster and AI.
    used_entries()
    for path in LISTS[:7]:
        with django_assert_max_num_queries(16):
            assert viewer.get(path).status_code == 200, path


def test_an_anonymous_visitor_sees_nothing(client, db):
    for path in LISTS:
        assert client.get(path).status_code == 302, path


def test_an_account_without_permissions_sees_no_counts(db):
    client = client_with()

    assert "No access yet" in html(client.get("/admin/"))
    assert client.get("/admin/queues/").status_code == 403
    assert client.get("/admin/system/").status_code == 403


DEFINITIONS = "/admin/conductor/workflowdefinition/"
DIGITS, HALF = "9" * 5000, '"\\ud800"'


@pytest.mark.parametrize("value", [DIGITS, HALF])
def test_infinite_numbers_and_lone_surrogates_are_reported_in_every_json_field(operator, clock, value):
    run = start_run_of(simple("ship"))
    row = WorkflowDefinition.objects.get(name=run.name)
    text = f'{{"name": "typed", "tasks": [{value}], "x": {value}}}'

    for path, typed in (
        (f"{DEFINITIONS}add/", {"document": text, "reason": "x"}),
        (f"{DEFINITIONS}import/", {"text": text}),
        (f"{DEFINITIONS}{row.pk}/start/", {"mode": "json", "input": text}),
        ("/admin/conductor/taskdefinition/add/", {"document": text, "reason": "x"}),
        ("/admin/conductor/eventhandler/add/", {"document": text, "reason": "x"}),
        ("/admin/conductor/schedule/add/", {"name": "s", "input": text}),
    ):
        assert operator.post(path, typed).status_code == 200, path
    assert not WorkflowDefinition.objects.filter(name="typed").exists()


def test_invalid_presets_and_unexpected_forms_are_no_errors(operator, clock):
    run = start_run_of(simple("ship"))

    assert operator.get("/admin/conductor/grant/add/", {"user": "²", "group": "9" * 30}).status_code == 200
    assert operator.post(f"/admin/runs/{run.pk}/compare/").status_code == 405
