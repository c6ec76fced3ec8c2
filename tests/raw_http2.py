"""HTTP/2 in full view: frames as a test wants them sent, and answers as they come, over h2 on a plain socket or TLS."""

import socket
import ssl
import time

import h2.config
import h2.connection
import h2.events
import h2.settings
from servers import PATIENCE_S

# RFC 9113, section 7.
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, CANCEL = 0, 1, 2, 8
JSON = {"content-type": "application/json"}


class Answer:
    def __init__(self):
        self.heads = []  # Of each, interim ones first: {name: value}.
        self.body = b""
        self.trailers = None
        self.ended = False
        self.reset = None  # The error code.

    @property
    def headers(self):
        return self.heads[-1]

    @property
    def status(self):
        return int(self.heads[-1][":status"]) if self.heads else None

    @property
    def over(self):
        return self.ended or self.reset is not None


class Http2Connection:
    """One connection. With `takes_data` False no window is opened but by `open_window`."""

    def __init__(self, address, context=None, takes_data=True, window=None):
        self.takes_data = takes_data
        self.goaways = []
        self.closed = False
        self._answers = {}
        self._received = b""
        self._socket = socket.create_connection(address, PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            self._socket = context.wrap_socket(self._socket, server_hostname="localhost")
        # What h2 would not send is sent: the server must be right whatever comes.
        config = h2.config.H2Configuration(
            header_encoding="utf-8", validate_outbound_headers=False, normalize_outbound_headers=False
        )
        self._h2 = h2.connection.H2Connection(config)
        self._h2.initiate_connection()
        if window is not None:
            self._h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        self._flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def peer_certificate(self):
        return self._socket.getpeercert(binary_form=True)

    def send_bytes(self, data):
        self._socket.sendall(data)

    def _flush(self):
        if data := self._h2.data_to_send():
            self._socket.sendall(data)

    # --- Requests

    def begin(self, path="/", method="GET", headers=(), ends=True, authority="weir.test"):
        """`headers`: a mapping, or pairs."""
        stream = self._h2.get_next_available_stream_id()
        pseudo = [(":method", method), (":scheme", "http"), (":authority", authority), (":path", path)]
        fields = headers.items() if isinstance(headers, dict) else headers
        self._h2.send_headers(stream, [*pseudo, *fields], end_stream=ends)
        self._answers[stream] = Answer()
        self._flush()
        return stream

    def send(self, stream, data=b"", ends=False):
        """Sends as the windows allow."""
        while True:
            room = min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size)
            part, data = data[:room], data[room:]
            self._h2.send_data(stream, part, end_stream=ends and not data)
            self._flush()
            if not data:
                return
            self.wait(lambda: self._h2.local_flow_control_window(stream) > 0, "the window opens")

    def send_room(self, stream):
        return self._h2.local_flow_control_window(stream)

    def send_trailers(self, stream, fields):
        self._h2.send_headers(stream, list(fields.items()), end_stream=True)
        self._flush()

    def reset(self, stream, code=8):
        self._h2.reset_stream(stream, code)
        self._flush()

    def ping(self):
        self._h2.ping(b"weirtest")
        self._flush()

    def ask(self, path="/", method="GET", headers=(), body=None, **more):
        """The whole answer to one request."""
        stream = self.begin(path, method, headers, ends=body is None, **more)
        if body is not None:
            self.send(stream, body, ends=True)
        return self.finish(stream)

    # --- Answers

    def answer(self, stream):
        return self._answers[stream]

    def finish(self, stream):
        answer = self._answers[stream]
        self.wait(lambda: answer.over, f"the end of stream {stream}")
        return answer

    def wait(self, condition, what, timeout_s=PATIENCE_S):
        """Reads until the condition holds."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            left = deadline - time.monotonic()
            assert left > 0, f"not within {timeout_s} s: {what}"
            assert self.read(left), f"the connection ended before: {what}"

    def wait_closed(self, timeout_s=PATIENCE_S):
        deadline = time.monotonic() + timeout_s
        while self.read(max(deadline - time.monotonic(), 0.001)):
            assert time.monotonic() < deadline, "the connection stays open"

    def read(self, timeout_s):
        """Takes what comes within the time; False at the end of the connection."""
        self._socket.settimeout(timeout_s)
        try:
            data = self._socket.recv(65536)
        except (TimeoutError, ssl.SSLWantReadError):
            return True
        except ConnectionError:
            data = b""
        if not data:
            self.closed = True
            return False
        self._received += data
        while len(self._received) >= 9:
            size = 9 + int.from_bytes(self._received[:3])
            if len(self._received) < size:
                break
            frame, self._received = self._received[:size], self._received[size:]
            for event in self._h2.receive_data(frame):
                self._take(event)
        self._flush()
        return True

    def open_window(self, bytes_, stream=None):
        """A stream's window, or the connection's."""
        self._h2.increment_flow_control_window(bytes_, stream)
        self._flush()

    def _take(self, event):
        answer = self._answers.get(getattr(event, "stream_id", None))
        if isinstance(event, (h2.events.ResponseReceived, h2.events.InformationalResponseReceived)):
            answer.heads.append(dict(event.headers))
        elif isinstance(event, h2.events.DataReceived):
            answer.body += event.data
            if self.takes_data:
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.TrailersReceived):
            answer.trailers = dict(event.headers)
        elif isinstance(event, h2.events.StreamEnded):
            answer.ended = True
        elif isinstance(event, h2.events.StreamReset):
            answer.reset = int(event.error_code)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaways.append(event)
            # h2 takes it for the end of all; streams that have begun may finish (RFC 9113, 6.8).
            self._h2.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN
