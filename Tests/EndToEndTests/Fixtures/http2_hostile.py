"""A hostile client of HTTP/2: sends one connection for each case to HOST:PORT, and prints the cases that end in another way than
RFC 9113 says, then the number of all.

`goaway CODE`: the connection ended. In all other cases it must go on to serve. `reset CODE`, `status N`: end of the case's first
stream. `ignored`: nothing came of it. A `closed` connection ended without GOAWAY. Beside the cases, one connection of a good client must
stay served. Frames and field blocks are written by hand, because h2 refuses to write wrong ones.
"""

import socket
import struct
import sys

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITIZED = 1, 1, 4, 8, 32
END = END_HEADERS | END_STREAM
GET = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "HOST")]
POST = [(":method", "POST")] + GET[1:]
LAST = 0x6001


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def number(value):
    return struct.pack(">I", value)


def integer(value):
    """An integer with a prefix of 7 bits (RFC 7541, section 5.1)."""
    if value < 127:
        return bytes([value])
    value, out = value - 127, b"\x7f"
    while value >= 128:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


def block(lines):
    """Literal fields without indexing."""
    out = b""
    for name, value in lines:
        name, value = name.encode("latin-1"), value.replace("HOST", HOST).encode("latin-1")
        out += b"\0" + integer(len(name)) + name + integer(len(value)) + value
    return out


def head(lines, stream=1, flags=END):
    return frame(HEADERS, flags, stream, block(lines))


def get(stream=1, **changes):
    """A GET with changed pseudo-header fields; None leaves one out."""
    lines = [(name, changes.get(name[1:], value)) for name, value in GET]
    return head([line for line in lines if line[1] is not None], stream)


def more(*lines):
    return head(GET + list(lines))


def setting(name, value):
    return frame(SETTINGS, 0, 0, struct.pack(">HI", name, value))


def post(*lines, stream=1):
    """The head of a POST whose body follows."""
    return head(POST + list(lines), stream, END_HEADERS)


HOST = sys.argv[2] if len(sys.argv) > 2 else "api.test"
GOAWAY_1, GOAWAY_3, GOAWAY_6, GOAWAY_9 = "goaway 1", "goaway 3", "goaway 6", "goaway 9"
CALM = "goaway 11"
RESET_1 = "reset 1"

