"""Webhook definitions: their fields, and what is wrong with one (api §2.1)."""

from typing import Any

from ...errors import Complaint
from .fields import Field, Table, read_document
from .values import Choice, MapOf, Place, Whole, anything, flag, short_text, text

WEBHOOK: Table = (
    Field("id", short_text),
    Field("name", short_text),
    Field("sourcePlatform", text),
    Field("verifier", Choice("HEADER_BASED", "BASIC", "HMAC_BASED", "SIGNATURE_BASED", "SLACK_BASED", "STRIPE")),
    Field("headers", MapOf(text), dict),
    Field("headerKey", text),
    Field("timestampHeaderKey", text),
    Field("secretKey", text),
    Field("secretValue", text),
    Field("workflowsToStart", MapOf(anything), dict),
    Field("receiverWorkflowNamesToVersions", MapOf(Whole()), dict),
    Field("urlVerified", flag, False),
    Field("createdBy", text),
)
LONGEST_NAME = 200
WITH_SECRET = ("BASIC", "HMAC_BASED", "SIGNATURE_BASED", "SLACK_BASED", "STRIPE")


def read_webhook(document: dict[str, Any], *, has_secret: bool = False) -> tuple[dict[str, Any], list[Complaint]]:
    """The definition with every field as its type, and everything that is wrong with it.

    `has_secret`: one is kept already, and stays where none is given.
    """
    place = Place()
    read = read_document(document, WEBHOOK, place)
    if not (read.get("name") or "").strip():
        place.at("name").miss("Missing webhook name", document.get("name"))
    elif len(read["name"]) > LONGEST_NAME:
        place.at("name").complain(f"name must have at most {LONGEST_NAME} characters", read["name"])
    verifier = read.get("verifier")
    if not verifier:
        place.at("verifier").miss("Missing verifier: it says how the sender proves who it is")
    elif verifier in WITH_SECRET and not (has_secret or read.get("secretValue")):
        place.at("secretValue").miss(f"Missing secretValue: {verifier} is verified by it")
    elif verifier == "HEADER_BASED" and not (has_secret or any(read["headers"].values())):
        place.at("headers").miss("Missing headers: at least one must have a value that only the sender knows")
    if verifier in ("HMAC_BASED", "SIGNATURE_BASED") and not read.get("headerKey"):
        place.at("headerKey").miss("Missing headerKey: the name of the header that holds the signature")
    return read, place.complaints
