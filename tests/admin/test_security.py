"""Every page keeps the content security policy that it sends."""

import re

import pytest

from conductor_app.models import WorkflowDefinition
from tests.insight.situations import newest_attempt_of, start_run_of, step

from .reading import html, run_url

LISTS = [
    "/admin/",
    "/admin/queues/",
    "/admin/sweeps/",
    *(
        f"/admin/conductor/{name}/"
        for name in ("run", "attempt", "workflowdefinition", "taskdefinition", "auditentry", "accesskey")
    ),
    "/admin/conductor/workflowdefinition/add/",
    "/admin/conductor/taskdefinition/add/",
    "/admin/conductor/accesskey/add/",
    "/admin/auth/user/",
    "/admin/auth/user/add/",
    "/admin/auth/group/",
    "/admin/django_celery_beat/periodictask/",
    "/admin/django_celery_beat/intervalschedule/",
    "/admin/password_change/",
]
INLINE = re.compile(r"<style|\sstyle=|<script(?![^>]*\bsrc=)|\son[a-z]+=|javascript:", re.I)


@pytest.mark.parametrize("path", LISTS)
def test_a_page_brings_nothing_that_its_policy_forbids(operator, path):
    response = operator.get(path)

    assert "script-src 'self';" in response["Content-Security-Policy"]
    assert not INLINE.search(html(response))


def test_the_pages_of_a_run_and_an_attempt_keep_it_too(operator, clock):
    run = start_run_of(step("ship"))
    attempt = newest_attempt_of(run, "ship")

    for path in (run_url(run, task="ship"), f"/admin/conductor/attempt/{attempt.pk}/change/"):
        assert not INLINE.search(html(operator.get(path)))


def test_the_login_page_keeps_it(client, db):
    assert not INLINE.search(html(client.get("/admin/login/")))


def test_every_list_costs_few_queries(viewer, django_assert_max_num_queries):
    for path in LISTS[:9]:
        with django_assert_max_num_queries(15):
            assert viewer.get(path).status_code == 200, path


def test_nothing_is_shown_to_a_stranger(client, db):
    for path in LISTS:
        assert client.get(path).status_code == 302, path


def test_an_account_without_permissions_sees_no_numbers(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("nobody", is_staff=True))

    assert "No access yet" in html(client.get("/admin/"))
    assert client.get("/admin/queues/").status_code == 403
    assert client.get("/admin/sweeps/").status_code == 403


DEFINITIONS = "/admin/conductor/workflowdefinition/"
DIGITS, HALF = "9" * 5000, '"\\ud800"'


@pytest.mark.parametrize("value", [DIGITS, HALF])
def test_numbers_without_end_and_halves_of_characters_are_told_wherever_json_is_typed(operator, clock, value):
    run = start_run_of(step("ship"))
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


def test_an_address_that_presets_nonsense_and_a_form_where_there_is_none_are_no_faults(operator, clock):
    run = start_run_of(step("ship"))

    assert operator.get("/admin/conductor/grant/add/", {"user": "²", "group": "9" * 30}).status_code == 200
    assert operator.post(f"/admin/runs/{run.pk}/compare/").status_code == 405
