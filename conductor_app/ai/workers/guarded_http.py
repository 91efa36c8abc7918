"""HTTP clients for libraries that use httpx: they connect only to addresses that the network guard permits.

They use no proxies of the environment, follow no redirects, and limit the size of a reply. This module is imported at
the first AI task, because the libraries take time and memory.
"""

import socket
import ssl
from collections.abc import AsyncIterator, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import anyio
import anyio.to_thread
import httpcore2
import httpx2

from ...settings import conf
from ...system_tasks.network_guard import MAX_ADDRESSES, AddressRefused, Guard, configured_guard, require_refusal
from . import messages
from .messages import connection_failure, status_failure

CONNECT_SECONDS = 60.0
CONNECTION_ERRORS = (
    httpx2.TransportError | httpx2.DecodingError | httpx2.StreamError | AddressRefused | OSError | ValueError
)
FAILURES = (httpcore2.ConnectError, httpcore2.ConnectTimeout)
"""After these errors of one address, the next one is tried."""
COMPRESSED = "the reply is compressed although the request asks for no compression"


class ReplyTooLarge(httpx2.ReadError):
    """The reply exceeds the size limit."""


def guarded_client(seconds: float) -> httpx2.Client:
    """Return a client for one call. `seconds`: the maximum time between two bytes of the reply."""
    require_effective_guard()
    return httpx2.Client(transport=GuardedTransport(configured_guard()), **_options(seconds))


def guarded_async_client(seconds: float, headers: dict[str, str] | None = None) -> httpx2.AsyncClient:
    """Return an asynchronous client for one call."""
    require_effective_guard()
    transport = AsyncGuardedTransport(configured_guard())
    return httpx2.AsyncClient(transport=transport, headers=headers, **_options(seconds))


def _options(seconds: float) -> dict[str, Any]:
    timeout = httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
    return {"timeout": timeout, "trust_env": False, "follow_redirects": False}


@cache
def require_effective_guard() -> None:
    """Check once per process that httpx2 and httpcore2 ask the guard before they connect."""
    for send in (_send_probe, lambda address: anyio.run(_send_async_probe, address)):
        # The caller may run in an event loop, in which no other can be started.
        with ThreadPoolExecutor(1) as executor:
            executor.submit(require_refusal, send, "httpx2", "httpcore2").result()


def _send_probe(address: str) -> None:
    with httpx2.Client(transport=GuardedTransport(Guard(tuple)), **_options(1)) as client:
        client.get(address)


async def _send_async_probe(address: str) -> None:
    async with httpx2.AsyncClient(transport=AsyncGuardedTransport(Guard(tuple)), **_options(1)) as client:
        await client.get(address)


class GuardedTransport(httpx2.HTTPTransport):
    """The connections of one call, to permitted addresses. The size of a body is limited."""

    def __init__(self, guard: Guard) -> None:
        super().__init__(verify=tls_context())
        self._pool = httpcore2.ConnectionPool(ssl_context=tls_context(), network_backend=GuardedBackend(guard))

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return its response, whose body is read later."""
        response = super().handle_request(request_identity(request))
        if is_compressed(response):
            response.close()
            raise httpx2.DecodingError(COMPRESSED)
        response.stream = LimitedBody(response.stream)  # type: ignore[arg-type]  # as a synchronous transport sets it
        return response


class AsyncGuardedTransport(httpx2.AsyncHTTPTransport):
    """The connections of one asynchronous call, to permitted addresses. The size of a body is limited."""

    def __init__(self, guard: Guard) -> None:
        super().__init__(verify=tls_context())
        backend = AsyncGuardedBackend(guard)
        self._pool = httpcore2.AsyncConnectionPool(ssl_context=tls_context(), network_backend=backend)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return its response, whose body is read later."""
        response = await super().handle_async_request(request_identity(request))
        if is_compressed(response):
            await response.aclose()
            raise httpx2.DecodingError(COMPRESSED)
        response.stream = AsyncLimitedBody(response.stream)  # type: ignore[arg-type]  # likewise
        return response


