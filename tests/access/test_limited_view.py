"""A person with grants on some names reads that other rows may exist, and follows no link to what it may not open."""

import pytest
from django.contrib.auth.models import User

from conductor_app.access.commands.users import Subject, grant
from tests.access.users import logged_in_client
from tests.builders import simple
from tests.page_text import html, page_text
from tests.scenario import start_run_of

pytestmark = pytest.mark.django_db
LIMITED = "Only what your grants let you see is listed."
EMPTY = ("/admin/overview-attention/", "/admin/queues/", "/admin/workers/", "/admin/conductor/taskdefinition/")


@pytest.fixture
def run(clock):
    return start_run_of(simple("book_ledger"), name="billing_close")


@pytest.fixture
def bill(run):
    """Return the client of a person who may see workflows and tasks of one prefix only."""
    user = User.objects.create_user("bill", is_staff=True)
    for kind in ("WORKFLOW_DEF", "TASK_DEF"):
        grant(Subject(user_id=user.pk), kind, "billing_*", ["READ", "EXECUTE"], "bill", "olga")
    return logged_in_client(user)


@pytest.mark.parametrize("address", EMPTY)
def test_an_empty_list_says_that_grants_leave_out_rows(bill, operator, address):
    assert LIMITED in page_text(bill.get(address, follow=True))
    assert LIMITED not in page_text(operator.get(address, follow=True))


def test_a_queue_that_a_person_may_not_open_is_no_link(bill, operator, run):
    page = f"/admin/why-waiting/{run.attempts.get().pk}/"

    assert "Queue book_ledger" in page_text(bill.get(page)) and "/admin/queue/" not in html(bill.get(page))
    assert operator.get(page).status_code == 200 and "/admin/queue/?name=book_ledger" in html(operator.get(page))
