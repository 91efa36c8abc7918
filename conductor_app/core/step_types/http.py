"""HTTP: sends an HTTP request."""

from .built_in import RESPONSE, BuiltIn


class HttpStep(BuiltIn):
    """Executed by a built-in worker."""

    type = "HTTP"
    icon = "http"
    required_inputs = ("http_request", "uri", "method")
    output_members = {"response": RESPONSE}