class LimitedBody(httpx2.SyncByteStream):
    """The body of a response, up to the size limit."""

    def __init__(self, body: httpx2.SyncByteStream) -> None:
        self._body, self._size = body, 0

    def __iter__(self) -> Iterator[bytes]:
        for part in self._body:
            self._size += len(part)
            require_size(self._size)
            yield part

    def close(self) -> None:
        """Release the connection."""
        self._body.close()


class AsyncLimitedBody(httpx2.AsyncByteStream):
    """The body of a response, up to the size limit."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body, self._size = body, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._body:
            self._size += len(part)
            require_size(self._size)
            yield part

    async def aclose(self) -> None:
        """Release the connection."""
        await self._body.aclose()


class GuardedBackend(httpcore2.NetworkBackend):
    """Opens sockets to permitted addresses, and lets the deadline of the call close them."""

    def __init__(self, guard: Guard) -> None:
        self._guard, self._sockets = guard, httpcore2.SyncBackend()

    def connect_tcp(self, host: str, port: int, *args: Any, **options: Any) -> httpcore2.NetworkStream:
        """Return a connection to the first permitted address that accepts it."""

        def connect(address: str) -> httpcore2.NetworkStream:
            return self._sockets.connect_tcp(address, port, *args, **options)

        with unresolved_as_connect_error():
            return self._guard.connect(host, port, connect, _socket_of, FAILURES)


def _socket_of(stream: httpcore2.NetworkStream) -> socket.socket:
    found: socket.socket = stream.get_extra_info("socket")
    return found


class AsyncGuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens sockets to permitted addresses."""

    def __init__(self, guard: Guard) -> None:
        self._guard, self._sockets = guard, httpcore2.AnyIOBackend()

    async def connect_tcp(self, host: str, port: int, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        """Return a connection to the first permitted address that accepts it."""
        failure: Exception = httpcore2.ConnectError(f"{host} has no address")
        with unresolved_as_connect_error():
            addresses = await anyio.to_thread.run_sync(self._guard.permitted_addresses, host, port)
        for address in addresses[:MAX_ADDRESSES]:
            try:
                stream = await self._sockets.connect_tcp(address, port, *args, **options)
            except FAILURES as error:
                failure = error
                continue
            peer = str(stream.get_extra_info("server_addr")[0])
            if not self._guard.permits(peer):
                await stream.aclose()
                raise AddressRefused(peer)
            return stream
        raise failure

    async def sleep(self, seconds: float) -> None:
        """Wait between two tries of a connection."""
        await anyio.sleep(seconds)


@contextmanager
def unresolved_as_connect_error() -> Generator[None]:
    """Raise the error of the transport for a name that cannot be resolved."""
    try:
        yield
    except (OSError, UnicodeError):
        raise httpcore2.ConnectError("the host's name cannot be resolved") from None


def request_identity(request: httpx2.Request) -> httpx2.Request:
    """Ask for a reply that is not compressed, because it could grow beyond the size limit when it is decompressed."""
    request.headers["accept-encoding"] = "identity"
    return request


def is_compressed(response: httpx2.Response) -> bool:
    """Return True if the body is compressed although the request does not permit it."""
    return any(each.strip().lower() != "identity" for each in response.headers.get_list("content-encoding"))


def require_size(size: int) -> None:
    """Check the size of a body."""
    if size > messages.MAX_REPLY_BYTES:
        raise ReplyTooLarge(f"the reply is larger than {messages.MAX_REPLY_BYTES} bytes")


@cache
def tls_context() -> ssl.SSLContext:
    """Return the TLS settings, with the certification authorities of the system's Python packages."""
    return httpx2.create_ssl_context(trust_env=False)


class library_errors:
    """Raises the errors of a provider's client library as CallFailed.

    `library`: the module, which has the classes APIError and APIStatusError.
    """

    def __init__(self, library: Any, provider: str) -> None:
        self._library, self._provider = library, provider

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, self._library.APIStatusError):
            raise status_failure(self._provider, error.status_code, error.response.headers, error.body) from error
        if isinstance(error, self._library.APIError | CONNECTION_ERRORS):
            raise connection_failure(self._provider, error, conf.ai_task_seconds) from error
