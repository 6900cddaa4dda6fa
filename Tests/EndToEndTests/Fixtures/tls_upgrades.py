"""Ends of upgraded connections over TLS, good and bad: tls_upgrades.py CERTIFICATE KEY. Prints its port.

Agrees to every upgrade and then does what the path says, with a line for what it saw of the other side:
/echo         says again what it hears until the other side ends
/farewell     says "bye" and ends TLS, but not TCP
/silent-end   says "bye" and ends TCP without ending TLS
/reset        says "bye" and resets
"""

import socket
import ssl
import struct
import sys
import threading
import time

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(*sys.argv[1:])


def serve(plain):
    connection = context.wrap_socket(plain, server_side=True)
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(65536)
    path = head.split()[1].decode()
    name = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"upgrade:"))
    connection.sendall(b"HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\n" + name + b"\r\n\r\n")
    if path == "/echo":
        try:
            while piece := connection.recv(65536):
                connection.sendall(piece)
        except OSError:
            pass
        print("ended", path, flush=True)
        return connection.close()
    connection.sendall(b"bye")
    if path == "/farewell":
        connection.settimeout(10)
        try:
            connection.unwrap()
        except OSError:
            pass
        print("ended", path, flush=True)
        time.sleep(10)
    elif path == "/silent-end":
        plain = socket.socket(fileno=connection.detach())
        plain.shutdown(socket.SHUT_WR)
        while plain.recv(65536):
            pass
        print("ended", path, flush=True)
    elif path == "/reset":
        time.sleep(0.2)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        socket.socket(fileno=connection.detach()).close()


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
