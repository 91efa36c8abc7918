"""HTTP: sends an HTTP request."""

from .built_in import RESPONSE, BuiltIn


class HttpStep(BuiltIn):
    """Executed by a built-in worker."""

    type = "HTTP"
    required_inputs = ("http_request", "uri", "method")
    output_members = {"response": RESPONSE}
