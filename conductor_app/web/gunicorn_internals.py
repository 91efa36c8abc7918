"""Access to private parts of Gunicorn, for the web process only.

A contract test (`tests/web/test_gunicorn_internals.py`) checks their behavior. If the installed version lacks some of
them, `worker_class` selects Gunicorn's own threaded worker. Only that worker is imported with this module, so that a
version that lacks anything else can still start.

`ConnectionCounts` has the number of open connections of each web process.
"""

import inspect
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from functools import cache, partial
from http import HTTPStatus
from importlib import import_module
from importlib.metadata import version
from selectors import EVENT_READ
from socket import socket
from threading import local
from time import monotonic, sleep
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from .request_framing import SINGLE_VALUED, ContradictoryHeader, SingleValues
from .waiting_requests import ACCEPTS_WAITING_KEY, ClientConnection, FinishedResponse, WaitingConnection

PROCESSES = 64
CURRENT_SECONDS = 5
"""A process writes its count at least once per second. The count of one that has ended is ignored after this time."""

SLOT = struct.Struct("=qd")


class ConnectionCounts:
    """The number of connections of each process. A process is a whole number, its age.

    Create the object before the processes are forked. Each writes only its own slot, so that no lock is needed.
    """

    def __init__(self) -> None:
        self._slots = mmap.mmap(-1, PROCESSES * SLOT.size)

    def set(self, process: int, count: int, now: float) -> None:
        """Store the count of a process. `now`: monotonic seconds, which are the same in all processes of a machine."""
        SLOT.pack_into(self._slots, process % PROCESSES * SLOT.size, count, now)

    def is_more(self, process: int, count: int, now: float) -> bool:
        """Return True if another process has fewer connections than this one."""
        own = process % PROCESSES
        return any(
            other < count and index != own
            for index, (other, written_at) in enumerate(SLOT.iter_unpack(self._slots[:]))
            if now - written_at < CURRENT_SECONDS and written_at
        )


TESTED_VERSIONS = "~=27.0"
OWN_WORKER, PLAIN_WORKER = "conductor_app.web.gunicorn_worker.KeepAliveThreadWorker", "gthread"

GTHREAD, HTTP = "gunicorn.workers.gthread:", "gunicorn.http."
WORKER_PARAMETERS: dict[str, str] = {
    f"{GTHREAD}ThreadWorker.accept": "self listener",
    f"{GTHREAD}ThreadWorker.enqueue_req": "self conn",
    f"{GTHREAD}ThreadWorker.finish_request": "self conn fs",
    f"{GTHREAD}ThreadWorker.handle": "self conn",
    f"{GTHREAD}ThreadWorker.handle_error": "self req client addr exc",
    f"{GTHREAD}ThreadWorker.handle_request": "self req conn",
    f"{GTHREAD}ThreadWorker.murder_pending": "self",
    f"{GTHREAD}ThreadWorker.wait_for_and_dispatch_events": "self timeout",
    f"{GTHREAD}ThreadWorker._keepalive_after": "self conn keepalive",
    f"{GTHREAD}PollableMethodQueue.defer": "self callback args",
    f"{GTHREAD}TConn.init": "self",
    f"{GTHREAD}TConn.close": "self graceful",
    f"{HTTP}parser:RequestParser.finish_body": "self deadline max_bytes",
    f"{HTTP}unreader:SocketUnreader.__init__": "self sock max_chunk",
    f"{HTTP}unreader:SocketUnreader.chunk": "self size_hint",
    f"{HTTP}unreader:SocketUnreader.take_buffered": "self",
    f"{HTTP}unreader:SocketUnreader.unread": "self data",
    f"{HTTP}wsgi:Response.start_response": "self status headers exc_info",
    f"{HTTP}wsgi:Response.write": "self arg",
    f"{HTTP}wsgi:Response.close": "self",
    f"{HTTP}wsgi:Response.force_close": "self",
    f"{HTTP}wsgi:Response.should_close": "self",
    "gunicorn.glogging:Logger.access": "self resp req environ request_time",
}
"""The parameters of each function that the worker of this server calls or overrides."""
WORKER_NAMES: dict[str, str] = {
    "gunicorn.workers.base:Worker.__init__": "age",
    f"{GTHREAD}ThreadWorker.__init__": "method_queue nr_conns pending_conns poller tpool",
    f"{GTHREAD}ThreadWorker.run": "alive nr_conns murder_pending wait_for_and_dispatch_events",
    f"{GTHREAD}ThreadWorker.accept": "TConn enqueue_req nr_conns",
    f"{GTHREAD}ThreadWorker.murder_pending": "close nr_conns pending_conns poller sock timeout unregister",
    f"{GTHREAD}ThreadWorker.wait_for_and_dispatch_events": "data fileobj poller select",
    f"{GTHREAD}ThreadWorker.handle": "_keepalive_after handle_error handle_request init parser",
    f"{GTHREAD}ThreadWorker.handle_request": "alive start_response wsgi",
    f"{GTHREAD}TConn.__init__": "initialized parser sock timeout",
    f"{HTTP}parser:RequestParser.__init__": "unreader",
    f"{HTTP}wsgi:Response.__init__": "_omits_body headers headers_sent req response_length sent sock",
    f"{HTTP}wsgi:Response.send_headers": "default_headers headers headers_sent sock",
    f"{HTTP}wsgi:create": "Response",
}
"""The attributes that each function sets or uses."""
HEADER_PARAMETERS: dict[str, str] = {
    f"{HTTP}message:Request._apply_header_policy": (
        "self name value scheme_state seen secure_scheme_headers forwarder_headers from_trailer"
    ),
}
HEADER_NAMES: dict[str, str] = {f"{HTTP}parser:RequestParser.__next__": "mesg_class unreader"}
"""What the parser needs so that clients may repeat a header with an equal value. Both workers use it."""
STATUS_BY_ERROR: dict[str, HTTPStatus] = {
    "LimitRequestLine": HTTPStatus.REQUEST_URI_TOO_LONG,
    "LimitRequestHeaders": HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "ExpectationFailed": HTTPStatus.EXPECTATION_FAILED,
    "UnsupportedTransferCoding": HTTPStatus.NOT_IMPLEMENTED,
    "ForbiddenProxyRequest": HTTPStatus.FORBIDDEN,
    # The application is at fault, not the client.
    "InvalidResponseHeader": HTTPStatus.INTERNAL_SERVER_ERROR,
    "InvalidResponseHeaderName": HTTPStatus.INTERNAL_SERVER_ERROR,
    "ParseException": HTTPStatus.BAD_REQUEST,
}
"""The status of each error of the parser. The first class in the method resolution order that has an entry applies."""


