"""The engine for JSON schemas whose check can take exponential time. The library cannot be interrupted."""

import json
from itertools import islice

import jsonschema_rs
import system_call_filter
from results import answer_document

MAX_DESCRIPTORS = 0
PROGRAM = None
MAX_ERRORS = 50
MAX_LENGTH = 300


def start():
    """Restrict this process. Returns why there is no filter, or an empty text."""
    return system_call_filter.restrict_process(system_call_filter.computing_calls())


def refuse_remote_reference(address):
    raise ValueError("remote references are not supported; a schema can refer only to itself")


def check(order, inputs):
    """Return the violations of a schema as pairs of a path and a message."""
    try:
        validator = jsonschema_rs.validator_for(
            json.loads(order["source"]), retriever=refuse_remote_reference, validate_formats=True, mask="the value"
        )
        errors = list(islice(validator.iter_errors(json.loads(inputs)), MAX_ERRORS))
    except ValueError as fault:
        return answer_document(error=str(fault).partition("\n")[0][:MAX_LENGTH])
    return answer_document([[list(error.instance_path), message_of(error)[:MAX_LENGTH]] for error in errors])


def message_of(error):
    """Return the message of an error. The library names only two values of an enumeration."""
    options = getattr(error.kind, "options", None)
    if options is None:
        return error.message
    return f"the value is not one of {', '.join(json.dumps(option, ensure_ascii=False) for option in options)}"


LANGUAGES = {"json-schema": check}
