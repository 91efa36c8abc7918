"""Credentials of the callers that send hostile requests, created in the server's database."""

import base64
import hmac
import secrets
import time
from dataclasses import dataclass

from django.contrib.auth.models import Group, User
from django.test import Client as TestClient

from conductor_app.access import tokens
from conductor_app.access import tokens as access_keys
from conductor_app.access.models import Client
from conductor_app.access.permissions import ensure_system_roles, role_group
from conductor_app.taskcluster.auth.commands import ClientSettings, create_client
from conductor_app.taskcluster.auth.scopes import NEVER_EXPIRES

CSRF_TOKEN = "hostile0" * 4
ROLES = ("ADMIN", "USER", "WORKER", "USER_READ_ONLY", "WORKFLOW_MANAGER", "METADATA_MANAGER", "APPLICATION_MANAGER")


@dataclass(frozen=True)
class Accounts:
    """The credentials of all callers. `root` may do everything through both APIs."""

    tokens: dict[str, str]
    """Conductor tokens of applications, by role; "" has no role."""
    sessions: dict[str, str]
    """Cookies of people, by group."""
    clients: dict[str, str]
    """Access tokens of Taskcluster clients, by client id."""
    root: str = "ADMIN"


def ensure_accounts() -> Accounts:
    """Create accounts, also where hostile requests have removed those of before."""
    ensure_system_roles()
    mark = secrets.token_hex(4)
    return Accounts(
        tokens={role: _application_token(f"hostile-{role.lower()}-{mark}", role) for role in (*ROLES, "")},
        sessions={
            name: _session(f"hostile-{name.lower()}-{mark}", name) for name in ("", "Authors", "Viewers", "root")
        },
        clients={
            f"hostile/{mark}/root": _client_token(f"hostile/{mark}/root", ["*"]),
            f"hostile/{mark}/worker": _client_token(f"hostile/{mark}/worker", ["queue:claim-work:*"]),
            f"hostile/{mark}/none": _client_token(f"hostile/{mark}/none", []),
        },
    )


def _application_token(name: str, role: str) -> str:
    application = access_keys.new_application(name)
    if role:
        application.user.groups.add(role_group(role))
    key_id, _ = access_keys.new_key(application)
    return tokens.issue_token(key_id, application.name)


def _session(name: str, group: str) -> str:
    if group == "root":
        user = User.objects.create_superuser(name, "", "")
    else:
        user = User.objects.create_user(name, is_staff=True)
        if group:
            user.groups.add(Group.objects.get(name=group))
    client = TestClient()
    client.force_login(user)
    return client.cookies["sessionid"].value


def _client_token(client_id: str, scopes: list[str]) -> str:
    Client.objects.filter(pk=client_id).delete()
    return create_client(client_id, ClientSettings(scopes, NEVER_EXPIRES), "hostile")[1]


def hawk_header(client_id: str, key: str, method: str, target: str, port: int) -> str:
    """Return the signature of a request without the hash of its body, as the JavaScript client sends it."""
    moment, nonce = str(int(time.time())), secrets.token_hex(4)
    lines = ("hawk.1.header", moment, nonce, method, target, "127.0.0.1", str(port), "", "")
    mac = hmac.digest(key.encode(), "".join(f"{line}\n" for line in lines).encode("latin-1", "replace"), "sha256")
    return f'Hawk id="{client_id}", ts="{moment}", nonce="{nonce}", mac="{base64.b64encode(mac).decode()}"'
