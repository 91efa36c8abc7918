"""The app in a database of its own of another Django project, whose users are in `default`."""

import pytest

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.parametrize("shop", ["divided"], indirect=True, ids=["two databases"]),
]
TABLES = """
from django.db import connections
result = [[name for name in connections[alias].introspection.table_names() if name.startswith(prefix)]
          for alias, prefix in (("default", "conductor_"), ("workflows", "auth_"), ("workflows", "accounts_"))]
"""
OUTER = """
from django.db import transaction
from conductor_app import get_run, start_workflow
try:
    with transaction.atomic():
        id = start_workflow("payment", {"order_id": 1})
        raise ZeroDivisionError
except ZeroDivisionError:
    pass
result = get_run(id).status
"""
USERS = """
from django.contrib.auth.models import Group
from accounts.models import User
user, group = User.objects.create_user("ann@example.com"), Group.objects.create(name="packers")
user.delete(), group.delete()
result = User.objects.count() + Group.objects.count()
"""
SWEEPS = """
from django.test import override_settings
from accounts.models import User
from conductor_app import get_run, run_due_tasks, start_workflow
from conductor_app.processes.background import JOBS
from conductor_app.processes.sweeps import sweep_once
from orders.models import Order
order = Order.objects.create(customer="ann")
order.begin(User.objects.create_user("ann@example.com"))
with override_settings(CONDUCTOR_RAISES_IN_SWEEPS=True):
    sweep_once()
    for job in JOBS.values():
        job()
count = run_due_tasks()
result = [count, get_run(order.run_id).status]
"""


def test_each_table_is_in_one_database(shop):
    assert shop.execute(TABLES) == [[], [], []]


def test_a_transaction_of_another_database_includes_no_workflow(shop):
    assert shop.execute(OUTER) == "RUNNING"


def test_users_and_groups_can_be_deleted(shop):
    assert shop.execute(USERS) == 0


def test_sweeps_and_periodic_jobs_work_without_users(shop):
    assert shop.execute(SWEEPS) == [3, "COMPLETED"]


def test_pages_without_the_tables_of_users_are_an_error(shop):
    shop.change(ROOT_URLCONF="shop.urls")

    said = shop.call("check").stdout

    assert "conductor.E008" in said and "which are in the database 'default', not in 'workflows'." in said
    assert "HINT: Remove conductor_app.in_process.urls from urls.py" in said


def test_an_access_key_is_refused_without_the_tables_of_users(shop):
    said = shop.call("conductor_access_key", "depot")

    assert said.returncode == 1
    assert "An application has a user, but users are in the database 'default', not in 'workflows'." in said.stdout


def test_a_database_without_the_router_is_an_error(shop):
    shop.change(DATABASE_ROUTERS=[])

    said = shop.call("check").stdout

    assert "conductor.E003" in said
    assert "CONDUCTOR['DATABASE'] is 'workflows', but the database routers send the tables of conductor_app to " in said
