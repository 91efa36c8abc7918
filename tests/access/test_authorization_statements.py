"""Authorization adds no SQL statements to a worker's requests."""

import pytest

from conductor_app.access import permissions as permission_cache
from conductor_app.access.models import AccessRevision
from tests.access.users import api_client_of, create_application, grant_access
from tests.builders import simple
from tests.runs.test_statements import Counted

pytestmark = pytest.mark.usefixtures("with_logins")


@pytest.fixture
def worker(clock):
    """Return a worker that is granted access to its own tasks only."""
    admin = api_client_of(create_application("admin", "ADMIN"))
    admin.define(simple("a"), simple("b"))
    for _ in range(3):
        admin.start()
    shop = create_application("shop")
    grant_access(shop, "TASK_DEF", "a*", "EXECUTE")
    api = api_client_of(shop)
    api.report(api.poll("a")[0])
    return api


def test_a_poll_and_a_report_take_as_many_statements_as_on_an_open_server(worker, clock):
    with Counted() as polled:
        [task] = worker.poll("a")
    with Counted() as reported:
        assert worker.report(task).status_code == 200

    assert polled.count <= 3, polled.statements
    assert reported.count <= 8, reported.statements


def test_after_a_second_one_statement_checks_for_changes(worker, clock):
    clock.advance(seconds=1)

    with Counted() as counted:
        worker.poll("a")
        worker.poll("a")

    asked = [sql for sql in counted.statements if AccessRevision._meta.db_table in sql]
    assert len(asked) == 1
    others = [sql for sql in counted.statements if "access" in sql or "auth_" in sql or "grant" in sql]
    assert others == asked


def test_cached_permissions_are_read_again_only_after_a_change(worker, clock):
    before = permission_cache.current_cache()
    clock.advance(seconds=5)

    assert permission_cache.current_cache() is before
