"""HTTP_POLL: repeats an HTTP request until its response meets a condition."""

from .built_in import RESPONSE, BuiltIn


class HttpPollStep(BuiltIn):
    """Executed by a built-in worker."""

    type = "HTTP_POLL"
    icon = "http"
    required_inputs = ("http_request", "uri", "method")
    output_members = {"response": RESPONSE}