def worker_class() -> str:
    """Return the worker of this server, or Gunicorn's own if the installed version does not support it."""
    return PLAIN_WORKER if unsupported_worker_parts() else OWN_WORKER


def describe_fallback(max_waiting_threads: int, max_waiting_polls: int) -> str | None:
    """Return what does not work with the installed version of Gunicorn, or None if everything does."""
    losses = []
    if worker_parts := unsupported_worker_parts():
        losses.append(
            "Gunicorn's own worker serves: each waiting request holds a thread, so that at most "
            f"{max_waiting_threads} instead of {max_waiting_polls} may wait in a web process; slow clients hold "
            "threads; and requests that Gunicorn refuses are answered in HTML"
        )
    if header_parts := unsupported_header_parts():
        losses.append("requests that repeat a header, as those of the Go SDK do, are refused")
    if not losses:
        return None
    return (
        f"Gunicorn {version('gunicorn')} differs from the versions that this server is tested with "
        f"({', '.join([*worker_parts, *header_parts])}). {'; '.join(losses)}. Install gunicorn{TESTED_VERSIONS}."
    )


@cache
def unsupported_worker_parts() -> list[str]:
    """Return the private parts of Gunicorn that the worker uses and that the installed version lacks."""
    return list(_missing_parts(WORKER_PARAMETERS, WORKER_NAMES))


@cache
def unsupported_header_parts() -> list[str]:
    """Return the private parts of Gunicorn that repeated headers need and that the installed version lacks."""
    return list(_missing_parts(HEADER_PARAMETERS, HEADER_NAMES))


def _missing_parts(parameters: dict[str, str], names: dict[str, str]) -> Iterator[str]:
    for path, expected in parameters.items():
        function = _find(path)
        if not inspect.isfunction(function) or [*inspect.signature(function).parameters] != expected.split():
            yield path.replace(":", ".")
    for path, expected in names.items():
        function = _find(path)
        used = function.__code__.co_names if inspect.isfunction(function) else ()
        yield from (f"{path.replace(':', '.')}: {name}" for name in expected.split() if name not in used)


def _find(path: str) -> Any:
    """Return the object at a path such as `module:Class.function`, or None."""
    module, _, names = path.partition(":")
    try:
        found: Any = import_module(module)
    except ImportError:
        return None
    for name in names.split("."):
        found = getattr(found, name, None)
    return found


