"""Confirmation tokens: proof that a caller has seen the plan of an operation on a run, and what the plan was for."""

from collections.abc import Mapping
from typing import Any

from django.core import signing

from .. import clock
from ..core.errors import Forbidden, Invalid

SALT = "conductor.plan"
VALID_MS = 10 * 60_000


def sign_plan(run_id: str, caller: str, plan: Mapping[str, Any]) -> tuple[str, int]:
    """Return a token for a plan of one caller, and the time at which it expires."""
    expires_at = clock.now() + VALID_MS
    document = {"run": run_id, "caller": caller, "expires": expires_at, "plan": dict(plan)}
    return signing.dumps(document, salt=SALT, compress=True), expires_at


def open_plan(token: str, run_id: str, caller: str) -> dict[str, Any]:
    """Return the plan of a token.

    Raises:
        Invalid: when this server has not signed the token, or it has expired.
        Forbidden: when the token belongs to another run or another caller.
    """
    try:
        document = signing.loads(token, salt=SALT)
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
