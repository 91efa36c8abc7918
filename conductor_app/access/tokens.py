"""Keys of applications, access tokens, signed links, sessions, and the tokens that confirm plans."""

import secrets
import uuid
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlencode

import jwt
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, SESSION_KEY, get_user_model, logout
from django.contrib.auth.models import User
from django.core import signing
from django.core.signing import Signer
from django.http import HttpRequest
from django.urls import get_script_prefix
from django.utils.crypto import constant_time_compare, salted_hmac

from ..core.errors import Forbidden, Invalid, Unauthenticated
from ..db.database import transaction
from ..settings import conf
from ..utils import clock, process_state
from .models import AccessKey, Application
from .permissions import ADMIN, APPLICATION_USER_PREFIX, name_field, require_free_application_name, role_group

ALGORITHM = "HS256"
MAX_CACHED = 1_000
TOKEN_SECONDS = 86_400
"""The lifetime of a token."""
HASH_PREFIX = "sha256$"
"""Prefix of the names of applications' own users, followed by the application's id."""
MINUTE_MS = 60_000
DEFAULT_VALID_MS = 15 * MINUTE_MS
UPLOAD, DOWNLOAD = "send artifact", "fetch artifact"
UPLOAD_VALID_MS, DOWNLOAD_VALID_MS = 45 * MINUTE_MS, 30 * MINUTE_MS
"""The lifetime of an address for the upload and for the download of an artifact, in milliseconds."""
LINK_SALT = "conductor.payload"
ARTIFACT_PREFIX = "/api/artifacts/"
DOT_SEGMENTS = frozenset((".", ".."))
SIGNED_IN_AT, USED_AT, EXPIRED = "signed_in_at", "used_at", "session_expired"
OPENID_BACKEND = "conductor_app.access.sign_in.openid.OpenIdBackend"
PLAN_SALT = "conductor.plan"
PLAN_VALID_MS = 10 * 60_000


def derive_keys(salt: str, purpose: str) -> tuple[bytes, ...]:
    """Return the key for a purpose from SECRET_KEY, followed by those from SECRET_KEY_FALLBACKS.

    The first key signs; every key verifies.
    """
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return tuple(salted_hmac(salt, purpose, secret=secret, algorithm="sha256").digest() for secret in secrets)


def signing_keys() -> tuple[bytes, ...]:
    """Return the keys that verify tokens. The first one also signs them."""
    return derive_keys("conductor_app.access.tokens", "signing key")


def issue_token(key_id: str, application: str) -> str:
    """Return a token for the holder of a key."""
    issued_at = clock.now() // 1000
    claims = {"sub": key_id, "name": application, "iat": issued_at, "exp": issued_at + TOKEN_SECONDS}
    return jwt.encode(claims, signing_keys()[0], ALGORITHM)


class VerifiedTokens:
    """Cache of the tokens with a verified signature, as (key, expiry)."""

    def __init__(self) -> None:
        self.tokens: dict[str, tuple[str, int]] = {}

    def put(self, token: str, key_and_expiry: tuple[str, int]) -> None:
        if len(self.tokens) >= MAX_CACHED:
            self.tokens.clear()
        self.tokens[token] = key_and_expiry


_verified_tokens = process_state.slot(VerifiedTokens)


def verify_token(token: str) -> str:
    """Return the key that the token was issued for. Clients evaluate the code of its errors."""
    key_and_expiry = _verified_tokens.value.tokens.get(token)
    if key_and_expiry is None:
        claims = _parse_claims(token)
        key_and_expiry = (str(claims["sub"]), int(claims["exp"]) * 1000)
        _verified_tokens.value.put(token, key_and_expiry)
    if clock.now() >= key_and_expiry[1]:
        raise Unauthenticated("The token has expired.", code="EXPIRED_TOKEN")
    return key_and_expiry[0]


def _parse_claims(token: str) -> dict[str, Any]:
    # `verify_token` checks the expiry, with the clock of this project.
    options: Any = {"verify_exp": False, "verify_iat": False, "require": ["sub", "name", "exp"]}
    for key in signing_keys():
        with suppress(jwt.InvalidTokenError, ValueError):
            return jwt.decode(token, key, [ALGORITHM], options=options)
    raise Unauthenticated("The token is not valid.", code="INVALID_TOKEN")