ACCEPT_SECONDS = 0.001
"""How long a process that has more connections than another one leaves a new connection to the others."""
IO_SECONDS = 30
"""The time that a thread waits for a client that neither sends nor receives."""
JOINED_BYTES = 256 * 1024
"""The maximum size of a body that is copied behind its head, in bytes."""


class ClientSocket(socket):
    """The socket of a client, which makes fewer system calls than Python's: around each, threads switch.

    It has a timeout all the time, so that the file descriptor never blocks. A read or a write that need not wait is
    one system call. Gunicorn makes a socket blocking before each request and not blocking after it.
    """

    @classmethod
    def adopt(cls, sock: socket) -> "ClientSocket":
        """Return the socket in place of another one, which is not usable any more."""
        adopted = cls(sock.family, sock.type, sock.proto, fileno=sock.detach())
        adopted.setblocking(True)
        return adopted

    def setblocking(self, flag: bool) -> None:
        """Let operations wait for up to IO_SECONDS, or not at all."""
        self.settimeout(IO_SECONDS if flag else 0.0)

    def settimeout(self, value: float | None) -> None:
        """Set the timeout in seconds."""
        if value != self.gettimeout():
            super().settimeout(value)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send all bytes, and wait only if the client does not read them."""
        try:
            sent = 0 if flags else os.write(self.fileno(), data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            super().sendall(memoryview(data)[sent:], flags)


class RequestWaits(BaseException):
    """Leaves Gunicorn's handling of a request that waits."""

    def __init__(self, connection: WaitingConnection) -> None:
        super().__init__()
        self.connection = connection


