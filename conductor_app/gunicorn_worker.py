"""Gunicorn's threaded worker, adapted to clients that poll continuously and to clients that send slowly.

A thread handles a request only after the request has been received completely, so that slow clients occupy none.
Afterwards, the thread waits briefly for the next request of the same connection. A request that waits, such as a long
poll, occupies no thread either.
"""

import os
import select
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from http import HTTPStatus
from selectors import EVENT_READ
from socket import SHUT_WR
from threading import Lock, local
from time import monotonic
from typing import Any

from gunicorn.http import errors
from gunicorn.http.unreader import SocketUnreader
from gunicorn.util import write_nonblock
from gunicorn.workers.gthread import TConn, ThreadWorker

from .api.disconnect_check import is_connection_closed
from .api.refused_requests import refusal
from .parked_requests import ParkedRequest, ParkedRequests, ParkedWait
from .parking import PARKING_KEY, FinishedResponse
from .repeated_headers import RequestOfClient
from .request_framing import BUFFER_BYTES, RequestState, is_probe, request_state, request_target

LINGER_MS = 50
"""The time that a thread waits for the next request of its connection, in milliseconds.

After a report, a worker sends the next request within milliseconds. Passing its connection to the main thread and on to
another thread would cost two switches, each of which waits for the interpreter lock.
"""
SKIPPED_BYTES, SKIP_SECONDS = 32 << 20, 5
"""The limits for reading and discarding the rest of a request: bytes and seconds."""

REQUEST_SECONDS = 20
"""The time in which a request up to `BUFFER_BYTES` must arrive, and in which a new connection must send one."""

BODY_SECONDS, BODY_BYTES_PER_SECOND = 20, 16 * 1024
"""A larger body must arrive in the first time plus the time that it takes at this rate."""

IO_SECONDS = 30
"""The time that a thread waits for a client that neither sends nor receives."""

CLOSING_SECONDS, CLOSING_BYTES = 2, 64 * 1024
"""After a response that ends its connection, the limits for discarding what the client still sends, until it closes."""

PROBE_THREADS = 2

STATUS_BY_ERROR: dict[type[Exception], HTTPStatus] = {
    errors.LimitRequestLine: HTTPStatus.REQUEST_URI_TOO_LONG,
    errors.LimitRequestHeaders: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    errors.ExpectationFailed: HTTPStatus.EXPECTATION_FAILED,
    errors.UnsupportedTransferCoding: HTTPStatus.NOT_IMPLEMENTED,
    errors.ForbiddenProxyRequest: HTTPStatus.FORBIDDEN,
    # The application is at fault, not the client.
    errors.InvalidResponseHeader: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.InvalidResponseHeaderName: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.ParseException: HTTPStatus.BAD_REQUEST,
}
"""The status of each error. The first class in the method resolution order of the error that has an entry applies."""

PARKED = object()
"""The result of a thread whose request waits. Another thread may be handling the connection already."""


class RequestParked(BaseException):
    """Leaves Gunicorn's handling of a request that waits."""

    def __init__(self, parked: ParkedRequest) -> None:
        super().__init__()
        self.parked = parked


class BoundedBodyUnreader(SocketUnreader):
    """Reads from a socket and raises TimeoutError when the client sends too slowly."""

    def start_request(self) -> None:
        """Start the time limit of a request."""
        self._started_at, self._received = monotonic(), 0

    def chunk(self, size_hint: int | None = None) -> bytes:
        allowed = BODY_SECONDS + self._received / BODY_BYTES_PER_SECOND
        if monotonic() - self._started_at > allowed:
            raise TimeoutError("The client sends the body too slowly.")
        data = super().chunk(size_hint)
        self._received += len(data)
        return data


class BufferedConnection:
    """The received bytes of a connection's next request, and the time by which it must be complete."""

    __slots__ = ("deadline", "received", "state")

    def __init__(self) -> None:
        self.received = bytearray()
        self.deadline = monotonic() + REQUEST_SECONDS
        self.state = RequestState.INCOMPLETE


