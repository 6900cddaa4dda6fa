"""An HTTP/2 server without TLS that breaks the rules. The path of a request chooses the case. Prints its port.
Each case is the bytes of an answer, by section of RFC 9113. "/ok" and "/waiting" get correct answers. With the argument
`one-stream`, a connection allows one stream at a time. With `refuses`, it says so only after the first request, and
refuses the others that came before the client acknowledged it.
"""

import select
import socket
import struct
import sys
import threading
import time

import hpack


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, ACK = 1, 4, 8, 1


def literal(name, value):
    """A field without Huffman coding and tables, so that it may contain any byte."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


OK = b"\x88"


def head(stream, block=OK, flags=END_HEADERS):
    return frame(HEADERS, flags, stream, block)


def data(stream, payload=b"hello", flags=END_STREAM):
    return frame(DATA, flags, stream, payload)


def reset(stream, code):
    return frame(RESET, 0, stream, struct.pack(">I", code))


def setting(identifier, value):
    return frame(SETTINGS, 0, 0, struct.pack(">HI", identifier, value))


def field(name, value):
    return lambda s: head(s, OK + literal(name, value)) + data(s)


def status(block):
    return lambda s: head(s, block) + data(s)


REFERENCES = literal(b"x-bomb", b"v" * 100)
CASES = {
    # 4: frames
    "size": lambda s: head(s) + data(s, b"x" * 20000),
    "hpack": lambda s: head(s, b"\xff\xff\xff\xff\xff\xff"),
    "hpack-index": lambda s: head(s, b"\xfe"),
    "hpack-table": lambda s: head(s, b"\x3f\xe1\xff\x7f" + OK),
    # 5: streams
    "data-first": lambda s: data(s),
    "idle-data": lambda s: head(s) + data(s + 98),
    "idle-reset": lambda s: reset(s + 98, 8),
    "idle-window": lambda s: frame(WINDOW, 0, s + 98, b"\0\0\0\1"),
    "own-stream": lambda s: head(2) + data(2),
    # 6: each frame
    "data-on-zero": lambda s: head(s) + data(0),
    "padding": lambda s: head(s) + frame(DATA, PADDED, s, b"\xffabc"),
    "headers-on-zero": lambda s: head(0),
    "headers-padding": lambda s: frame(HEADERS, END_HEADERS | PADDED, s, b"\xff" + OK),
    "priority-on-zero": lambda s: frame(PRIORITY, 0, 0, b"\0\0\0\1\0"),
    "reset-on-zero": lambda s: reset(0, 8),
    "reset-size": lambda s: frame(RESET, 0, s, b"\0\0\0"),
    "settings-on-stream": lambda s: frame(SETTINGS, 0, s),
    "settings-size": lambda s: frame(SETTINGS, 0, 0, b"\0\0\0\0\0"),
    "settings-ack": lambda s: frame(SETTINGS, ACK, 0, b"\0\3\0\0\0\1"),
    "settings-window": lambda s: setting(4, 1 << 31),
    "settings-frame": lambda s: setting(5, 100),
    "push": lambda s: frame(PUSH, END_HEADERS, s, struct.pack(">I", 2) + b"\x82\x86\x84"),
    "ping-on-stream": lambda s: frame(PING, 0, s, b"12345678"),
    "ping-size": lambda s: frame(PING, 0, 0, b"1234567"),
    "goaway-on-stream": lambda s: frame(GOAWAY, 0, s, b"\0" * 8),
    "goaway-size": lambda s: frame(GOAWAY, 0, 0, b"\0" * 7),
    "window-zero": lambda s: frame(WINDOW, 0, 0, b"\0\0\0\0"),
    "window-overflow": lambda s: frame(WINDOW, 0, 0, b"\x7f\xff\xff\xff") * 2,
    "window-of-stream-overflow": lambda s: frame(WINDOW, 0, s, b"\x7f\xff\xff\xff") * 2,
    "window-size": lambda s: frame(WINDOW, 0, 0, b"\0\0\1"),
    "continuation": lambda s: frame(CONTINUATION, END_HEADERS, s, OK),
    "interleaved": lambda s: head(s, OK, 0) + frame(PING, 0, 0, b"12345678"),
    "other-continuation": lambda s: head(s, OK, 0) + frame(CONTINUATION, END_HEADERS, s + 2, b""),
    "continuations": lambda s: head(s, OK, 0) + frame(CONTINUATION, 0, s, b"") * 1000,
    # 8: messages
    "no-status": lambda s: head(s, literal(b"x", b"y")) + data(s),
    "two-statuses": status(OK + OK),
    "status-99": status(literal(b":status", b"99")),
    "status-600": status(literal(b":status", b"600")),
    "status-word": status(literal(b":status", b"2xx")),
    "status-101": status(literal(b":status", b"101")),
    "status-late": lambda s: head(s, literal(b"x", b"y") + OK) + data(s),
    "path-in-answer": status(OK + literal(b":path", b"/")),
    "upper-case": field(b"X-Upper", b"y"),
    "no-name": field(b"", b"y"),
    "connection": field(b"connection", b"close"),
    "transfer-encoding": field(b"transfer-encoding", b"chunked"),
    "upgrade": field(b"upgrade", b"h2c"),
    "keep-alive": field(b"keep-alive", b"timeout=5"),
    "line-end": field(b"x", b"a\r\nset-cookie: b"),
    "nul": field(b"x", b"a\0b"),
    "line-end-in-name": field(b"x\r\ny", b"z"),
    "space-in-name": field(b"x y", b"z"),
    "length-short": lambda s: head(s, OK + literal(b"content-length", b"100")) + data(s),
    "length-long": lambda s: head(s, OK + literal(b"content-length", b"2")) + data(s),
    "length-twice": status(OK + literal(b"content-length", b"5") * 2),
    "length-word": status(OK + literal(b"content-length", b"5x")),
    "body-of-204": lambda s: head(s, literal(b":status", b"204")) + data(s),
    "interim-end": lambda s: head(s, literal(b":status", b"103"), END_HEADERS | END_STREAM),
    "interims": lambda s: head(s, literal(b":status", b"103")) * 100,
    "trailers-open": lambda s: head(s) + data(s, flags=0) + head(s, literal(b"x", b"y")),
    "trailers-pseudo": lambda s: head(s) + data(s, flags=0) + head(s, OK, END_HEADERS | END_STREAM),
    "trailers-many": lambda s: head(s) + data(s, flags=0)
    + head(s, literal(b"x", b"y") * 100, END_HEADERS | END_STREAM),
    "bomb": lambda s: head(s, OK + b"\x40" + REFERENCES[1:] + b"\xbe" * 12000),
    # Ends without END_STREAM
    "close": lambda s: head(s) + data(s, flags=0) + b"close",
    "close-at-once": lambda s: b"close",
    "half-a-frame": lambda s: head(s) + data(s)[:12] + b"close",
    # Floods
    "flood-settings": lambda s: frame(SETTINGS) * 20000,
    "flood-ping": lambda s: frame(PING, 0, 0, b"12345678") * 20000,
    "flood-empty-data": lambda s: head(s) + data(s, b"", 0) * 20000,
    "flood-window": lambda s: frame(WINDOW, 0, 0, b"\0\0\0\1") * 20000,
    "flood-priority": lambda s: frame(PRIORITY, 0, s, b"\0\0\0\3\x10") * 20000,
    "flood-unknown": lambda s: frame(0xBE, 0, s, b"") * 20000,
    "flood-reset": lambda s: reset(s, 8) * 20000,
    # Correct, but unusual
    "ok": lambda s: head(s) + data(s),
    "waiting": lambda s: head(s) + data(s),
    "half-close": lambda s: head(s) + data(s) + b"half-close",
    "padded": lambda s: head(s) + frame(DATA, PADDED | END_STREAM, s, b"\3hello\0\0\0"),
    "ended-then-reset": lambda s: head(s) + data(s) + reset(s, 0),
    "last-words": lambda s: head(s) + data(s) + frame(GOAWAY, 0, 0, struct.pack(">II", s, 0)) + setting(3, 100),
    "empty-end": lambda s: head(s) + data(s, flags=0) + data(s, b""),
    "interim": lambda s: head(s, literal(b":status", b"103")) + head(s) + data(s),
    "unknown-frame": lambda s: frame(0xBE, 0xFF, 0, b"x") + head(s) + data(s),
    "unknown-setting": lambda s: setting(0x99, 1) + head(s) + data(s),
    "ping": lambda s: frame(PING, 0, 0, b"12345678") + head(s) + data(s),
    "trailers": lambda s: head(s) + data(s, flags=0) + head(s, literal(b"x", b"y"), END_HEADERS | END_STREAM),
    # A server or a network that fails silently.
    "silence": lambda s: b"silence",
    "smallest-window": lambda s: setting(4, 0) + head(s) + data(s),
}
for code in range(14):
    CASES[f"reset-{code}"] = lambda s, code=code: reset(s, code)
    CASES[f"cut-{code}"] = lambda s, code=code: head(s) + data(s, flags=0) + reset(s, code)

seen = set()


def answer(path, stream):
    name = path.strip("/")
    # Refuses the first request for each path, in a way that shows that the request was not processed.
    if name.startswith("once-"):
        if name not in seen:
            seen.add(name)
            return {
                "once-goaway": frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0)) + b"close",
                "once-refused": reset(stream, 7),
                "once-goaway-refused": frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0)),
            }[name]
        name = "ok"
    return CASES[name](stream)


def serve(connection):
    try:
        reader = connection.makefile("rb")
        if reader.read(24) != b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":
            return
        refuses = "refuses" in sys.argv
        if not refuses:
            connection.sendall(setting(3, 1) if "one-stream" in sys.argv else frame(SETTINGS))
        decoder = hpack.Decoder()
        while len(start := reader.read(9)) == 9:
            payload = reader.read(int.from_bytes(start[:3], "big"))
            if start[3] == SETTINGS and not start[4] & ACK and not refuses:
                connection.sendall(frame(SETTINGS, ACK))
            if start[3] == SETTINGS and start[4] & ACK:
                refuses = False
            if start[3] != HEADERS:
                continue
            fields = dict(decoder.decode(payload))
            stream = int.from_bytes(start[5:], "big")
            if refuses and stream == 1:
                # Another request is on its way, if any other is; it is refused then.
                select.select([connection], [], [], 0.2)
                connection.sendall(setting(3, 1) + frame(SETTINGS, ACK))
            elif refuses:
                print("refused", flush=True)
                connection.sendall(reset(stream, 7))
                continue
            frames = answer(fields[":path"], int.from_bytes(start[5:], "big"))
            print(fields[":path"], flush=True)
            if frames.endswith(b"half-close"):
                # Gives another request time to begin its wait for this stream's end.
                time.sleep(0.25)
                connection.sendall(frames.removesuffix(b"half-close"))
                connection.shutdown(socket.SHUT_WR)
                continue
            if frames == b"silence":
                while reader.read(1):
                    pass
                return
            connection.sendall(frames.removesuffix(b"close"))
            if frames.endswith(b"close"):
                return
    except OSError:
        pass
    finally:
        connection.close()


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()
