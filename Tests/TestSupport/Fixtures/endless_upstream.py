"""An upstream whose answers never end. The path names the bytes that are repeated as fast as the client reads them.

endless_upstream.py CERTIFICATE KEY: prints a port for plain HTTP, where the path is a name in PLAIN. Then prints a port
with HTTP/2 over TLS for each name in FRAMES, in alphabetical order.
"""

import socket
import ssl
import struct
import sys
import threading


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
# The bytes sent once, and the bytes then sent without end.
PLAIN = {
    "chunks": (CHUNKED, b"1\r\nx\r\n" * 4000),
    "body": (OK + b"Content-Length: 1000000000000\r\n\r\n", b"x" * 65536),
    "close": (OK + b"\r\n", b"x" * 65536),
    "trailers": (CHUNKED + b"1\r\nx\r\n0\r\n", b"X-Trailer: value\r\n" * 2000),
    "trailer": (CHUNKED + b"1\r\nx\r\n0\r\nX-Trailer: ", b"v" * 65536),
    "extension": (CHUNKED + b"1;", b"e" * 65536),
    "extensions": (CHUNKED, b"1;a=b\r\nx\r\n" * 4000),
    "interim": (b"", b"HTTP/1.1 103 Hints\r\n\r\n" * 2000),
    "interims": (b"", b"HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n" * 2000),
    "fields": (OK, b"X-Field: value\r\n" * 2000),
    "field": (OK + b"X-Field: ", b"v" * 65536),
    "reason": (b"HTTP/1.1 200 ", b"v" * 65536),
    "blank": (b"", b"\r\n" * 30000),
    "refused": (b"HTTP/1.1 401 No\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 4000),
}
SERVER = frame(4)
HEADERS = frame(1, 4, 1, b"\x88")
FRAMES = {
    "data": (HEADERS, frame(0, 0, 1, b"x") * 2000),
    "large-data": (HEADERS, frame(0, 0, 1, b"x" * 16384) * 4),
    "empty-data": (HEADERS, frame(0, 0, 1) * 3000),
    "padding": (HEADERS, frame(0, 8, 1, b"\xff" + b"\0" * 255) * 200),
    "window": (HEADERS, frame(8, 0, 0, b"\0\0\0\1") * 3000),
    "window-of-stream": (HEADERS, frame(8, 0, 1, b"\0\0\0\1") * 3000),
    "priority": (HEADERS, frame(2, 0, 1, b"\0\0\0\3\x10") * 3000),
    "ping": (HEADERS, frame(6, 0, 0, b"12345678") * 2000),
    "settings": (HEADERS, frame(4) * 3000),
    "unknown": (HEADERS, frame(0xBE, 0, 1, b"x" * 100) * 500),
    "early-window": (b"", frame(8, 0, 0, b"\0\0\0\1") * 3000),
    "early-priority": (b"", frame(2, 0, 1, b"\0\0\0\3\x10") * 3000),
    "early-ping": (b"", frame(6, 0, 0, b"12345678") * 2000),
    "interim": (b"", frame(1, 4, 1, b"\x08\x03103") * 1000),
    "continuation": (frame(1, 0, 1, b"\x88"), frame(9, 0, 1, b"\x00\x01a\x01b" * 1000)),
    "trailers": (HEADERS + frame(1, 1, 1, b""), frame(9, 0, 1, b"\x00\x01a\x01b" * 1000)),
}


def take(connection, end):
    received = b""
    while end not in received:
        piece = connection.recv(65536)
        if not piece:
            raise OSError("left")
        received += piece
    return received


def swallow(connection):
    try:
        while connection.recv(65536):
            pass
    except OSError:
        pass


def serve(raw, context):
    try:
        connection = context.wrap_socket(raw, server_side=True) if context else raw
        if context and connection.selected_alpn_protocol() == "h2":
            take(connection, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            connection.sendall(SERVER)
            first, then = FRAMES[context.mode]
            connection.recv(65536)
        else:
            path = take(connection, b"\r\n\r\n").split()[1].decode()
            first, then = PLAIN[path.rsplit("/", 1)[1]]
        connection.sendall(first)
        if raw is connection:
            threading.Thread(target=swallow, args=(connection,), daemon=True).start()
        while True:
            connection.sendall(then)
    except OSError:
        pass


def listen(context):
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    def accept():
        while True:
            raw, _ = listener.accept()
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(raw, context), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


class Context(ssl.SSLContext):
    mode = None


ports = [listen(None)]
for mode in sorted(FRAMES):
    context = Context(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    context.set_alpn_protocols(["h2"])
    context.mode = mode
    ports.append(listen(context))
print(*ports, flush=True)
threading.Event().wait()
