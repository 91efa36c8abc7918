"""Validation of webhooks (api §2.1)."""

from typing import Any

from ...errors import ValidationError
from .document_fields import FieldSpec, FieldTable, read_document
from .values import ChoiceOf, DocumentPosition, IntegerOf, MapOf, read_any, read_boolean, read_name, read_text

WEBHOOK: FieldTable = (
    FieldSpec("id", read_name),
    FieldSpec("name", read_name),
    FieldSpec("sourcePlatform", read_text),
    FieldSpec("verifier", ChoiceOf("HEADER_BASED", "BASIC", "HMAC_BASED", "SIGNATURE_BASED", "SLACK_BASED", "STRIPE")),
    FieldSpec("headers", MapOf(read_text), dict),
    FieldSpec("headerKey", read_text),
    FieldSpec("timestampHeaderKey", read_text),
    FieldSpec("secretKey", read_text),
    FieldSpec("secretValue", read_text),
    FieldSpec("workflowsToStart", MapOf(read_any), dict),
    FieldSpec("receiverWorkflowNamesToVersions", MapOf(IntegerOf()), dict),
    FieldSpec("urlVerified", read_boolean, False),
    FieldSpec("createdBy", read_text),
)
MAX_NAME_LENGTH = 200
SECRET_VERIFIERS = ("BASIC", "HMAC_BASED", "SIGNATURE_BASED", "SLACK_BASED", "STRIPE")


def read_webhook(document: dict[str, Any], *, has_secret: bool = False) -> tuple[dict[str, Any], list[ValidationError]]:
    """Return the definition with converted fields, and all validation errors.

    `has_secret`: a stored secret exists and is kept if the definition has none.
    """
    place = DocumentPosition()
    read = read_document(document, WEBHOOK, place)
    if not (read.get("name") or "").strip():
        place.at("name").add_missing("Missing webhook name", document.get("name"))
    elif len(read["name"]) > MAX_NAME_LENGTH:
        place.at("name").add_error(f"name must have at most {MAX_NAME_LENGTH} characters", read["name"])
    verifier = read.get("verifier")
    if not verifier:
        place.at("verifier").add_missing("Missing verifier: it says how the sender proves who it is")
    elif verifier in SECRET_VERIFIERS and not (has_secret or read.get("secretValue")):
        place.at("secretValue").add_missing(f"Missing secretValue: {verifier} is verified by it")
    elif verifier == "HEADER_BASED" and not (has_secret or any(read["headers"].values())):
        place.at("headers").add_missing("Missing headers: at least one must have a value that only the sender knows")
    if verifier in ("HMAC_BASED", "SIGNATURE_BASED") and not read.get("headerKey"):
        place.at("headerKey").add_missing("Missing headerKey: the name of the header with the signature")
    return read, place.validation_errors
