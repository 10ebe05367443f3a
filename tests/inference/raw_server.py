"""A server of plain sockets, for answers that no server library would send; records requests."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Send = Callable[["Exchange"], None]


@dataclass
class Exchange:
    """One request and the connection that it came on.

    Attributes:
        head: the request line and the headers, as they came.
        sent: bytes that the client's side took so far.
    """

    head: bytes
    connection: socket.socket
    sent: int = 0

    def send(self, data: bytes) -> None:
        """Sends bytes, and counts them."""
        self.connection.sendall(data)
        self.sent += len(data)

    def begin(self, status: int = 200, *headers: str) -> None:
        """Sends a status and headers; a body may follow without end."""
        lines = [f"HTTP/1.1 {status} Said", "Content-Type: application/json", *headers, "", ""]
        self.send("\r\n".join(lines).encode())

    def answer(self, status: int, body: bytes, *headers: str) -> None:
        """Sends a complete answer."""
        self.begin(status, f"Content-Length: {len(body)}", "Connection: close", *headers)
        self.send(body)


@dataclass
class RawServer:
    """Accepts connections and lets a function answer each of them.

    Attributes:
        url: what to give as ``--base-url``.
        exchanges: every request, in order.
    """

    url: str
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def heads(self) -> str:
        """Everything that was received, except bodies."""
        return "\n".join(each.head.decode("latin-1") for each in self.exchanges)

    @property
    def sent(self) -> int:
        """How many bytes clients have taken in all."""
        return sum(each.sent for each in self.exchanges)


@contextlib.contextmanager
def raw_server(send: Send) -> Iterator[RawServer]:
    """Runs a server on 127.0.0.1 until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = RawServer(f"http://127.0.0.1:{listener.getsockname()[1]}/v1")

    def one(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(60)
            heard = b""
            while b"\r\n\r\n" not in heard:
                data = connection.recv(65536)
                if not data:
                    return
                heard += data
            head, _, rest = heard.partition(b"\r\n\r\n")
            exchange = Exchange(head, connection)
            server.exchanges.append(exchange)
            left = _length(head) - len(rest)
            while left > 0 and (data := connection.recv(65536)):
                left -= len(data)
            send(exchange)

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
