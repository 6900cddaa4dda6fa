"""An HTTP/2 server that ends streams and connections in the ways of RFC 9113. A request's path chooses the way.

    h2_server.py [CERTIFICATE KEY] [--streams N] [--window N]

Prints its port, then `N METHOD PATH`, `N goaway CODE`, `N reset CODE`, `N ping` and `N closed`, where N is the
connection's number. Each answer's body is this number. Without CERTIFICATE there is no TLS. A connection that begins with
`release` instead of the preface has all requests for /hold and /stall answered; with `lower`, all others allow one stream.

    /hold      waits for `release`
    /hold-back sends the answer's head, then waits
    /goaway    the first time: sends GOAWAY with the number of the lowest waiting stream
    /bye       answers, and accepts no further stream
    /close     answers, and closes the connection a moment later without GOAWAY
    /lower     allows one stream at a time from now on
    /deaf      answers, and reads nothing more
    /stall     waits for `release`, and reads nothing until then
    /aged      answers with the connection's number and the request's Authorization
    /large     has 32 MiB
    /early     answers 413 at once, with END_STREAM
    /early-0   the same, followed by RST_STREAM(NO_ERROR)
"""

import argparse
import socket
import ssl
import struct
import threading
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions
from h2.settings import SettingCodes

arguments = argparse.ArgumentParser()
arguments.add_argument("files", nargs="*")
arguments.add_argument("--streams", type=int)
arguments.add_argument("--window", type=int)
options = arguments.parse_args()
lock = threading.RLock()
connections, seen = [], set()
LARGE = 32 << 20


def say(*words):
    print(*words, flush=True)


class Connection:
    def __init__(self, stream, number):
        self.socket, self.number = stream, number
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.h2.initiate_connection()
        if options.streams is not None:
            self.h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: options.streams})
        if options.window is not None:
            self.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: options.window})
            self.h2.increment_flow_control_window(options.window)
        self.reads = threading.Event()
        self.reads.set()
        # Streams that wait for `release`, and for other streams the number of bytes that wait for the window.
        self.held, self.unsent = {}, {}
        self.ends = False

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def raw(self, kind, stream, payload):
        self.flush()
        self.socket.sendall(struct.pack(">I", len(payload))[1:] + bytes([kind, 0]) + struct.pack(">I", stream) + payload)

    def go_away(self, last):
        self.raw(7, 0, struct.pack(">II", last, 0))

    def answer(self, stream, status=200, more=""):
        body = (str(self.number) + more).encode()
        self.h2.send_headers(stream, [(":status", str(status)), ("content-length", str(len(body)))])
        self.h2.send_data(stream, body, end_stream=True)

    def release(self):
        for stream, has_head in sorted(self.held.items()):
            if not has_head:
                self.h2.send_headers(stream, [(":status", "200")])
            self.h2.send_data(stream, str(self.number).encode(), end_stream=True)
        self.held.clear()
        self.flush()
        self.reads.set()

    def lower(self):
        self.h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: 1})
        self.flush()

    def began(self, stream, path, authorization=""):
        if path == "/stall":
            self.held[stream] = False
            self.reads.clear()
        elif path == "/aged":
            self.answer(stream, more=" " + authorization)
        elif path in ("/hold", "/hold-back"):
            self.held[stream] = path == "/hold-back"
            if self.held[stream]:
                self.h2.send_headers(stream, [(":status", "200")])
        elif path == "/goaway" and path not in seen:
            seen.add(path)
            self.go_away(min(self.held))
        elif path == "/large":
            self.h2.send_headers(stream, [(":status", "200"), ("content-length", str(LARGE))])
            self.unsent[stream] = LARGE
        elif path in ("/early", "/early-0"):
            self.answer(stream, 413)
            if path == "/early-0":
                self.raw(3, stream, struct.pack(">I", 0))
        else:
            if path == "/lower":
                self.h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: 1})
            self.answer(stream)
            if path == "/bye":
                self.go_away(stream)
            self.ends = path in ("/close", "/deaf") and path

    def send_large(self):
        for stream, left in list(self.unsent.items()):
            while left and (room := min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, left)) > 0:
                left -= room
                self.h2.send_data(stream, b"x" * room, end_stream=not left)
            self.unsent[stream] = left
            if not left:
                del self.unsent[stream]

    def handle(self, event):
        stream = getattr(event, "stream_id", None)
        if isinstance(event, h2.events.RequestReceived):
            fields = dict(event.headers)
            say(self.number, fields[":method"], fields[":path"])
            self.began(stream, fields[":path"], fields.get("authorization", ""))
        elif isinstance(event, h2.events.DataReceived) and event.flow_controlled_length:
            try:
                self.h2.acknowledge_received_data(event.flow_controlled_length, stream)
            except h2.exceptions.ProtocolError:
                pass
        elif isinstance(event, h2.events.StreamReset):
            say(self.number, "reset", int(event.error_code))
            self.held.pop(stream, None)
            self.unsent.pop(stream, None)
        elif isinstance(event, h2.events.PingReceived):
            say(self.number, "ping")
        elif isinstance(event, h2.events.ConnectionTerminated):
            say(self.number, "goaway", int(event.error_code))

    def serve(self, first):
        data = first
        while data:
            with lock:
                for event in self.h2.receive_data(data):
                    self.handle(event)
                self.send_large()
                self.flush()
            if self.ends == "/deaf":
                time.sleep(600)
            if self.ends == "/close":
                time.sleep(0.2)
                return
            self.reads.wait()
            data = self.socket.recv(65536)


def accept(raw, context):
    connection = None
    try:
        stream = context.wrap_socket(raw, server_side=True) if context else raw
        first = stream.recv(24)
        if first.startswith((b"release", b"lower")):
            with lock:
                for held in connections:
                    held.release() if first.startswith(b"release") else held.lower()
            stream.sendall(b"released")
            return
        with lock:
            connection = Connection(stream, len(connections) + 1)
            connections.append(connection)
        connection.serve(first)
    except (OSError, h2.exceptions.ProtocolError):
        pass
    finally:
        if connection:
            connection.held.clear()
            say(connection.number, "closed")
        raw.close()
        if connection:
            connection.socket.close()


context = None
if options.files:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*options.files)
    context.set_alpn_protocols(["h2"])
listener = socket.create_server(("127.0.0.1", 0), backlog=128)
say(listener.getsockname()[1])
while True:
    threading.Thread(target=accept, args=(listener.accept()[0], context), daemon=True).start()
