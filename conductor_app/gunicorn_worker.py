"""Gunicorn's threaded worker, adapted to clients that poll continuously and to clients that send slowly.

A thread handles a request only after the request has been received completely, so that slow clients occupy none.
Afterwards, the thread waits briefly for the next request of the same connection.
"""

import select
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from selectors import EVENT_READ
from threading import Lock
from time import monotonic
from typing import Any

from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers.gthread import TConn, ThreadWorker

from .request_framing import BUFFER_BYTES, RequestState, is_probe, request_state

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

PROBE_THREADS = 2


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
    threads of their own.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._max_waiting, self.waiting_count, self._lock = self.cfg.threads // 2, 0, Lock()
        self._free_large, self._queued_large = max(self.cfg.threads // 2, 1), deque[TConn]()
        self._probe_pool = ThreadPoolExecutor(PROBE_THREADS, thread_name_prefix="probe")

    def enqueue_req(self, conn: TConn) -> None:
        """Handle a connection in a thread as soon as its request is complete. Runs in the main thread."""
        if self.cfg.is_ssl:
            super().enqueue_req(conn)
        elif not self.receive(conn):
            self.nr_conns -= 1
            conn.close()
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
        future.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))

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
        if not fs.cancelled() and fs.exception() is None and isinstance(fs.result(), BufferedConnection) and self.alive:
            self.enqueue_req(conn)
        else:
            super().finish_request(conn, fs)

    def murder_pending(self) -> None:
        """Close the connections whose requests are late. A connection that sends slowly is registered repeatedly."""
        pending = sorted(self.pending_conns, key=lambda conn: conn.timeout)
        self.pending_conns.clear()
        self.pending_conns.extend(pending)
        super().murder_pending()

    def handle(self, conn: TConn) -> Any:
        """Handle the requests of a connection until it is idle.

        Returns True to keep the connection, or its buffer if the next request has arrived in part.
        """
        keeps_alive = self.handle_single(conn)
        while keeps_alive is True and self.alive and self.is_readable(conn):
            if not self.cfg.is_ssl:
                if not self.receive(conn):
                    return False
                if conn.buffered.state is not RequestState.COMPLETE:
                    return conn.buffered
            keeps_alive = self.handle_single(conn)
        return keeps_alive

    def handle_large(self, conn: TConn) -> Any:
        """Handle a request with a large body."""
        conn.is_large = True
        return self.handle_single(conn)

    def handle_single(self, conn: TConn) -> Any:
        """Handle the request that has been received."""
        if self.cfg.is_ssl:
            return super().handle(conn)
        buffered, conn.buffered = conn.buffered, None
        if not conn.initialized:
            conn.init()
            conn.parser.unreader = BoundedBodyUnreader(conn.sock)
        conn.parser.unreader.start_request()
        conn.parser.unreader.unread(bytes(buffered.received))
        return super().handle(conn)

    def handle_request(self, req: Any, conn: TConn) -> bool:
        """Handle a request, and discard its unread rest, so that the connection can be reused.

        A client repeats a report with an expired token at once, which would fail on a closed connection.
        """
        conn.sock.settimeout(IO_SECONDS)
        try:
            keeps_alive = super().handle_request(req, conn)
            return keeps_alive and conn.parser.finish_body(monotonic() + SKIP_SECONDS, SKIPPED_BYTES)
        except TimeoutError as error:
            self.log.debug("Closing a slow connection. %s", error)
            return False

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