class KeepAliveThreadWorker(ThreadWorker):
    """Receives requests in the main thread and handles complete ones in threads.

    At most half of the threads wait for a next request, and at most half receive large bodies. Health checks have
    threads of their own. A request that waits is parked: a thread continues it when it is notified or its time ends,
    and the main thread notices when its client disconnects.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._max_waiting, self.waiting_count, self._lock = self.cfg.threads // 2, 0, Lock()
        self._free_large, self._queued_large = max(self.cfg.threads // 2, 1), deque[TConn]()
        self._probe_pool = ThreadPoolExecutor(PROBE_THREADS, thread_name_prefix="probe")
        self._handling = local()
        self._parked = ParkedRequests(interrupt=lambda: self.method_queue.defer(lambda: None))
        self._crowded_from = self.worker_connections * 7 // 8
        self._path_prefix = ""

    def load_wsgi(self) -> None:
        """Load the application, which serves the prefix of paths itself: Gunicorn replies 500 to every other path."""
        super().load_wsgi()
        self._path_prefix = os.environ.pop("SCRIPT_NAME", "").rstrip("/")

    @property
    def wsgi(self) -> Callable[..., Any]:
        """Return the application, which may park its request."""
        return self._call_application

    @wsgi.setter
    def wsgi(self, application: Callable[..., Any]) -> None:
        self._application = application

    def enqueue_req(self, conn: TConn) -> None:
        """Handle a connection in a thread as soon as its request is complete. Runs in the main thread."""
        if self.cfg.is_ssl:
            super().enqueue_req(conn)
        elif not self.receive(conn):
            self._end_close(conn)
        elif conn.buffered.state is RequestState.INCOMPLETE:
            self._wait_for_bytes(conn)
        elif conn.buffered.state is RequestState.LARGE:
            self._start_large(conn)
        elif is_probe(conn.buffered.received):
            self._submit(self._probe_pool, self.handle_single, conn)
        else:
            self._submit(self.tpool, self.handle, conn)

    def receive(self, conn: TConn) -> bool:
        """Receive the available bytes of a request. Returns False if the client has closed the connection."""
        buffered = getattr(conn, "buffered", None)
        if buffered is None:
            buffered = conn.buffered = BufferedConnection()
            if conn.parser is not None:
                # Bytes of this request that came with the previous one.
                buffered.received += conn.parser.unreader.take_buffered()
        buffered.state = request_state(buffered.received)
        conn.sock.setblocking(False)
        while buffered.state is RequestState.INCOMPLETE:
            try:
                data = conn.sock.recv(BUFFER_BYTES)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            buffered.received += data
            buffered.state = request_state(buffered.received)
        return True

    def _wait_for_bytes(self, conn: TConn) -> None:
        conn.timeout = conn.buffered.deadline
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def _submit(self, pool: ThreadPoolExecutor, handle: Any, conn: TConn) -> None:
        future = pool.submit(handle, conn)
        future.add_done_callback(partial(self._finish_later, conn))

    def _finish_later(self, conn: TConn, future: "Future[Any]") -> None:
        if future.cancelled() or future.exception() is not None or future.result() is not PARKED:
            self.method_queue.defer(self.finish_request, conn, future)

    def _start_large(self, conn: TConn) -> None:
        if self._free_large:
            self._free_large -= 1
            self._submit(self.tpool, self.handle_large, conn)
        else:
            self._queued_large.append(conn)

    def finish_request(self, conn: TConn, fs: "Future[Any]") -> None:
        """Release a connection, or wait for its next request. Runs in the main thread."""
        if getattr(conn, "is_large", False):
            conn.is_large = False
            self._free_large += 1
            if self._queued_large:
                self._start_large(self._queued_large.popleft())
        result = None if fs.cancelled() or fs.exception() is not None else fs.result()
        if isinstance(result, BufferedConnection) and self.alive:
            self.enqueue_req(conn)
        elif isinstance(result, ParkedRequest):
            if not self._park(result):
                self._submit(self.tpool, partial(self.resume, result), conn)
        elif result is False:
            self._begin_close(conn)
        else:
            super().finish_request(conn, fs)

    def _begin_close(self, conn: TConn) -> None:
        """Close a connection when its client has done so. Gunicorn would wait for each client in the main thread."""
        try:
            conn.sock.shutdown(SHUT_WR)
            conn.sock.setblocking(False)
        except OSError:
            self._end_close(conn)
            return
        conn.timeout, conn.discarded = monotonic() + CLOSING_SECONDS, 0
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self._on_closing_readable, conn))

    def _on_closing_readable(self, conn: TConn, sock: Any) -> None:
        try:
            data = sock.recv(BUFFER_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        conn.discarded += len(data)
        if not data or conn.discarded > CLOSING_BYTES:
            self.poller.unregister(sock)
            self.pending_conns.remove(conn)
            self._end_close(conn)

    def _end_close(self, conn: TConn) -> None:
        self.nr_conns -= 1
        conn.close()

    def murder_pending(self) -> None:
        """Close the connections whose requests are late. A connection that sends slowly is registered repeatedly."""
        pending = sorted(self.pending_conns, key=lambda conn: conn.timeout)
        self.pending_conns.clear()
        self.pending_conns.extend(pending)
        super().murder_pending()

    def handle(self, conn: TConn) -> Any:
        """Handle the requests of a connection until it is idle.

        Returns True to keep the connection, its buffer if the next request has arrived in part, or PARKED.
        """
        return self._handle_next(conn, self.handle_single(conn))

    def resume(self, parked: ParkedRequest, conn: TConn) -> Any:
        """Continue a parked request, and handle the next requests of its connection. Returns as `handle`."""
        return self._handle_next(conn, self._resume_single(parked))

    def _handle_next(self, conn: TConn, result: Any) -> Any:
        """Handle further requests of a connection, given the result of the last one."""
        keeps_alive = self._park_or_resume(result)
        while keeps_alive is True and self.alive and self.is_readable(conn):
            if not self.cfg.is_ssl:
                if not self.receive(conn):
                    return False
                if conn.buffered.state is not RequestState.COMPLETE:
                    return conn.buffered
            keeps_alive = self._park_or_resume(self.handle_single(conn))
        return keeps_alive

    def _park_or_resume(self, result: Any) -> Any:
        """Park a request that waits. Nothing may use its connection afterwards."""
        while isinstance(result, ParkedRequest):
            if self._park(result):
                return PARKED
            result = self._resume_single(result)
        return result

    def _park(self, parked: ParkedRequest) -> bool:
        """Release a request until its wait ends. Returns False if it has ended already."""
        wait = ParkedWait(parked)
        if not parked.waiting.begin_wait(partial(self._wake, wait)):
            return False
        sock = parked.conn.sock
        self.poller.register(sock, EVENT_READ, partial(self._on_parked_readable, wait))
        if self._parked.open(wait, parked.waiting.seconds):
            return True
        self._stop_watching(wait, sock)
        return False

    def _wake(self, wait: ParkedWait) -> None:
        """Continue a parked request. Runs in any thread."""
        if (parked := self._parked.take(wait)) is not None:
            self._continue_in_thread(wait, parked, self.resume)

    def _continue_in_thread(self, wait: ParkedWait, parked: ParkedRequest, handle: Callable[..., Any]) -> None:
        self._stop_watching(wait, parked.conn.sock)
        # The pool refuses requests after the worker has stopped.
        with suppress(RuntimeError):
            self._submit(self.tpool, partial(handle, parked), parked.conn)

    def _stop_watching(self, wait: ParkedWait, sock: Any) -> None:
        if self._parked.stop_watching(wait):
            self.poller.unregister(sock)

    def _on_parked_readable(self, wait: ParkedWait, sock: Any) -> None:
        """Release a request whose client has disconnected. A client may also have sent its next request already."""
        if not is_connection_closed(sock):
            self._stop_watching(wait, sock)
        elif (parked := self._parked.take(wait)) is not None:
            self._continue_in_thread(wait, parked, self._abandon)

    def _abandon(self, parked: ParkedRequest, conn: TConn) -> bool:
        parked.waiting.abandon()
        return False

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Wait for events, and continue the parked requests whose time has ended. Runs in the main thread."""
        super().wait_for_and_dispatch_events(self._parked.limit_sleep(timeout))
        for wait, parked in self._parked.take_due():
            self._continue_in_thread(wait, parked, self.resume)

    def _resume_single(self, parked: ParkedRequest) -> Any:
        """Continue a parked request. Returns it if it waits again, otherwise True to keep its connection."""
        try:
            response = parked.waiting.resume()
            return parked if response is None else self._send(parked, response)
        except OSError as error:
            self.log.debug("The client has disconnected, or does not read the response. %s", error)
        except Exception:
            self.log.exception("Error in a request that has waited")
        return False

    def _send(self, parked: ParkedRequest, response: FinishedResponse) -> bool:
        """Send the response to a parked request. Returns True to keep its connection."""
        writer = parked.response
        if not self.alive or self.nr_conns >= self._crowded_from:
            writer.force_close()
        try:
            writer.start_response(f"{response.status_code} {response.reason_phrase}", list(response.items()))
            for chunk in response:
                writer.write(chunk)
            writer.close()
        finally:
            self.log.access(writer, parked.request, parked.environ, datetime.now() - parked.began_at)
            parked.waiting.close()
        return not writer.should_close() and self._finish_body(parked.conn)

    def handle_large(self, conn: TConn) -> Any:
        """Handle a request with a large body. Returns the request if it waits."""
        conn.is_large = True
        return self.handle_single(conn)

    def handle_single(self, conn: TConn) -> Any:
        """Handle the request that has been received."""
        if self.cfg.is_ssl:
            return super().handle(conn)
        buffered, conn.buffered = conn.buffered, None
        if not conn.initialized:
            conn.init()
            conn.parser.mesg_class = RequestOfClient
            conn.parser.unreader = BoundedBodyUnreader(conn.sock)
        self._handling.received = buffered.received
        conn.parser.unreader.start_request()
        conn.parser.unreader.unread(bytes(buffered.received))
        return super().handle(conn)

    def handle_request(self, req: Any, conn: TConn) -> Any:
        """Handle a request, and discard its unread rest, so that the connection can be reused. Returns it if it waits.

        A client repeats a report with an expired token at once, which would fail on a closed connection.
        """
        conn.sock.settimeout(IO_SECONDS)
        self._handling.conn = conn
        try:
            return super().handle_request(req, conn) and self._finish_body(conn)
        except RequestParked as exception:
            return exception.parked
        except TimeoutError as error:
            self.log.debug("Closing a slow connection. %s", error)
            return False
        finally:
            self._handling.conn = None

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        """Refuse a request in the error format of the API that it addresses. Gunicorn would reply with HTML."""
        status = next((STATUS_BY_ERROR[kind] for kind in type(exc).__mro__ if kind in STATUS_BY_ERROR), None)
        if status is None or status is HTTPStatus.INTERNAL_SERVER_ERROR:
            self.log.error("Error handling request %s", getattr(req, "uri", "(no URI read)"), exc_info=exc)
            status, message = (
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "The server failed to answer this request; its log says why.",
            )
        else:
            message = str(exc)
            self.log.warning("Invalid request from ip=%s: %s", addr[0] if addr else "", message)
        target = request_target(getattr(self._handling, "received", b"")).removeprefix(self._path_prefix)
        kind, body = refusal(target, status, message)
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nConnection: close\r\nContent-Type: {kind}\r\n"
        try:
            write_nonblock(client, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        except OSError as error:
            self.log.debug("Failed to send an error message. %s", error)

    def _finish_body(self, conn: TConn) -> bool:
        return conn.parser.finish_body(monotonic() + SKIP_SECONDS, SKIPPED_BYTES)

    def _keepalive_after(self, conn: TConn, keepalive: Any) -> Any:
        return keepalive if isinstance(keepalive, ParkedRequest) else super()._keepalive_after(conn, keepalive)

    def _call_application(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Call the application.

        Raises:
            RequestParked: when the request waits.
        """
        conn = getattr(self._handling, "conn", None)
        if conn is None:
            return self._application(environ, start_response)
        environ[PARKING_KEY] = True
        head: list[Any] = []
        # The head of a request that waits is known later. Django calls the function before it returns.
        response = self._application(environ, lambda *arguments: head.append(arguments))
        if hasattr(response, "begin_wait"):
            raise RequestParked(ParkedRequest(response, conn, start_response.__self__, environ))
        if head:
            start_response(*head[0])
        return response

    def is_readable(self, conn: TConn) -> bool:
        """Return True if the next request arrives within LINGER_MS. Returns False at once if too many threads wait."""
        with self._lock:
            if self.waiting_count >= self._max_waiting:
                return False
            self.waiting_count += 1
        try:
            poller = select.poll()
            poller.register(conn.sock, select.POLLIN)
            return bool(poller.poll(LINGER_MS))
        finally:
            with self._lock:
                self.waiting_count -= 1
