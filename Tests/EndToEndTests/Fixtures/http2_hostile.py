"""Sends one connection of HTTP/2 for each case to HOST:PORT, and prints the case's name and how the proxy ended it.

An ending is `goaway CODE`, `reset CODE`, `status N` or `closed`. Frames are written by hand, because h2 refuses to write wrong
ones; hpack encodes the fields.
"""

import socket
import struct
import sys

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED = 1, 4, 8
GET = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "api.test")]
POST = [(":method", "POST")] + GET[1:]


def frame(kind, flags, stream, payload=b"", length=None):
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def fields(lines, stream=1, flags=END_HEADERS | END_STREAM):
    return frame(HEADERS, flags, stream, hpack.Encoder().encode(lines, huffman=False))


def get(stream=1, **changes):
    return fields([(name, changes.get(name[1:], value)) for name, value in GET], stream)


def more(*lines):
    return fields(GET + list(lines))


SETTING = lambda name, value: frame(SETTINGS, 0, 0, struct.pack(">HI", name, value))

# By the sections of RFC 9113.
CASES = {
    # 4.1, 4.2: sizes
    "4.2 frame too large": frame(DATA, 0, 1, b"x" * 16385),
    "4.2 settings of a wrong size": frame(SETTINGS, 0, 0, b"x" * 5),
    "4.2 ping of a wrong size": frame(PING, 0, 0, b"x" * 7),
    "4.2 window update of a wrong size": frame(WINDOW, 0, 0, b"x" * 3),
    "4.2 reset of a wrong size": get() + frame(RST, 0, 1, b"x" * 3),
    "4.3 broken compression": frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\xff\xff\xff\xff\xff\xff\xff\xff"),
    # 5.1: states
    "5.1 data on an idle stream": frame(DATA, 0, 1, b"x"),
    "5.1 reset of an idle stream": frame(RST, 0, 1, struct.pack(">I", 8)),
    "5.1 window update of an idle stream": frame(WINDOW, 0, 1, struct.pack(">I", 1)),
    "5.1 data behind the end": fields(POST) + frame(DATA, 0, 1, b"x"),
    "5.1 head behind the end": get() + get(),
    "5.1.1 even stream": get(2),
    "5.1.1 lower stream": get(5) + get(3),
    # 6: frames on wrong streams
    "6.1 data on stream 0": frame(DATA, 0, 0, b"x"),
    "6.1 padding longer than the frame": fields(POST, flags=END_HEADERS) + frame(DATA, PADDED, 1, b"\x09x"),
    "6.2 head on stream 0": get(0),
    "6.2 padding longer than the head": frame(HEADERS, PADDED | END_HEADERS, 1, b"\xff\x82"),
    "6.3 priority on stream 0": frame(PRIORITY, 0, 0, b"\0\0\0\3\x10"),
    "6.4 reset of stream 0": frame(RST, 0, 0, struct.pack(">I", 8)),
    "6.5 settings on a stream": frame(SETTINGS, 0, 1),
    "6.5 acknowledgement with a payload": frame(SETTINGS, 1, 0, b"x" * 6),
    "6.5.2 push that is neither": SETTING(2, 2),
    "6.5.2 window too large": SETTING(4, 1 << 31),
    "6.5.2 frame size too small": SETTING(5, 100),
    "6.6 push from a client": frame(PUSH, END_HEADERS, 1, b"\0\0\0\2"),
    "6.7 ping on a stream": frame(PING, 0, 1, b"x" * 8),
    "6.8 goaway on a stream": frame(GOAWAY, 0, 1, b"\0" * 8),
    "6.9 window update by 0": frame(WINDOW, 0, 0, struct.pack(">I", 0)),
    "6.9.1 connection window above its limit": frame(WINDOW, 0, 0, struct.pack(">I", 0x7FFFFFFF)),
    "6.9.1 stream window above its limit": fields(POST, flags=END_HEADERS)
    + frame(WINDOW, 0, 1, struct.pack(">I", 0x7FFFFFFF)),
    "6.10 continuation without a head": frame(CONTINUATION, END_HEADERS, 1, b"\x82"),
    "6.10 other frame within a head": frame(HEADERS, END_STREAM, 1, b"\x82") + frame(PING, 0, 0, b"x" * 8),
    # 8: messages
    "8.1 trailers without an end": fields(POST, flags=END_HEADERS) + fields([("x", "y")], flags=END_HEADERS),
    "8.1.1 body longer than content-length": fields(POST + [("content-length", "1")], flags=END_HEADERS)
    + frame(DATA, END_STREAM, 1, b"xyz"),
    "8.1.1 body shorter than content-length": fields(POST + [("content-length", "9")], flags=END_HEADERS)
    + frame(DATA, END_STREAM, 1, b"xyz"),
    "8.2.1 name in upper case": more(("X-Upper", "y")),
    "8.2.1 value with a line end": more(("x", "a\r\nb: c")),
    "8.2.1 name with a colon": more(("a:b", "c")),
    "8.2.2 connection": more(("connection", "close")),
    "8.2.2 transfer-encoding": more(("transfer-encoding", "chunked")),
    "8.2.2 te other than trailers": more(("te", "gzip")),
    "8.3 pseudo-header field behind a field": fields([("x", "y")] + GET),
    "8.3 unknown pseudo-header field": fields(GET + [(":x", "y")]),
    "8.3 pseudo-header field twice": fields(GET + [(":path", "/b")]),
    "8.3.1 no path": fields([line for line in GET if line[0] != ":path"]),
    "8.3.1 empty path": get(path=""),
    "8.3.1 path with a fragment": get(path="/#x"),
    "8.3.1 other scheme": get(scheme="ftp"),
    "8.3.1 user information": get(authority="u@api.test"),
    "8.3.1 host that differs": more(("host", "other.test")),
    "8.5 CONNECT": fields([(":method", "CONNECT"), (":authority", "api.test:80")]),
    # 10.5: floods
    "10.5 continuations": frame(HEADERS, END_STREAM, 1, b"\x82") + frame(CONTINUATION, 0, 1, b"") * 100,
    "10.5 rapid resets": b"".join(get(2 * n + 1) + frame(RST, 0, 2 * n + 1, struct.pack(">I", 8)) for n in range(5000)),
    "10.5 resets that the proxy is made to send": b"".join(
        fields(POST, 2 * n + 1, END_HEADERS) + frame(WINDOW, 0, 2 * n + 1, struct.pack(">I", 0x7FFFFFFF))
        for n in range(5000)
    ),
    "10.5 pings": frame(PING, 0, 0, b"x" * 8) * 20000,
    "10.5 settings": frame(SETTINGS, 0, 0) * 20000,
    "10.5 empty data": fields(POST, flags=END_HEADERS) + frame(DATA, 0, 1) * 20000,
    "10.5 window updates": frame(WINDOW, 0, 0, struct.pack(">I", 1)) * 20000,
    "10.5 priorities": frame(PRIORITY, 0, 3, b"\0\0\0\0\x10") * 20000,
    "10.5 many streams": b"".join(fields(POST, 2 * n + 1, END_HEADERS) for n in range(300)),
    "10.5.1 large head": b"".join(
        [frame(HEADERS, END_STREAM, 1, hpack.Encoder().encode(GET, huffman=False))]
        + [frame(CONTINUATION, END_HEADERS if n == 5 else 0, 1, b"\0\x01a\x7f\x81\x60" + b"b" * 12384) for n in range(6)]
    ),
}


def ending(connection):
    """Reads frames until the first that ends the stream or the connection."""
    data = b""
    while True:
        while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3], "big"):
            size, kind = int.from_bytes(data[:3], "big"), data[3]
            payload, data = data[9 : 9 + size], data[9 + size :]
            if kind == GOAWAY:
                return f"goaway {int.from_bytes(payload[4:8], 'big')}"
            if kind == RST:
                return f"reset {int.from_bytes(payload[:4], 'big')}"
            if kind == HEADERS:
                return f"status {dict(hpack.Decoder().decode(payload))[':status']}"
        try:
            piece = connection.recv(65536)
        except ConnectionError:
            return "closed"
        if not piece:
            return "closed"
        data += piece


def run(address, case):
    with socket.create_connection(address, timeout=20) as connection:
        try:
            connection.sendall(PREFACE + frame(SETTINGS, 0, 0) + case)
        except ConnectionError:
            pass  # The proxy ended a flood before its last byte.
        return ending(connection)


if __name__ == "__main__":
    host, port = sys.argv[1].split(":")
    for name, case in CASES.items():
        print(f"{name}: {run((host, int(port)), case)}", flush=True)
        served = run((host, int(port)), get())
        if served != "status 200":
            print(f"behind it: {served}", flush=True)