class AdaptedWorker(ThreadWorker):
    """Gunicorn's threaded worker with extension points that have names of this server.

    The main thread accepts connections and waits for events; threads handle requests. The attribute `sock` of a
    connection is its socket. With TLS in this process, Gunicorn receives requests.
    """

    counts = ConnectionCounts()
    """Shared by the web processes: they are forked after this class has been imported."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._handling = local()
        join_heads_and_bodies()

    # What a subclass implements.

    def accept_connection(self, conn: ClientConnection) -> None:
        """Handle a connection that is new or may have sent a request. Runs in the main thread."""
        raise NotImplementedError

    def handle_connection(self, conn: ClientConnection) -> Any:
        """Handle the requests of a connection. Runs in a thread, with TLS only."""
        raise NotImplementedError

    def handle_parsed(self, conn: ClientConnection, handle: Callable[[], bool]) -> bool:
        """Call `handle`, which handles the parsed request. Returns True if the connection can be reused."""
        raise NotImplementedError

    def refuse(self, sock: socket, address: Any, status: HTTPStatus | None, error: Exception, received: bytes) -> None:
        """Reply to a request that failed. `status`: None for an unknown error. `received`: its first bytes."""
        raise NotImplementedError

    def finish_connection(self, conn: ClientConnection, result: Any) -> bool:
        """Decide about a connection, given the result of its thread. Returns False if Gunicorn decides."""
        raise NotImplementedError

    def limit_sleep(self, seconds: float) -> float:
        """Return how long the main thread may sleep, at most `seconds`."""
        raise NotImplementedError

    def continue_due(self) -> None:
        """Continue the requests whose wait has ended. Runs in the main thread after each sleep."""
        raise NotImplementedError

    # What a subclass calls.

    @property
    def is_stopping(self) -> bool:
        """Return True after a stop signal."""
        return not self.alive

    @property
    def connection_count(self) -> int:
        """Return the number of open connections."""
        return self.nr_conns

    @property
    def thread_pool(self) -> ThreadPoolExecutor:
        """Return the threads that handle requests."""
        return self.tpool

    def call_in_main_thread(self, function: Callable[..., None], *args: object) -> None:
        """Call a function in the main thread, which wakes up for it."""
        self.method_queue.defer(function, *args)

    def finish_in_main_thread(self, conn: ClientConnection, future: "Future[Any]") -> None:
        """Call `finish_connection` in the main thread when the thread of a connection has ended."""
        self.call_in_main_thread(self.finish_request, conn, future)

    def watch(self, sock: socket, on_readable: Callable[[socket], None]) -> None:
        """Call `on_readable` with the socket in the main thread while it is readable."""
        self.poller.register(sock, EVENT_READ, on_readable)

    def stop_watching(self, sock: socket) -> None:
        """End what `watch` began."""
        self.poller.unregister(sock)

    def begin_wait(
        self, conn: ClientConnection, deadline: float, on_readable: Callable[[ClientConnection], None]
    ) -> None:
        """Watch a connection, and close it at the deadline. Call it in the main thread."""
        conn.timeout = deadline
        self.pending_conns.append(conn)
        self.watch(conn.sock, lambda _: on_readable(conn))

    def end_wait(self, conn: ClientConnection) -> None:
        """End what `begin_wait` began. Call it in the main thread."""
        self.stop_watching(conn.sock)
        self.pending_conns.remove(conn)

    def release(self, conn: ClientConnection) -> None:
        """Close a connection. Call it in the main thread."""
        self.nr_conns -= 1
        conn.close()

    def take_buffered(self, conn: ClientConnection) -> bytes:
        """Return the bytes of the next request that came with the previous one."""
        buffered: bytes = b"" if conn.parser is None else conn.parser.unreader.take_buffered()
        return buffered

    def handle_received(self, conn: ClientConnection, received: bytes, require_speed: Callable[[int], None]) -> Any:
        """Parse and handle the request that begins with these bytes. Returns True, False, or the request if it waits.

        `require_speed`: is called before each read with the number of bytes read so far, and raises TimeoutError.
        """
        if not conn.initialized:
            conn.init()
            conn.parser.unreader = _bounded_unreader()(conn.sock)
        self._handling.received = received
        conn.parser.unreader.start_request(require_speed)
        conn.parser.unreader.unread(received)
        return super().handle(conn)

    def discard_rest(self, conn: ClientConnection, deadline: float, max_bytes: int) -> bool:
        """Discard what was not read of a request. Returns False if a limit ends that."""
        is_complete: bool = conn.parser.finish_body(deadline, max_bytes)
        return is_complete

    def send_response(self, connection: WaitingConnection, response: FinishedResponse, closes: bool) -> bool:
        """Send and log the response to a request that has waited. Returns True to keep the connection."""
        writer = connection.response
        if closes:
            writer.force_close()
        try:
            writer.start_response(f"{response.status_code} {response.reason_phrase}", list(response.items()))
            for chunk in response:
                writer.write(chunk)
            writer.close()
        finally:
            self.log.access(writer, writer.req, connection.environ, datetime.now() - connection.began_at)
        return not writer.should_close()

    # What Gunicorn calls.

    @property
    def wsgi(self) -> Callable[..., Any]:
        """Return the application, whose request may wait."""
        return self._call_application

    @wsgi.setter
    def wsgi(self, application: Callable[..., Any]) -> None:
        self._application = application

    def _call_application(self, environ: dict[str, Any], start_response: Any) -> Any:
        conn = getattr(self._handling, "conn", None)
        if conn is None:
            return self._application(environ, start_response)
        environ[ACCEPTS_WAITING_KEY] = True
        head: list[Any] = []
        # The head of a request that waits is known later. Django calls the function before it returns.
        response = self._application(environ, lambda *arguments: head.append(arguments))
        if hasattr(response, "begin_wait"):
            raise RequestWaits(WaitingConnection(response, conn, start_response.__self__, environ))
        if head:
            start_response(*head[0])
        return response

    def accept(self, listener: Any) -> None:
        """Accept a connection, unless a process that has fewer takes it first.

        Connections of workers stay open for hours. Without this, an idle process takes nearly all of them.
        """
        if self.counts.is_more(self.age, self.nr_conns, monotonic()):
            sleep(ACCEPT_SECONDS)
        super().accept(listener)

    def enqueue_req(self, conn: ClientConnection) -> None:
        if self.cfg.is_ssl:
            super().enqueue_req(conn)
            return
        if not isinstance(conn.sock, ClientSocket):
            conn.sock = ClientSocket.adopt(conn.sock)
        self.accept_connection(conn)

    def handle(self, conn: ClientConnection) -> Any:
        return self.handle_connection(conn)

    def handle_with_tls(self, conn: ClientConnection) -> Any:
        """Receive and handle one request as Gunicorn does. Returns as `handle_received`."""
        return super().handle(conn)

    def handle_request(self, req: Any, conn: ClientConnection) -> Any:
        self._handling.conn = conn
        try:
            return self.handle_parsed(conn, partial(super().handle_request, req, conn))
        except RequestWaits as exception:
            return exception.connection
        finally:
            self._handling.conn = None

    def _keepalive_after(self, conn: ClientConnection, keepalive: Any) -> Any:
        return keepalive if isinstance(keepalive, WaitingConnection) else super()._keepalive_after(conn, keepalive)

    def handle_error(self, req: Any, client: socket, addr: Any, exc: Exception) -> None:
        names = [kind.__name__ for kind in type(exc).__mro__]
        status = next((STATUS_BY_ERROR[name] for name in names if name in STATUS_BY_ERROR), None)
        error = exc.__cause__ if isinstance(exc.__cause__, ContradictoryHeader) else exc
        self.refuse(client, addr, status, error, getattr(self._handling, "received", b""))

    def finish_request(self, conn: ClientConnection, fs: "Future[Any]") -> None:
        """Release a connection, or wait for its next request. Runs in the main thread."""
        if not self.finish_connection(conn, None if fs.cancelled() or fs.exception() is not None else fs.result()):
            super().finish_request(conn, fs)

    def murder_pending(self) -> None:
        # Gunicorn stops at the first connection that is not late. One that sends slowly is registered repeatedly.
        pending = sorted(self.pending_conns, key=lambda conn: conn.timeout)
        self.pending_conns.clear()
        self.pending_conns.extend(pending)
        super().murder_pending()

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        self.counts.set(self.age, self.nr_conns, monotonic())
        super().wait_for_and_dispatch_events(self.limit_sleep(timeout))
        self.continue_due()


class BoundedReads:
    """Mixin for Gunicorn's reader of a socket that checks the speed of the client before each read."""

    def start_request(self, require_speed: Callable[[int], None]) -> None:
        """Begin to count the bytes of a request."""
        self._require_speed, self._received = require_speed, 0

    def chunk(self, size_hint: int | None = None) -> bytes:
        self._require_speed(self._received)
        data: bytes = super().chunk(size_hint)  # type: ignore[misc]
        self._received += len(data)
        return data


