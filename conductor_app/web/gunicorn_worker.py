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
from functools import partial
from http import HTTPStatus
from socket import SHUT_WR, socket
from threading import Lock
from time import monotonic
from typing import Any

from django.conf import settings

from .client_views import refusal
from .gunicorn_internals import IO_SECONDS, AdaptedWorker
from .request_framing import BUFFER_BYTES, RequestState, is_probe, request_state, request_target
from .waiting_requests import (
    ClientConnection,
    ConnectionWait,
    FinishedResponse,
    WaitingConnection,
    WaitingConnections,
    is_connection_closed,
)

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

CLOSING_SECONDS, CLOSING_BYTES = 2, 64 * 1024
"""After a response that ends its connection, the limits for discarding what the client still sends, until it closes."""

PROBE_THREADS = 2

WAITS = object()
"""The result of a thread whose request waits. Another thread may be handling the connection already."""


class BufferedConnection:
    """The received bytes of a connection's next request, and the time by which it must be complete."""

    __slots__ = ("deadline", "received", "state")

    def __init__(self) -> None:
        self.received = bytearray()
        self.deadline = monotonic() + REQUEST_SECONDS
        self.state = RequestState.INCOMPLETE


class KeepAliveThreadWorker(AdaptedWorker):
    """Receives requests in the main thread and handles complete ones in threads.

    At most half of the threads wait for a next request, and at most half receive large bodies. Health checks have
    threads of their own. A request that waits holds no thread: one continues it when it is notified or its time ends,
    and the main thread notices when its client disconnects.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._max_waiting, self.waiting_count, self._lock = self.cfg.threads // 2, 0, Lock()
        self._free_large, self._queued_large = max(self.cfg.threads // 2, 1), deque[ClientConnection]()
        self._probe_pool = ThreadPoolExecutor(PROBE_THREADS, thread_name_prefix="probe")
        self._waiting = WaitingConnections(interrupt=lambda: self.call_in_main_thread(lambda: None))
        self._crowded_from = self.cfg.worker_connections * 7 // 8

    def accept_connection(self, conn: ClientConnection) -> None:
        """Handle a connection in a thread as soon as its request is complete. Runs in the main thread."""
        if not self.receive(conn):
            self.release(conn)
        elif conn.buffered.state is RequestState.INCOMPLETE:
            self.begin_wait(conn, conn.buffered.deadline, self._receive_more)
        elif conn.buffered.state is RequestState.LARGE:
            self._start_large(conn)
        elif is_probe(conn.buffered.received):
            self._submit(self._probe_pool, self.handle_single, conn)
        else:
            self._submit(self.thread_pool, self.handle_connection, conn)

    def receive(self, conn: ClientConnection) -> bool:
        """Receive the available bytes of a request. Returns False if the client has closed the connection."""
        buffered = getattr(conn, "buffered", None)
        if buffered is None:
            buffered = conn.buffered = BufferedConnection()
            buffered.received += self.take_buffered(conn)
        buffered.state = request_state(buffered.received)
        while buffered.state is RequestState.INCOMPLETE:
            try:
                # The method of the socket would wait until its timeout.
                data = os.read(conn.sock.fileno(), BUFFER_BYTES)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            buffered.received += data
            buffered.state = request_state(buffered.received)
        return True

    def _receive_more(self, conn: ClientConnection) -> None:
        self.end_wait(conn)
        self.accept_connection(conn)

    def _submit(
        self, pool: ThreadPoolExecutor, handle: Callable[[ClientConnection], Any], conn: ClientConnection
    ) -> None:
        future = pool.submit(handle, conn)
        future.add_done_callback(partial(self._finish_later, conn))

    def _finish_later(self, conn: ClientConnection, future: "Future[Any]") -> None:
        if future.cancelled() or future.exception() is not None or future.result() is not WAITS:
            self.finish_in_main_thread(conn, future)

    def _start_large(self, conn: ClientConnection) -> None:
        if self._free_large:
            self._free_large -= 1
            self._submit(self.thread_pool, self.handle_large, conn)
        else:
            self._queued_large.append(conn)

    def finish_connection(self, conn: ClientConnection, result: Any) -> bool:
        """Release a connection, or continue with its next request. Returns False if Gunicorn waits for it.

        Runs in the main thread.
        """
        if getattr(conn, "is_large", False):
            conn.is_large = False
            self._free_large += 1
            if self._queued_large:
                self._start_large(self._queued_large.popleft())
        if isinstance(result, BufferedConnection) and not self.is_stopping:
            self.accept_connection(conn)
        elif isinstance(result, WaitingConnection):
            if not self._begin_waiting(result):
                self._submit(self.thread_pool, partial(self.resume, result), conn)
        elif result is False:
            self._begin_close(conn)
        else:
            return False
        return True

    def _begin_close(self, conn: ClientConnection) -> None:
        """Close a connection when its client has done so. Gunicorn would wait for each client in the main thread."""
        try:
            conn.sock.shutdown(SHUT_WR)
            conn.sock.setblocking(False)
        except OSError:
            self.release(conn)
            return
        conn.discarded = 0
        self.begin_wait(conn, monotonic() + CLOSING_SECONDS, self._on_closing_readable)

    def _on_closing_readable(self, conn: ClientConnection) -> None:
        try:
            data = conn.sock.recv(BUFFER_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        conn.discarded += len(data)
        if not data or conn.discarded > CLOSING_BYTES:
            self.end_wait(conn)
            self.release(conn)

    def handle_connection(self, conn: ClientConnection) -> Any:
        """Handle the requests of a connection until it is idle.

        Returns True to keep the connection, its buffer if the next request has arrived in part, or WAITS.
        """
        return self._handle_next(conn, self.handle_single(conn))

    def resume(self, connection: WaitingConnection, conn: ClientConnection) -> Any:
        """Continue a request, and handle the next requests of its connection. Returns as `handle_connection`."""
        return self._handle_next(conn, self._resume_single(connection))

    def _handle_next(self, conn: ClientConnection, result: Any) -> Any:
        """Handle further requests of a connection, given the result of the last one."""
        keeps_alive = self._wait_or_resume(result)
        while keeps_alive is True and not self.is_stopping and self.is_readable(conn):
            if not self.cfg.is_ssl:
                if not self.receive(conn):
                    return False
                if conn.buffered.state is not RequestState.COMPLETE:
                    return conn.buffered
            keeps_alive = self._wait_or_resume(self.handle_single(conn))
        return keeps_alive

    def _wait_or_resume(self, result: Any) -> Any:
        """Let a request wait. Nothing may use its connection afterwards."""
        while isinstance(result, WaitingConnection):
            if self._begin_waiting(result):
                return WAITS
            result = self._resume_single(result)
        return result

    def _begin_waiting(self, connection: WaitingConnection) -> bool:
        """Release a request until its wait ends. Returns False if it has ended already."""
        wait = ConnectionWait(connection)
        if not connection.waiting.begin_wait(partial(self._wake, wait)):
            return False
        sock = connection.conn.sock
        self.watch(sock, partial(self._on_waiting_readable, wait))
        if self._waiting.open(wait, connection.waiting.seconds):
            return True
        self._stop_watching_wait(wait, sock)
        return False

    def _wake(self, wait: ConnectionWait) -> None:
        """Continue a waiting request. Runs in any thread."""
        if (connection := self._waiting.take(wait)) is not None:
            self._continue_in_thread(wait, connection, self.resume)

    def _continue_in_thread(
        self, wait: ConnectionWait, connection: WaitingConnection, handle: Callable[..., Any]
    ) -> None:
        self._stop_watching_wait(wait, connection.conn.sock)
        # The pool refuses requests after the worker has stopped.
        with suppress(RuntimeError):
            self._submit(self.thread_pool, partial(handle, connection), connection.conn)

    def _stop_watching_wait(self, wait: ConnectionWait, sock: socket) -> None:
        if self._waiting.stop_watching(wait):
            self.stop_watching(sock)

    def _on_waiting_readable(self, wait: ConnectionWait, sock: socket) -> None:
        """Release a request whose client has disconnected. A client may also have sent its next request already."""
        if not is_connection_closed(sock):
            self._stop_watching_wait(wait, sock)
        elif (connection := self._waiting.take(wait)) is not None:
            self._continue_in_thread(wait, connection, self._abandon)

    def _abandon(self, connection: WaitingConnection, conn: ClientConnection) -> bool:
        connection.waiting.abandon()
        return False

    def limit_sleep(self, seconds: float) -> float:
        """Return the time until the wait of a waiting request ends, at most `seconds`."""
        return self._waiting.limit_sleep(seconds)

    def continue_due(self) -> None:
        """Continue the waiting requests whose time has ended."""
        for wait, connection in self._waiting.take_due():
            self._continue_in_thread(wait, connection, self.resume)

    def _resume_single(self, connection: WaitingConnection) -> Any:
        """Continue a waiting request. Returns it if it waits again, otherwise True to keep its connection."""
        try:
            response = connection.waiting.resume()
            return connection if response is None else self._send(connection, response)
        except OSError as error:
            self.log.debug("The client has disconnected, or does not read the response. %s", error)
        except Exception:
            self.log.exception("Error in a request that has waited")
        return False

    def _send(self, connection: WaitingConnection, response: FinishedResponse) -> bool:
        """Send the response to a waiting request. Returns True to keep its connection."""
        try:
            is_kept = self.send_response(
                connection, response, closes=self.is_stopping or self.connection_count >= self._crowded_from
            )
        finally:
            connection.waiting.close()
        return is_kept and self._discard_rest(connection.conn)

    def handle_large(self, conn: ClientConnection) -> Any:
        """Handle a request with a large body. Returns the request if it waits."""
        conn.is_large = True
        return self.handle_single(conn)

    def handle_single(self, conn: ClientConnection) -> Any:
        """Handle the request that has been received."""
        if self.cfg.is_ssl:
            return self.handle_with_tls(conn)
        buffered, conn.buffered = conn.buffered, None
        return self.handle_received(conn, bytes(buffered.received), partial(require_speed, monotonic()))

    def handle_parsed(self, conn: ClientConnection, handle: Callable[[], bool]) -> bool:
        """Handle a request, and discard its unread rest, so that the connection can be reused.

        A client repeats a report with an expired token at once, which would fail on a closed connection.
        """
        conn.sock.settimeout(IO_SECONDS)
        try:
            return handle() and self._discard_rest(conn)
        except TimeoutError as error:
            self.log.debug("Closing a slow connection. %s", error)
            return False

    def _discard_rest(self, conn: ClientConnection) -> bool:
        return self.discard_rest(conn, monotonic() + SKIP_SECONDS, SKIPPED_BYTES)

    def refuse(self, sock: socket, address: Any, status: HTTPStatus | None, error: Exception, received: bytes) -> None:
        """Refuse a request in the error format of the API that it addresses. Gunicorn would reply with HTML."""
        target = request_target(received)
        if status is None or status is HTTPStatus.INTERNAL_SERVER_ERROR:
            self.log.error("Error handling request %s", target or "(no URI read)", exc_info=error)
            status, message = (
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "The server failed to answer this request; its log says why.",
            )
        else:
            message = str(error)
            self.log.warning("Invalid request from ip=%s: %s", address[0] if address else "", message)
        kind, body = refusal(target.removeprefix(settings.FORCE_SCRIPT_NAME or ""), status, message)
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nConnection: close\r\nContent-Type: {kind}\r\n"
        try:
            sock.setblocking(False)
            sock.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        except OSError as exception:
            self.log.debug("Failed to send an error message. %s", exception)

    def is_readable(self, conn: ClientConnection) -> bool:
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


def require_speed(started_at: float, received: int) -> None:
    """Check the time since the start of a body of which this number of bytes has been received.

    Raises:
        TimeoutError: when the client sends too slowly.
    """
    if monotonic() - started_at > BODY_SECONDS + received / BODY_BYTES_PER_SECOND:
        raise TimeoutError("The client sends the body too slowly.")