# Behind the preface and an empty SETTINGS frame; by the sections of RFC 9113. Several endings are right in some cases. One differs
# from the RFC: libnghttp2 ignores a head on a lower stream, which may be one that was reset.
CASES = [
    # Frames
    ("4.1 unknown type", frame(0xBE, 0xFF, 0, b"x") + frame(0xBE, 0, 1, b"x"), "ignored"),
    ("4.1 unknown flags", frame(HEADERS, END | 0xC0, 1, block(GET)), "status 200"),
    ("4.1 reserved bit", get(1 | 1 << 31), "status 200"),
    ("4.2 DATA too large", post() + frame(DATA, 0, 1, b"x" * 16385), GOAWAY_6),
    ("4.2 HEADERS too large", frame(HEADERS, END, 1, b"x" * 16385), GOAWAY_6),
    ("4.2 unknown frame too large", frame(0xBE, 0, 0, b"x" * 16385), GOAWAY_6),
    ("4.2 SETTINGS of 5 bytes", frame(SETTINGS, 0, 0, b"x" * 5), GOAWAY_6),
    ("4.2 PING of 7 bytes", frame(PING, 0, 0, b"x" * 7), GOAWAY_6),
    ("4.2 WINDOW_UPDATE of 3 bytes", frame(WINDOW, 0, 0, b"x" * 3), GOAWAY_6),
    ("4.2 RST_STREAM of 3 bytes", post() + frame(RST, 0, 1, b"x" * 3), GOAWAY_6),
    ("4.2 GOAWAY of 7 bytes", frame(GOAWAY, 0, 0, b"x" * 7), GOAWAY_6),
    ("4.2 PRIORITY of 4 bytes", frame(PRIORITY, 0, 1, b"x" * 4), GOAWAY_6),
    ("4.3 Huffman code that ends wrong", frame(HEADERS, END, 1, b"\0\x81\x00\x01x"), GOAWAY_9),
    ("4.3 index 0", frame(HEADERS, END, 1, b"\x80"), GOAWAY_9),
    ("4.3 index beyond the table", frame(HEADERS, END, 1, b"\xff\x7f"), GOAWAY_9),
    ("4.3 number that overflows", frame(HEADERS, END, 1, b"\xff" + b"\xff" * 12), GOAWAY_9),
    ("4.3 table larger than allowed", frame(HEADERS, END, 1, b"\x3f\xff\xff\x03" + block(GET)), GOAWAY_9),
    ("4.3 table resized behind a field", frame(HEADERS, END, 1, block(GET) + b"\x20"), GOAWAY_9),
    ("4.3 field cut short", frame(HEADERS, END, 1, block(GET) + b"\0\x05ab"), GOAWAY_9),
    # States
    ("5.1 DATA on an idle stream", frame(DATA, 0, 1, b"x"), GOAWAY_1),
    ("5.1 RST_STREAM of an idle stream", frame(RST, 0, 1, number(8)), GOAWAY_1),
    ("5.1 WINDOW_UPDATE of an idle stream", frame(WINDOW, 0, 1, number(1)), GOAWAY_1),
    ("5.1 PRIORITY of an idle stream", frame(PRIORITY, 0, 3, b"\0\0\0\0\x10"), "ignored"),
    ("5.1 DATA behind the end", head(POST) + frame(DATA, 0, 1, b"x"), "goaway 5|reset 5"),
    ("5.1 HEADERS behind the end", get() + get(), "goaway 5|reset 5|goaway 1"),
    ("5.1 WINDOW_UPDATE behind a reset", post() + frame(RST, 0, 1, number(8)) + frame(WINDOW, 0, 1, number(1)), "ignored"),
    ("5.1 DATA behind a reset", post() + frame(RST, 0, 1, number(8)) + frame(DATA, 0, 1, b"x"), "ignored|goaway 5"),
    ("5.1 HEADERS behind a reset", post() + frame(RST, 0, 1, number(8)) + get(), "ignored|goaway 5|goaway 1"),
    ("5.1.1 even stream", get(2), GOAWAY_1),
    ("5.1.1 lower stream", get(5) + get(3), "status 200"),
    ("5.1.2 more streams than allowed", b"".join(post(stream=2 * n + 1) for n in range(101)) + frame(RST, 0, 1, number(8)), "reset 7"),
    ("5.3.1 stream that depends on itself", frame(HEADERS, END | PRIORITIZED, 1, b"\0\0\0\1\x10" + block(GET)), "status 200|goaway 1|reset 1"),
    # Frames on wrong streams, and their content
    ("6.1 DATA on stream 0", frame(DATA, 0, 0, b"x"), GOAWAY_1),
    ("6.1 padding as long as the frame", post() + frame(DATA, PADDED, 1, b"\x02x"), GOAWAY_1),
    ("6.1 padding alone", post() + frame(DATA, PADDED | END_STREAM, 1, b"\x03\0\0\0"), "status 200"),
    ("6.2 HEADERS on stream 0", get(0), GOAWAY_1),
    ("6.2 padding longer than the block", frame(HEADERS, PADDED | END, 1, b"\xff\x82"), GOAWAY_1),
    ("6.2 padded block", frame(HEADERS, PADDED | END, 1, b"\x02" + block(GET) + b"\0\0"), "status 200"),
    ("6.3 PRIORITY on stream 0", frame(PRIORITY, 0, 0, b"\0\0\0\3\x10"), GOAWAY_1),
    ("6.4 RST_STREAM of stream 0", frame(RST, 0, 0, number(8)), GOAWAY_1),
    ("6.4 RST_STREAM with an unknown code", post() + frame(RST, 0, 1, number(0xDEADBEEF)), "ignored"),
    ("6.5 SETTINGS on a stream", frame(SETTINGS, 0, 1), GOAWAY_1),
    ("6.5 acknowledgement with a payload", frame(SETTINGS, ACK, 0, b"x" * 6), GOAWAY_6),
    ("6.5 acknowledgement of nothing", frame(SETTINGS, ACK, 0) * 3, "goaway 1|ignored"),
    ("6.5.2 push that is neither on nor off", setting(2, 2), GOAWAY_1),
    ("6.5.2 window above its limit", setting(4, 1 << 31), GOAWAY_3),
    ("6.5.2 frame size below its limit", setting(5, 16383), GOAWAY_1),
    ("6.5.2 frame size above its limit", setting(5, 1 << 24), GOAWAY_1),
    ("6.5.2 unknown setting", setting(0xABCD, 7), "ignored"),
    ("6.5.2 table of no bytes", setting(1, 0) + get(), "status 200"),
    ("6.6 PUSH_PROMISE", frame(PUSH, END_HEADERS, 1, b"\0\0\0\2" + block(GET)), GOAWAY_1),
    ("6.7 PING on a stream", frame(PING, 0, 1, b"x" * 8), GOAWAY_1),
    ("6.7 answer to no PING", frame(PING, ACK, 0, b"x" * 8), "ignored"),
    ("6.8 GOAWAY on a stream", frame(GOAWAY, 0, 1, b"\0" * 8), GOAWAY_1),
    ("6.8 GOAWAY, then a request", frame(GOAWAY, 0, 0, b"\0" * 8) + get(), "status 200"),
    ("6.9 WINDOW_UPDATE by 0", frame(WINDOW, 0, 0, number(0)), GOAWAY_1),
    ("6.9 WINDOW_UPDATE of a stream by 0", post() + frame(WINDOW, 0, 1, number(0)), "reset 1|goaway 1"),
    ("6.9.1 connection's window above its limit", frame(WINDOW, 0, 0, number(0x7FFFFFFF)), GOAWAY_3),
    ("6.9.1 stream's window above its limit", post() + frame(WINDOW, 0, 1, number(0x7FFFFFFF)), "reset 3"),
    ("6.9.1 DATA beyond all windows", post() + frame(DATA, 0, 1, b"x" * 16384) * 200, "goaway 3|reset 3|ignored"),
    ("6.9.2 window that grows above its limit", post() + frame(WINDOW, 0, 1, number(0x7FFF0000)) + setting(4, 0x7FFFFFFF), "goaway 3|reset 3"),
    ("6.10 CONTINUATION without HEADERS", frame(CONTINUATION, END_HEADERS, 1, b"\x82"), GOAWAY_1),
    ("6.10 CONTINUATION behind the block's end", post() + frame(CONTINUATION, END_HEADERS, 1, b"\x82"), GOAWAY_1),
    ("6.10 CONTINUATION of another stream", frame(HEADERS, END_STREAM, 1, b"\x82") + frame(CONTINUATION, END_HEADERS, 3, b"\x86"), GOAWAY_1),
    ("6.10 CONTINUATION on stream 0", frame(HEADERS, END_STREAM, 1, b"\x82") + frame(CONTINUATION, END_HEADERS, 0, b"\x86"), GOAWAY_1),
    ("6.10 other frame within a block", frame(HEADERS, END_STREAM, 1, b"\x82") + frame(PING, 0, 0, b"x" * 8), GOAWAY_1),
    ("6.10 unknown frame within a block", frame(HEADERS, END_STREAM, 1, b"\x82") + frame(0xBE, 0, 1, b"x"), GOAWAY_1),
    ("6.10 block in three frames", frame(HEADERS, END_STREAM, 1, block(GET)[:9]) + frame(CONTINUATION, 0, 1, block(GET)[9:20]) + frame(CONTINUATION, END_HEADERS, 1, block(GET)[20:]), "status 200"),
    # Messages
    ("8.1 trailers that do not end", post() + head([("x", "y")], flags=END_HEADERS), RESET_1),
    ("8.1 second head", post() + get(), RESET_1),
    ("8.1 trailers with a pseudo-header field", post() + head([(":path", "/x")]), RESET_1),
    ("8.1 trailers with transfer-encoding", post() + head([("transfer-encoding", "chunked")]), RESET_1),
    ("8.1 trailers", post() + head([("x", "y")]), "status 200"),
    ("8.1.1 body longer than content-length", post(("content-length", "1")) + frame(DATA, END_STREAM, 1, b"xyz"), RESET_1),
    ("8.1.1 body shorter than content-length", post(("content-length", "9")) + frame(DATA, END_STREAM, 1, b"xyz"), RESET_1),
    ("8.1.1 no body for content-length", more(("content-length", "5")), RESET_1),
    ("8.1.1 content-length that is no number", post(("content-length", "1x")), RESET_1),
    ("8.1.1 content-length with a sign", post(("content-length", "+1")), RESET_1),
    ("8.1.1 content-length beyond 64 bits", post(("content-length", "9" * 30)), RESET_1),
    ("8.1.1 two content-lengths", post(("content-length", "1"), ("content-length", "2")), RESET_1),
    ("8.2.1 name in upper case", more(("X-Upper", "y")), RESET_1),
    ("8.2.1 empty name", more(("", "y")), RESET_1),
    ("8.2.1 name with a space", more(("a b", "c")), RESET_1),
    ("8.2.1 name with a colon", more(("a:b", "c")), RESET_1),
    ("8.2.1 name with a line end", more(("a\r\nb", "c")), RESET_1),
    ("8.2.1 value with CR LF", more(("x", "a\r\nb: c")), RESET_1),
    ("8.2.1 value with LF", more(("x", "a\nb: c")), RESET_1),
    ("8.2.1 value with NUL", more(("x", "a\0b")), RESET_1),
    ("8.2.1 value with DEL", more(("x", "a\x7fb")), RESET_1),
    ("8.2.1 value that begins with a space", more(("x", " a")), RESET_1),
    ("8.2.1 value that ends with a tab", more(("x", "a\t")), RESET_1),
    ("8.2.2 connection", more(("connection", "close")), RESET_1),
    ("8.2.2 keep-alive", more(("keep-alive", "5")), RESET_1),
    ("8.2.2 proxy-connection", more(("proxy-connection", "close")), RESET_1),
    ("8.2.2 transfer-encoding", more(("transfer-encoding", "chunked")), RESET_1),
    ("8.2.2 upgrade", more(("upgrade", "h2c")), RESET_1),
    ("8.2.2 te other than trailers", more(("te", "gzip")), RESET_1),
    ("8.2.3 cookies in pieces", more(("cookie", "a=1"), ("cookie", "b=2")), "status 200"),
    ("8.3 pseudo-header field behind a field", head([("x", "y")] + GET), RESET_1),
    ("8.3 unknown pseudo-header field", head(GET + [(":x", "y")]), RESET_1),
    ("8.3 pseudo-header field of an answer", head(GET + [(":status", "200")]), RESET_1),
    ("8.3 pseudo-header field twice", head(GET + [(":path", "/b")]), RESET_1),
    ("8.3.1 no method", get(method=None), RESET_1),
    ("8.3.1 no scheme", get(scheme=None), RESET_1),
    ("8.3.1 no path", get(path=None), RESET_1),
    ("8.3.1 no authority", get(authority=None), RESET_1),
    ("8.3.1 host in place of the authority", head(GET[:3] + [("host", "HOST")]), "status 200"),
    ("8.3.1 empty path", get(path=""), RESET_1),
    ("8.3.1 path that does not begin with a slash", get(path="x"), RESET_1),
    ("8.3.1 asterisk for GET", get(path="*"), RESET_1),
    ("8.3.1 path with a fragment", get(path="/#x"), "status 400"),
    ("8.3.1 empty method", get(method=""), RESET_1),
    ("8.3.1 other scheme", get(scheme="ftp"), "status 400"),
    ("8.3.1 empty authority", get(authority=""), "reset 1|status 400"),
    ("8.3.1 user information", get(authority="u@api.test"), "status 400|reset 1"),
    ("8.3.1 host that differs", more(("host", "other.test")), "status 400"),
    ("8.3.1 two hosts", head(GET[:3] + [("host", "HOST"), ("host", "HOST")]), RESET_1),
    ("8.5 CONNECT", head([(":method", "CONNECT"), (":authority", "api.test:80")]), "status 501"),
    ("8.5 CONNECT with a path", head([(":method", "CONNECT"), (":authority", "api.test:80"), (":path", "/")]), RESET_1),
    ("RFC 8441 extended CONNECT", head([(":method", "CONNECT"), (":protocol", "websocket")] + GET[1:]), RESET_1),
    # Another request hidden in a field (section 10.3)
    ("10.3 path with a line end", get(path="/ HTTP/1.1\r\nX: y\r\n\r\n"), RESET_1),
    ("10.3 path with a space", get(path="/a b"), RESET_1),
    ("10.3 method with a line end", get(method="GET / HTTP/1.1\r\nX: y\r\n\r\nGET"), RESET_1),
    ("10.3 method with a space", get(method="GET /x"), RESET_1),
    ("10.3 authority with a line end", get(authority="api.test\r\nX: y"), RESET_1),
    ("10.3 authority with a slash", get(authority="api.test/x"), "reset 1|status 400"),
    ("10.3 scheme with a line end", get(scheme="http\r\nX: y"), "reset 1|status 400"),
    ("10.3 expectation that is unknown", more(("expect", "x")), "status 417"),
    # Denial of service (section 10.5)
    ("10.5 CONTINUATION", frame(HEADERS, END_STREAM, 1, b"\x82") + frame(CONTINUATION, 0, 1, b"") * 100, CALM),
    ("10.5 rapid resets", b"".join(get(2 * n + 1) + frame(RST, 0, 2 * n + 1, number(8)) for n in range(5000)), CALM),
    ("10.5 resets that the proxy is made to send", b"".join(post(stream=2 * n + 1) + frame(WINDOW, 0, 2 * n + 1, number(0x7FFFFFFF)) for n in range(5000)), CALM),
    ("10.5 malformed requests", b"".join(head(GET + [("X", "y")], 2 * n + 1) for n in range(5000)), CALM),
    ("10.5 PING", frame(PING, 0, 0, b"x" * 8) * 20000, CALM),
    ("10.5 answers to no PING", frame(PING, ACK, 0, b"x" * 8) * 20000, CALM),
    ("10.5 SETTINGS", frame(SETTINGS, 0, 0) * 20000, CALM),
    ("10.5 large SETTINGS", frame(SETTINGS, 0, 0, struct.pack(">HI", 0xABCD, 7) * 100), CALM),
    ("10.5 empty DATA", post() + frame(DATA, 0, 1) * 20000, CALM),
    ("10.5 DATA of padding", post() + frame(DATA, PADDED, 1, b"\x10" + b"\0" * 16) * 20000, CALM),
    ("10.5 WINDOW_UPDATE", frame(WINDOW, 0, 0, number(1)) * 20000, CALM),
    ("10.5 PRIORITY", frame(PRIORITY, 0, 3, b"\0\0\0\0\x10") * 20000, CALM),
    ("10.5 unknown frames", frame(0xBE, 0, 0, b"x") * 20000, "ignored"),
    ("10.5 GOAWAY", frame(GOAWAY, 0, 0, b"\0" * 8) * 20000, "closed|goaway 11"),
    ("10.5.1 head of many fields", more(*[("x", "y")] * 300), "status 431"),
    ("10.5.1 large head", frame(HEADERS, END_STREAM, 1, block(GET)) + frame(CONTINUATION, 0, 1, block([("a", "b" * 12384)])) * 6 + frame(CONTINUATION, END_HEADERS, 1, b""), "status 431"),
    ("10.5.1 few bytes that stand for many", frame(HEADERS, END, 1, block(GET) + b"\x40\x01a" + integer(3000) + b"b" * 3000 + b"\xbe" * 10000), "status 431"),
    ("10.5.1 large field", frame(HEADERS, END_STREAM, 1, block(GET) + b"\0\x01a" + integer(70000)) + frame(CONTINUATION, 0, 1, b"b" * 16384) * 4 + frame(CONTINUATION, END_HEADERS, 1, b"b" * 4464), "status 431|goaway 9"),
]

