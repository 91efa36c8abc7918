"""Applications and people with some powers, and their clients.

`client_with("view_run")` is the client of a new user of the pages, `client_with(role="ADMIN")` that of one with a role,
and `logged_in_client(user)` that of a given user. `api_client_of(create_application("shop", "USER"))` is a client of
the API. The fixtures `operator` and `viewer` are clients of users who may do and who may view everything.
"""

from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from conductor_app.access import tokens
from conductor_app.access import tokens as access_keys
from conductor_app.access.commands.users import Subject, grant
from conductor_app.access.models import Application
from conductor_app.access.permissions import role_group
from tests.api_fixtures import Api


def create_application(name: str = "shop", *roles: str) -> Application:
    """Create an application with the given roles."""
    made = access_keys.new_application(name)
    for role in roles:
        made.user.groups.add(role_group(role))
    return made


def api_client_of(made: Application) -> Api:
    """Return an API client that is authenticated as the application."""
    key_id, _ = access_keys.new_key(made)
    api = Api()
    api.client = Client(headers={"X-Authorization": tokens.issue_token(key_id, made.name)})
    return api


def grant_access(made: Application, target_type: str, target_id: str, *accesses: str) -> None:
    """Grant something to an application."""
    grant(Subject(user_id=made.user_id), target_type, target_id, accesses, made.name, "olga")


def grant_group_access(group: Group, target_type: str, target_id: str, *accesses: str) -> None:
    grant(Subject(group_id=group.pk), target_type, target_id, accesses, group.name, "olga")


def logged_in_client(user: User) -> Client:
    """Return a test client that is signed in as the user."""
    client = Client()
    client.force_login(user)
    return client


def client_with(*permissions: str, role: str = "", name: str = "nina") -> Client:
    """Return a test client of a new user of the pages with these permissions, and with those of the role."""
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    if role:
        user.groups.add(role_group(role))
    return logged_in_client(user)


def author_who_starts(workflows: str) -> Client:
    """Return a test client of ann, who may edit definitions and start these workflows."""
    author = client_with(role="METADATA_MANAGER", name="ann")
    ann = User.objects.get(username="ann")
    grant(Subject(user_id=ann.pk), "WORKFLOW_DEF", workflows, ["EXECUTE"], "ann", "olga")
    return author
