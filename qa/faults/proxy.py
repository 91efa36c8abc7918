"""A TCP proxy that passes, cuts, holds back and slows down connections. All proxies run in one thread."""

import asyncio
import socket
import struct
from contextlib import suppress
from threading import Thread

CHUNK_BYTES = 65_536
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER with zero seconds: closing the socket sends RST."""


class ProxyThread:
    """The thread in which proxies run."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=self.loop.run_forever, name="proxies", daemon=True)
        self._thread.start()

    def open(self, target_port: int) -> "Proxy":
        """Return a new proxy to a port of this machine."""
        proxy = Proxy(target_port, self.loop)
        asyncio.run_coroutine_threadsafe(proxy.listen(), self.loop).result(5)
        return proxy

    def close(self) -> None:
        """End the thread and its connections."""
        asyncio.run_coroutine_threadsafe(_cancel_tasks(), self.loop).result(5)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
        self.loop.close()


class Proxy:
    """One proxy. Its methods may be called from any thread."""

    def __init__(self, target_port: int, loop: asyncio.AbstractEventLoop) -> None:
        self.port = 0
        self._target_port, self._loop = target_port, loop
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._delay_seconds = 0.0
        self._refuses = False
        self._writers: set[asyncio.StreamWriter] = set()

    async def listen(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Reset all connections. New ones are accepted."""
        self._loop.call_soon_threadsafe(self._reset_all)

    def refuse(self) -> None:
        """Reset all connections, and every new one, until `heal`."""
        self._refuses = True
        self.cut()

    def hold_back(self) -> None:
        """Deliver no byte in either direction until `heal`, as if the network dropped all packets."""
        self._loop.call_soon_threadsafe(self._is_open.clear)

    def slow_down(self, seconds: float) -> None:
        """Delay each chunk of data until `heal`."""
        self._delay_seconds = seconds

    def heal(self) -> None:
        """Pass all data again. Data that was held back is delivered."""
        self._refuses, self._delay_seconds = False, 0.0
        self._loop.call_soon_threadsafe(self._is_open.set)

    def _reset_all(self) -> None:
        for writer in self._writers.copy():
            _reset(writer)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            _reset(writer)
            return
        self._writers.add(writer)
        try:
            await self._is_open.wait()
            target_reader, target_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            self._discard(writer)
            return
        self._writers.add(target_writer)
        await asyncio.gather(self._pump(reader, target_writer), self._pump(target_reader, writer))
        self._discard(writer)
        self._discard(target_writer)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass data in one direction until its end."""
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                if self._delay_seconds:
                    await asyncio.sleep(self._delay_seconds)
                await self._is_open.wait()
                writer.write(data)
                await writer.drain()
        with suppress(OSError, RuntimeError):
            writer.close()

    def _discard(self, writer: asyncio.StreamWriter) -> None:
        self._writers.discard(writer)
        with suppress(OSError, RuntimeError):
            writer.close()


async def _cancel_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _reset(writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    writer.transport.abort()
