"""A proxy for CONNECT that is reached over TLS and offers HTTP/2 and HTTP/1.1 by ALPN. Prints its port, then the version that
each client chose and its first line. Arguments: a certificate and its key."""

import select
import socket
import ssl
import sys
import threading

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(*sys.argv[1:3])
context.set_alpn_protocols(["h2", "http/1.1"])
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)


def serve(raw):
    client = context.wrap_socket(raw, server_side=True)
    head = b""
    while b"\r\n\r\n" not in head and (piece := client.recv(4096)):
        head += piece
    line = head.split(b"\r\n")[0].decode()
    print(client.selected_alpn_protocol(), line, flush=True)
    server = socket.create_connection(("127.0.0.1", int(line.split()[1].rsplit(":", 1)[1])))
    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        ready = [client] if client.pending() else select.select([client, server], [], [])[0]
        for side, other in ((client, server), (server, client)):
            if side in ready:
                piece = side.recv(65536)
                if not piece:
                    return
                other.sendall(piece)


while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
