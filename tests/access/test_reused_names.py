"""Names of people can be used again: what belongs to a person belongs to its user, not to its name."""

import pytest
from django.contrib.auth.models import User

from conductor_app.access.authentication import acting_as_owner
from conductor_app.access.commands.users import Subject, grant
from conductor_app.access.models import AuditEntry
from conductor_app.access.permissions import EXECUTE, READ, WORKFLOW_DEF
from conductor_app.alerts.models import SavedView
from conductor_app.bulk import commands as bulk
from conductor_app.core.errors import Conflict
from tests.access.users import logged_in_client
from tests.page_text import page_text

pytestmark = pytest.mark.django_db
VIEWS, AUDIT = "/admin/views/", "/admin/conductor/auditentry/"


def person(name="amy"):
    user = User.objects.create_user(name, is_staff=True)
    grant(Subject(user_id=user.pk), WORKFLOW_DEF, "shop_*", [READ, EXECUTE], name, "root")
    return user


@pytest.fixture
def former(db):
    """Return a user that has saved a view, a shared view, and planned a bulk operation."""
    user = person()
    client = logged_in_client(user)
    client.post(VIEWS, {"title": "My failures", "status": "FAILED"})
    client.post(VIEWS, {"title": "Shop", "definition": "shop_order", "is_shared": "on"})
    client.post("/admin/bulk/plan/", {"action": "pause", "error": "card of Bob", "reason": "Secret plan"})
    assert "My failures" in page_text(client.get(VIEWS))
    assert "Secret plan" in page_text(client.get(AUDIT))
    return user


def test_a_new_user_with_a_former_name_sees_no_private_view_and_no_entry_of_the_former(former):
    former.delete()
    client = logged_in_client(person())

    views, log = page_text(client.get(VIEWS)), page_text(client.get(AUDIT))

    assert "My failures" not in views and "Shop" in views
    assert "Secret plan" not in log and "Secret plan" not in page_text(client.get("/admin/bulk/"))


def test_a_view_of_the_same_name_does_not_replace_that_of_the_former_user(former):
    kept = SavedView.objects.get(name="Shop")
    former.delete()
    client = logged_in_client(person())

    client.post(VIEWS, {"title": "Shop", "definition": "shop_other"})
    client.post(VIEWS, {"do": "remove", "view": str(kept.pk)})

    assert SavedView.objects.get(pk=kept.pk).selection == {"definition": "shop_order"}
    assert SavedView.objects.filter(name="Shop").count() == 2


def test_a_renamed_user_keeps_the_views_and_the_entries(former):
    User.objects.filter(pk=former.pk).update(username="amelia")
    client = logged_in_client(User.objects.get(pk=former.pk))

    assert "My failures" in page_text(client.get(VIEWS))
    assert "Secret plan" in page_text(client.get(AUDIT))


def test_a_user_does_not_approve_an_operation_that_it_has_submitted_under_another_name(former, settings):
    settings.CONDUCTOR_BULK_APPROVAL_FROM = 1
    with acting_as_owner(former.pk):
        id = bulk.start(bulk.BulkRequest("pause", {"status": ["RUNNING"]}), "amy")
        bulk.BulkOperation.objects.filter(pk=id).update(needs_approval=True, state="PAUSED", resume_state="GATHERING")
        with pytest.raises(Conflict, match="Another person"):
            bulk.approve(id, "amelia")


def test_entries_store_the_user_of_their_actor(former):
    entries = AuditEntry.objects.filter(object_type__in=("view", "bulk operation"))

    assert set(entries.values_list("actor", "actor_id")) == {("amy", former.pk)}


def test_a_view_of_a_user_with_the_name_of_the_owner_of_views_of_folders_is_another_view(db):
    from conductor_app.alerts.commands import save_view

    applied = save_view("Failed", {"status": ["FAILED"]}, "robot", owner="Git")
    git = logged_in_client(person("Git"))

    git.post(VIEWS, {"title": "Failed", "definition": "shop_order"})
    git.post(VIEWS, {"do": "remove", "view": str(applied.pk)})

    assert SavedView.objects.get(pk=applied.pk).selection == {"status": ["FAILED"]}


def test_the_page_of_an_entry_opens_for_those_who_see_the_entry_only(former):
    entry = AuditEntry.objects.filter(object_type="view", actor="amy").earliest("pk")
    page = f"{AUDIT}{entry.pk}/change/"
    other = logged_in_client(person("bob"))

    assert "My failures" in page_text(logged_in_client(former).get(page))
    assert other.get(page).status_code in (302, 403, 404)
    assert "My failures" not in page_text(other.get(page, follow=True))
