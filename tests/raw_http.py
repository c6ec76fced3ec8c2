"""HTTP as bytes: for requests that no client library would send, and answers that are to be seen as they are."""

import re
import socket
import time


class RawAnswer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers  # [(name in lower case, value)], in order.
        self.body = body

    def all(self, name):
        return [value for found, value in self.headers if found == name.lower()]

    def get(self, name):
        values = self.all(name)
        return values[0] if values else None


class RawConnection:
    def __init__(self, address, timeout_s=20):
        self._socket = socket.create_connection(address, timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._socket.close()

    def abort(self):
        """Closes with a reset."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self._socket.close()

    def send(self, data):
        self._socket.sendall(data if isinstance(data, bytes) else data.encode())

    def read_some(self):
        """What has arrived, at least one byte; b"" at the end."""
        if self._buffer:
            data, self._buffer = self._buffer, b""
            return data
        try:
            return self._socket.recv(65536)
        except ConnectionResetError:
            return b""

    def _fill(self):
        data = self._socket.recv(65536)
        if not data:
            raise EOFError(f"closed after {self._buffer[:200]!r}")
        self._buffer += data

    def _until(self, mark):
        while mark not in self._buffer:
            self._fill()
        data, self._buffer = self._buffer.split(mark, 1)
        return data

    def _exactly(self, size):
        while len(self._buffer) < size:
            self._fill()
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def read_head(self):
        lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        match = re.fullmatch(r"HTTP/1\.[01] (\d{3})(?: .*)?", lines[0])
        assert match, lines[0]
        headers = []
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers.append((name.lower(), value.strip()))
        return RawAnswer(int(match[1]), headers, b"")

    def read_chunk(self):
        size = int(self._until(b"\r\n").split(b";")[0], 16)
        if size == 0:
            self._until(b"\r\n")  # Answers read here have no trailers.
            return b""
        data = self._exactly(size)
        assert self._exactly(2) == b"\r\n"
        return data

    def read_answer(self, head_only=False):
        """One whole answer, its body decoded."""
        answer = self.read_head()
        if head_only or answer.status in (204, 304) or answer.status < 200:
            return answer
        if answer.get("transfer-encoding") == "chunked":
            while chunk := self.read_chunk():
                answer.body += chunk
        elif (length := answer.get("content-length")) is not None:
            answer.body = self._exactly(int(length))
        else:
            answer.body = self.read_to_end()
        return answer

    def read_to_end(self):
        data = b""
        while piece := self.read_some():
            data += piece
        return data

    def is_closed_within(self, timeout_s=5):
        """Whether the peer ends the connection in that time, whatever it still sends."""
        deadline = time.monotonic() + timeout_s
        try:
            while (left := deadline - time.monotonic()) > 0:
                self._socket.settimeout(left)
                if not self.read_some():
                    return True
        except TimeoutError:
            pass
        except ConnectionResetError:
            return True
        return False


def exchange(address, data, head_only=False):
    """Sends the bytes on a fresh connection and gives the first answer."""
    with RawConnection(address) as connection:
        connection.send(data)
        return connection.read_answer(head_only)
