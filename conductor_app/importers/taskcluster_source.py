"""The lists of a Taskcluster deployment, read with the official client."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from .http_source import AccessDenied, NotOffered, SourceError

MAX_PAGES = 10_000
PAGE_SIZE = 1_000
MISSING_PACKAGE = (
    "The official client of Taskcluster is not installed. Install it with `pip install 'conductor-app[taskcluster]'`."
)


class TaskclusterSource:
    """A deployment. Its methods only read."""

    def __init__(self, root_url: str, credentials: Mapping[str, str], retries: int = 5) -> None:
        """Prepare the client. Nothing is sent.

        Raises:
            SourceError: when the address is invalid, or the client is not installed.
        """
        try:
            import taskcluster
        except ImportError:
            raise SourceError(MISSING_PACKAGE) from None
        self.url = root_address(root_url)
        self._failure = taskcluster.exceptions.TaskclusterFailure
        options = {"rootUrl": self.url, "maxRetries": retries}
        options |= {"credentials": dict(credentials)} if credentials else {}
        self._auth, self._queue = taskcluster.Auth(options), taskcluster.Queue(options)

    def roles(self) -> Iterator[dict[str, Any]]:
        """Yield all roles.

        Raises:
            SourceError: when they cannot be read.
        """
        return self._pages(self._auth.listRoles2, "roles", "auth:list-roles")

    def clients(self, prefix: str = "") -> Iterator[dict[str, Any]]:
        """Yield the clients whose ids begin with a prefix.

        Raises:
            SourceError: when they cannot be read.
        """
        query = {"prefix": prefix} if prefix else {}
        return self._pages(self._auth.listClients, "clients", "auth:list-clients", **query)

    def queue_names(self) -> list[str]:
        """Return the names of the task queues that are in use.

        Raises:
            SourceError: when they cannot be read.
        """
        pages = self._pages(self._queue.listTaskQueues, "taskQueues", "queue:list-task-queues")
        return sorted({name for each in pages if isinstance(name := each.get("taskQueueId"), str)})

    def _pages(self, call: Callable[..., Any], part: str, scope: str, **query: str) -> Iterator[dict[str, Any]]:
        token, seen = "", set[str]()
        for _ in range(MAX_PAGES):
            page = self._read_page(
                call, scope, {"limit": str(PAGE_SIZE), **query, **({"continuationToken": token} if token else {})}
            )
            found = page.get(part) if isinstance(page, dict) else None
            if not isinstance(found, list):
                raise SourceError(f"{self.url} does not answer as Taskcluster does: its reply has no list {part!r}.")
            yield from (each for each in found if isinstance(each, dict))
            token = str(page.get("continuationToken") or "")
            if not token:
                return
            if token in seen:
                raise SourceError(f"{self.url} repeats a page of {part}.")
            seen.add(token)
        raise SourceError(f"{self.url} has more than {MAX_PAGES:,} pages of {part}.")

    def _read_page(self, call: Callable[..., Any], scope: str, query: dict[str, str]) -> Any:
        try:
            return call(query=query)
        except self._failure as error:
            status = getattr(error, "status_code", None)
            first = str(error).strip().partition("\n")[0][:300]
            if status in (401, 403):
                raise AccessDenied(
                    f"{self.url} refuses the credentials, which need the scope {scope}. {first}"
                ) from None
            if status in (404, 405):
                raise NotOffered(f"{self.url} is not a Taskcluster deployment (status {status}).") from None
            raise SourceError(f"{self.url} cannot be read: {first}") from None
        except (ValueError, OSError) as error:
            raise SourceError(f"{self.url} cannot be read: {error!s:.300}") from None


def root_address(url: str) -> str:
    """Return the root URL of a deployment.

    Raises:
        SourceError: when it is not an address of HTTP without a path.
    """
    try:
        parts = urlsplit(url.strip().rstrip("/"))
        host = parts.hostname
    except ValueError as error:
        raise SourceError(f"The address {url!r} is invalid: {error}.") from None
    if parts.scheme not in ("http", "https") or not host or parts.path or parts.query or parts.username:
        raise SourceError(f"The address must be a root URL such as https://tc.example.com (got {url!r}).")
    return f"{parts.scheme}://{parts.netloc}"
