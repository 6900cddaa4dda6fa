"""A client that makes the proxy hold memory: http2_allowance.py HOST:PORT HOST_OF_REQUESTS KIND CONNECTIONS.

`heads`: one field of 3.9 KB goes into the HPACK table; then each of 100 streams repeats it 15 times, so that 45 bytes stand for
59 KB. `bodies`: 100 bodies, as far as the windows allow. `answers`: 100 requests. The client's windows stay closed: no body of an
answer can be sent. `kept`: over HTTP/1.1, a head of 60 KB; the connection stays open behind its answer. Prints `quiet` and what it
saw each time that nothing comes for a second, until it is ended.

http2_allowance.py origins: three servers, whose ports it prints. One answers nothing and reads only heads, one answers without end,
one does so over HTTP/2 with prior knowledge.
"""

import selectors
import socket
import struct
import sys

import http2_hostile as raw

FIELD = 3900
REPEATED = 15


def heads(host):
    name = bytes([len(host)]) + host.encode()
    begin = b"\x82\x84\x86\x01" + name
    first = begin + b"\x40\x01a" + raw.integer(FIELD) + b"b" * FIELD
    again = begin + b"\xbe" * REPEATED
    out = raw.frame(raw.HEADERS, raw.END, 1, first)
    return out + b"".join(raw.frame(raw.HEADERS, raw.END, 2 * index + 1, again) for index in range(1, 100))


def requests(host, method):
    name = bytes([len(host)]) + host.encode()
    flags = raw.END if method == b"\x82" else raw.END_HEADERS
    return b"".join(
        raw.frame(raw.HEADERS, flags, 2 * index + 1, method + b"\x84\x86\x01" + name) for index in range(100))


class Sender:
    """A connection that sends bodies as far as the windows allow."""

    def __init__(self, address, host, kind):
        self.connection = raw.Connection(address)
        self.connection.send(
            f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nX: {'a' * 60000}\r\n\r\n".encode()
            if kind == "kept"
            else raw.PREFACE
            + raw.setting(4, 0)
            + (heads(host) if kind == "heads" else requests(host, b"\x83" if kind == "bodies" else b"\x82"))
        )
        self.is_raw = kind == "kept"
        self.window, self.streams = 65535, {2 * index + 1: 65535 for index in range(100)} if kind == "bodies" else {}
        self.sent, self.data, self.outcomes, self.heads = 0, b"", {}, 0
        self.connection.socket.setblocking(True)
        self.connection.socket.settimeout(20)
        self.push()

    def push(self):
        for stream in list(self.streams):
            while (count := min(self.window, self.streams[stream], 16384)) > 0:
                self.connection.send(raw.frame(raw.DATA, 0, stream, b"x" * count))
                self.window, self.sent = self.window - count, self.sent + count
                self.streams[stream] -= count

    def read(self):
        try:
            piece = self.connection.socket.recv(65536)
        except OSError:
            piece = b""
        if not piece:
            self.outcomes["closed"] = 1
            return False
        if self.is_raw:
            return True
        self.data += piece
        while len(self.data) >= 9 and len(self.data) >= 9 + int.from_bytes(self.data[:3], "big"):
            size, kind, stream = int.from_bytes(self.data[:3], "big"), self.data[3], int.from_bytes(self.data[5:9], "big")
            payload, self.data = self.data[9 : 9 + size], self.data[9 + size :]
            if kind == raw.WINDOW and stream == 0:
                self.window += struct.unpack(">I", payload)[0]
            elif kind == raw.WINDOW and stream in self.streams:
                self.streams[stream] += struct.unpack(">I", payload)[0]
            elif kind == raw.RST:
                code = f"reset {int.from_bytes(payload[:4], 'big')}"
                self.outcomes[code] = self.outcomes.get(code, 0) + 1
                self.streams.pop(stream, None)
            elif kind == raw.HEADERS:
                self.heads += 1
            elif kind == raw.GOAWAY:
                self.outcomes[f"goaway {int.from_bytes(payload[4:8], 'big')}"] = 1
        self.push()
        return True


class Origin:
    """A server on a port of its own."""

    def __init__(self, selector, is_endless):
        self.selector, self.is_endless = selector, is_endless
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port = self.listener.getsockname()[1]
        selector.register(self.listener, selectors.EVENT_READ, self.accept)

    def accept(self):
        client, _ = self.listener.accept()
        client.setblocking(False)
        self.selector.register(client, selectors.EVENT_READ, lambda: self.read(client))

    def read(self, client):
        try:
            piece = client.recv(65536)
        except OSError:
            piece = b""
        self.selector.unregister(client)
        if not piece:
            client.close()
        elif self.is_endless:
            client.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
            self.selector.register(client, selectors.EVENT_WRITE, lambda: self.write(client))
        else:
            SILENT.append(client)

    def write(self, client):
        try:
            client.send(b"x" * 262144)
        except BlockingIOError:
            pass
        except OSError:
            self.selector.unregister(client)
            client.close()