# Sent instead of the preface.
PREFACES = [
    ("3.4 preface that goes wrong", b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", "HTTP/1.1 400"),
    ("3.4 PING before SETTINGS", PREFACE + frame(PING, 0, 0, b"x" * 8), "goaway 1"),
    ("3.4 request before SETTINGS", PREFACE + get(), "goaway 1"),
    ("3.4 acknowledgement before SETTINGS", PREFACE + frame(SETTINGS, ACK, 0), "goaway 1"),
    ("3.4 HTTP/1.1 behind the preface", PREFACE + b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n", "goaway 1|goaway 6"),
    ("3.3 Upgrade: h2c", b"GET / HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", "HTTP/1.1 200"),
]


class Connection:
    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=20)
        self.data, self.decoder = b"", hpack.Decoder()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # The proxy ended a flood before its last byte.

    def frames(self):
        """Kind, stream and payload of each frame until the end; the text of HTTP/1.1 as kind None."""
        while True:
            if self.data[:5] == b"HTTP/":
                yield None, 0, self.data
            while len(self.data) >= 9 and len(self.data) >= 9 + int.from_bytes(self.data[:3], "big"):
                size, kind, stream = int.from_bytes(self.data[:3], "big"), self.data[3], int.from_bytes(self.data[5:9], "big")
                payload, self.data = self.data[9 : 9 + size], self.data[9 + size :]
                yield kind, stream, payload
            try:
                piece = self.socket.recv(65536)
            except OSError:
                piece = b""
            if not piece:
                return
            self.data += piece

    def ending(self, expects, last):
        """The outcome, up to the answer of the stream `last`."""
        found, is_served = None, False
        for kind, stream, payload in self.frames():
            if kind is None:
                return payload[:12].decode()
            if kind == GOAWAY:
                return f"goaway {int.from_bytes(payload[4:8], 'big')}"
            if kind == RST and stream == last:
                return f"{found}, then refused"
            if kind == RST:
                found = found or f"reset {int.from_bytes(payload[:4], 'big')}"
            if kind == HEADERS:
                status = dict(self.decoder.decode(payload)).get(":status", "trailers")
                if stream == last:
                    if status != "200":
                        return f"{found}, then {status}"
                    is_served = True
                else:
                    found = found or f"status {status}"
            if is_served and (found or "ignored" in expects):
                return found or "ignored"
        return "closed"


def main():
    host, port = sys.argv[1].split(":")
    address, wrong = (host, int(port)), 0
    steady, stream = Connection(address), 1
    steady.send(PREFACE + frame(SETTINGS, 0, 0))
    cases = [(name, PREFACE + frame(SETTINGS, 0, 0) + case, expects) for name, case, expects in CASES]
    for name, case, expects in cases + [(n, c.replace(b"HOST", HOST.encode()), e) for n, c, e in PREFACES]:
        connection = Connection(address)
        connection.send(case + (b"" if case[:3] == b"GET" else get(LAST)))
        ending = connection.ending(expects, LAST)
        connection.socket.close()
        if ending not in expects.split("|"):
            wrong += 1
            print(f"{name}: {ending} instead of {expects}", flush=True)
        steady.send(get(stream))
        served = steady.ending("ignored", stream)
        stream += 2
        if served != "ignored":
            wrong += 1
            print(f"{name}: the other connection {served}", flush=True)
            break
    print(f"{len(cases) + len(PREFACES)} cases, {wrong} wrong")


if __name__ == "__main__":
    main()