def create_key(application: str) -> tuple[str, str]:
    """Create a key for the application with this name, and return its id and its secret, which is not stored.

    A missing application is created with the role ADMIN, because the caller has access to the server itself.
    """
    with transaction.atomic():
        row = Application.objects.filter(name=application).order_by("created_at", "id").first()
        if row is None:
            row = new_application(application)
            row.user.groups.add(role_group(ADMIN))
        return new_key(row)


def new_application(name: str, by: str = "") -> Application:
    """Create an application without roles and keys, and its own user, which cannot sign in.

    Raises:
        Conflict: when a user or an application has this name.
    """
    require_free_application_name(name)
    id = str(uuid.uuid4())
    user = get_user_model()(**{name_field(): f"{APPLICATION_USER_PREFIX}{id}"})
    if user.pk == "":
        # Another project may have users with texts as keys.
        user.pk = f"{APPLICATION_USER_PREFIX}{id}"
    # Another project may have users without it.
    user.first_name = name[:150]
    user.set_unusable_password()
    user.save()
    return Application.objects.create(id=id, name=name, user=user, created_at=clock.now(), created_by=by)


def new_key(application: Application) -> tuple[str, str]:
    """Create a key for an application, and return its id and its secret."""
    key_id, secret = secrets.token_hex(16), secrets.token_urlsafe(32)
    AccessKey.objects.create(
        id=key_id, application=application, secret_hash=hash_secret(secret), created_at=clock.now()
    )
    return key_id, secret


def verify_key(key_id: str, secret: str) -> AccessKey:
    """Return the key with this id and secret."""
    rows = AccessKey.objects.filter(pk=key_id, is_active=True, application__user__is_active=True)
    key = rows.select_related("application").first()
    if key is None or not constant_time_compare(hash_secret(secret), key.secret_hash):
        raise Unauthenticated("The key or its secret is wrong.", code="INVALID_CREDENTIALS")
    AccessKey.objects.filter(pk=key_id).update(used_at=clock.now())
    return key


def hash_secret(secret: str) -> str:
    """Return a hash of a secret. A fast hash is sufficient, because secrets are 32 random bytes.

    It does not depend on SECRET_KEY, so that keys survive its rotation.
    """
    return HASH_PREFIX + sha256(secret.encode()).hexdigest()


def is_artifact_host(host: str) -> bool:
    """Return True if browsers load artifacts, and nothing else, from this host, which may have a port."""
    return bool(conf.artifact_url) and host.lower() == conf.artifact_url.partition("://")[2]


def sign_link(path: str, purpose: str, valid_ms: int = DEFAULT_VALID_MS) -> dict[str, str]:
    """Return the query parameters of a signed link."""
    expires = str(clock.now() + valid_ms)
    return {"operation": purpose, "expires": expires, "signature": _sign(path, purpose, expires)}


def artifact_address(task_id: str, number: int, name: str, purpose: str) -> str:
    """Return the address for the upload or download of an artifact's content. Downloads may have their own host."""
    valid_ms = UPLOAD_VALID_MS if purpose == UPLOAD else DOWNLOAD_VALID_MS
    permission = sign_link(artifact_path(task_id, number, name), purpose, valid_ms)
    host = (conf.artifact_url if purpose == DOWNLOAD else "") + get_script_prefix().rstrip("/")
    return f"{host}{ARTIFACT_PREFIX}v1/{task_id}/{number}/{_quote_name(name)}?{urlencode(permission)}"


def _quote_name(name: str) -> str:
    """Return a name for a path. Clients would remove segments such as `..`, so they are no segments of their own."""
    return quote(name, safe="" if DOT_SEGMENTS.intersection(name.split("/")) else "/")


def artifact_path(task_id: str, number: int, name: str) -> str:
    """Return the signed path of an artifact's address."""
    return f"{task_id}/{number}/{name}"


def file_address(run_id: str, file_id: str, operation: str, part: str = "") -> tuple[str, int]:
    """Return the address for the upload (PUT) or download (GET) of a file, and its expiry.

    `part`: the number of the part, for an upload in parts.
    """
    valid_ms = UPLOAD_VALID_MS if operation == "PUT" else DOWNLOAD_VALID_MS
    query = sign_link(file_path(run_id, file_id, part), f"{operation} file", valid_ms)
    permission = {"op": operation, "exp": query["expires"], "sig": query["signature"]}
    part_query = {"part": part} if part else {}
    address = f"/api/files/content/{quote(run_id)}/{quote(file_id)}?{urlencode({**part_query, **permission})}"
    return address, int(query["expires"])