@cache
def _bounded_unreader() -> type:
    from gunicorn.http.unreader import SocketUnreader

    return type("BoundedUnreader", (BoundedReads, SocketUnreader), {})


class JoinedWrites:
    """Mixin for Gunicorn's writer of a response, which sends the head and a whole body together."""

    headers: list[tuple[str, str]]
    headers_sent: bool
    response_length: int | None
    sent: int
    sock: socket
    _omits_body: bool
    default_headers: Callable[[], list[str]]

    def write(self, arg: Any) -> None:
        """Write a part of the body, and the head before the first one."""
        is_whole = isinstance(arg, bytes) and len(arg) == self.response_length
        if self.headers_sent or self._omits_body or not is_whole or len(arg) > JOINED_BYTES:
            super().write(arg)  # type: ignore[misc]
            return
        lines = [*self.default_headers(), *(f"{name}: {value}\r\n" for name, value in self.headers), "\r\n"]
        self.sock.sendall("".join(lines).encode("latin-1") + arg)
        self.headers_sent, self.sent = True, len(arg)


def join_heads_and_bodies() -> None:
    """Let this process send the head of a response together with its body."""
    from gunicorn.http import wsgi

    if not issubclass(wsgi.Response, JoinedWrites):
        wsgi.Response = type("ResponseToClient", (JoinedWrites, wsgi.Response), {})


class RepeatableHeaders:
    """Mixin for Gunicorn's request that accepts headers that are repeated with an equal value."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        self._single_values = SingleValues()
        super().__init__(*args, **kwargs)

    def _apply_header_policy(
        self, name: str, value: str, scheme_state: list[bool], seen: set[str], *rest: Any, from_trailer: bool = False
    ) -> Any:
        if name == "USER-AGENT":
            self._single_values.user_agent = value
        if from_trailer or name not in SINGLE_VALUED:
            return super()._apply_header_policy(  # type: ignore[misc]
                name, value, scheme_state, seen, *rest, from_trailer=from_trailer
            )
        # Gunicorn refuses a trailer of the same name.
        seen.add(name)
        try:
            is_first = self._single_values.add(name, value)
        except ContradictoryHeader as error:
            from gunicorn.http.errors import InvalidHeader

            raise InvalidHeader(str(error), req=self) from error
        return (name, value) if is_first else None


def permit_repeated_headers() -> None:
    """Let the parser of this process accept repeated headers, in both workers, if the version supports that."""
    if unsupported_header_parts():
        return
    from gunicorn.http.message import Request
    from gunicorn.http.parser import RequestParser

    if not issubclass(RequestParser.mesg_class, RepeatableHeaders):
        RequestParser.mesg_class = type("RequestOfClient", (RepeatableHeaders, Request), {})