class HTTP2Origin(Origin):
    """Sends as much on each stream as its window allows. The connection's window is taken for large."""

    def accept(self):
        client, _ = self.listener.accept()
        client.sendall(raw.frame(raw.SETTINGS, 0, 0, struct.pack(">HI", 3, 256)))
        state = {"data": b"", "initial": 65535, "windows": {}, "out": b"", "preface": len(raw.PREFACE)}
        client.setblocking(False)
        self.selector.register(client, selectors.EVENT_READ, lambda: self.work(client, state))

    def work(self, client, state):
        try:
            piece = client.recv(65536)
            if not piece:
                self.selector.unregister(client)
                return client.close()
            state["data"] += piece
        except BlockingIOError:
            pass
        except OSError:
            self.selector.unregister(client)
            return client.close()
        if state["preface"]:
            if len(state["data"]) < state["preface"]:
                return
            state["data"], state["preface"] = state["data"][state["preface"]:], 0
        data = state["data"]
        while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3], "big"):
            size, kind, flags, stream = int.from_bytes(data[:3], "big"), data[3], data[4], int.from_bytes(data[5:9], "big")
            payload, data = data[9 : 9 + size], data[9 + size :]
            self.frame(state, kind, flags, stream, payload)
        state["data"] = data
        for stream, window in state["windows"].items():
            while window > 0 and len(state["out"]) < 1 << 20:
                count = min(window, 16384)
                state["out"] += raw.frame(raw.DATA, 0, stream, b"x" * count)
                window -= count
            state["windows"][stream] = window
        try:
            while state["out"]:
                state["out"] = state["out"][client.send(state["out"]) :]
        except BlockingIOError:
            pass
        except OSError:
            self.selector.unregister(client)
            return client.close()
        has_more = state["out"] or any(window > 0 for window in state["windows"].values())
        wants = selectors.EVENT_READ | (selectors.EVENT_WRITE if has_more else 0)
        self.selector.modify(client, wants, lambda: self.work(client, state))

    @staticmethod
    def frame(state, kind, flags, stream, payload):
        if kind == raw.SETTINGS and not flags & raw.ACK:
            for at in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[at : at + 6])
                if name == 4:
                    for other in state["windows"]:
                        state["windows"][other] += value - state["initial"]
                    state["initial"] = value
            state["out"] += raw.frame(raw.SETTINGS, raw.ACK, 0)
        elif kind == raw.PING and not flags & raw.ACK:
            state["out"] += raw.frame(raw.PING, raw.ACK, 0, payload)
        elif kind == raw.HEADERS:
            state["windows"][stream] = state["initial"]
            state["out"] += raw.frame(raw.HEADERS, raw.END_HEADERS, stream, b"\x88")
        elif kind == raw.WINDOW and stream in state["windows"]:
            state["windows"][stream] += struct.unpack(">I", payload)[0]
        elif kind == raw.RST:
            state["windows"].pop(stream, None)


SILENT = []


def serve():
    selector = selectors.DefaultSelector()
    origins = [Origin(selector, False), Origin(selector, True), HTTP2Origin(selector, True)]
    for origin in origins:
        print(origin.port, flush=True)
    while True:
        for key, _ in selector.select():
            key.data()


def main():
    if sys.argv[1] == "origins":
        return serve()
    host, port = sys.argv[1].split(":")
    target, kind, count = sys.argv[2], sys.argv[3], int(sys.argv[4])
    senders = [Sender((host, int(port)), target, kind) for _ in range(count)]
    selector = selectors.DefaultSelector()
    for sender in senders:
        selector.register(sender.connection.socket, selectors.EVENT_READ, sender)
    while True:
        found = selector.select(timeout=1)
        for key, _ in found:
            if not key.data.read():
                selector.unregister(key.fileobj)
        if not found:
            outcomes = {}
            for sender in senders:
                for name, number in sender.outcomes.items():
                    outcomes[name] = outcomes.get(name, 0) + number
            print(f"quiet: {sum(s.sent for s in senders)} bytes, {sum(s.heads for s in senders)} heads, {outcomes}", flush=True)


if __name__ == "__main__":
    main()