def file_path(run_id: str, file_id: str, part: str = "") -> str:
    """Return the signed path of a file's address."""
    return f"{run_id}/{file_id}/{part}"


def verify_file_link(path: str, operation: str, query: dict[str, str]) -> None:
    """Verify that this server has signed the link to the file for this operation, and that it has not expired.

    Raises:
        Forbidden: when the signature is wrong or the link has expired.
    """
    verify_link(path, f"{operation} file", {"expires": query["exp"], "signature": query["sig"]})


def verify_link(path: str, purpose: str, query: dict[str, str]) -> None:
    """Verify that this server has signed the link for this purpose, and that it has not expired.

    Raises:
        Forbidden: when the signature is wrong or the link has expired.
    """
    expires, signature = query.get("expires", ""), query.get("signature", "")
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    if not any(constant_time_compare(signature, _sign(path, purpose, expires, key)) for key in keys):
        raise Forbidden("The signature of this link is wrong.")
    if int(expires) < clock.now():
        raise Forbidden("This link has expired. Request a new one.")


def _sign(path: str, purpose: str, expires: str, key: str | None = None) -> str:
    return Signer(key=key, salt=LINK_SALT).signature(f"{purpose}\n{path}\n{expires}")


def check_session(request: HttpRequest) -> None:
    """Sign out the user of the request if the session has expired.

    Requests that a page sends by itself do not extend a session. The time of the last use is stored once per minute.
    """
    if not request.user.is_authenticated:
        return
    now, session = clock.now(), request.session
    signed_in_at, used_at = session.get(SIGNED_IN_AT), session.get(USED_AT)
    if signed_in_at is None or used_at is None:
        start_session(request)
    elif _is_over(now - signed_in_at, now - used_at):
        logout(request)
        request.session[EXPIRED] = True
    elif now - used_at >= MINUTE_MS and request.headers.get("X-Requested-With") != "fetch":
        session[USED_AT] = now


def _is_over(age_ms: int, idle_ms: int) -> bool:
    return age_ms >= conf.session_hours * 60 * MINUTE_MS or idle_ms >= conf.session_idle_minutes * MINUTE_MS


def start_session(request: HttpRequest) -> None:
    """Store when the session began."""
    request.session[SIGNED_IN_AT] = request.session[USED_AT] = clock.now()


def end_other_sessions(user: User, session_key: str | None) -> int:
    """End the sessions of a user except the given one. Returns how many."""
    # The sessions of another Django project may be in no table.
    from django.contrib.sessions.models import Session

    ended = [
        session.pk
        for session in Session.objects.exclude(pk=session_key or "").iterator(chunk_size=500)
        if session.get_decoded().get(SESSION_KEY) == str(user.pk)
    ]
    Session.objects.filter(pk__in=ended).delete()
    return len(ended)


def is_single_sign_on(request: HttpRequest) -> bool:
    """Return True if an OpenID Connect provider has authenticated the user of the session."""
    return request.session.get(BACKEND_SESSION_KEY) == OPENID_BACKEND


def sign_plan(run_id: str, caller: str, plan: Mapping[str, Any]) -> tuple[str, int]:
    """Return a token for a plan of one caller, and the time at which it expires."""
    expires_at = clock.now() + PLAN_VALID_MS
    document = {"run": run_id, "caller": caller, "expires": expires_at, "plan": dict(plan)}
    return signing.dumps(document, salt=PLAN_SALT, compress=True), expires_at


def open_plan(token: str, run_id: str, caller: str) -> dict[str, Any]:
    """Return the plan of a token.

    Raises:
        Invalid: when this server has not signed the token, or it has expired.
        Forbidden: when the token belongs to another run or another caller.
    """
    try:
        document = signing.loads(token, salt=PLAN_SALT)
    except signing.BadSignature:
        raise Invalid(
            "The confirmation token is invalid. Request a plan, and send back the token of its response."
        ) from None
    if document["run"] != run_id or document["caller"] != caller:
        raise Forbidden("The confirmation token belongs to another run or another caller.")
    if document["expires"] < clock.now():
        raise Invalid("The confirmation token has expired. Request the plan again.")
    plan: dict[str, Any] = document["plan"]
    return plan
