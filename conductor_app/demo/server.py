"""Connection to the server."""

from urllib.error import URLError
from urllib.request import urlopen

from conductor.client.configuration.configuration import Configuration
from conductor.client.http.rest import ApiException

HEALTH_SECONDS = 5


class ServerUnavailable(Exception):
    """The server does not respond or refuses the demo."""


def configuration_for(url: str) -> Configuration:
    """Return the configuration of the SDK, which reads CONDUCTOR_AUTH_KEY and CONDUCTOR_AUTH_SECRET itself.

    Failing workers are part of the demo, so their stack traces are not printed. The page of the run shows them.
    """
    configuration = Configuration(server_api_url=f"{url}/api", log_level="CRITICAL")
    configuration.apply_logging_config()
    return configuration


def base_address(url: str) -> str:
    """Return the server's address without a trailing slash or path of the API."""
    return url.rstrip("/").removesuffix("/api").rstrip("/")


def require_server(url: str) -> None:
    """Check that a healthy server responds.

    Raises:
        ServerUnavailable: when none does.
    """
    try:
        with urlopen(f"{url}/health", timeout=HEALTH_SECONDS):
            return
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise ServerUnavailable(
            f"No server responds at {url} ({reason}). Start one with `make run` in another terminal, or set "
            "URL=http://host:port to use another one."
        ) from error


def admin_page(url: str, run_id: str) -> str:
    """Return the address of the page of a run."""
    return f"{url}/admin/conductor/run/{run_id}/change/"


def explain_refusal(error: ApiException, url: str) -> str:
    """Return an error message with the reason of a refusal and advice."""
    if error.status in (401, 403):
        return (
            f"The server at {url} requires an access key. Set CONDUCTOR_AUTH_KEY and CONDUCTOR_AUTH_SECRET. "
            "`manage.py create_access_key demo` creates them."
        )
    if not error.status:
        return f"The connection to the server at {url} failed: {error.reason}"
    return f"The server at {url} responded with {error.status}: {error.body or error.reason}"
