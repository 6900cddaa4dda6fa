"""TLS handshakes by the proxy, each on a connection of its own.

    handshakes.py PORT ROOTS
        Reads lines from standard input and prints one for each when it is done:
            full COUNT      handshakes with `api.test`, each with a request that the proxy answers itself
            resumed COUNT   the same by the former connection's session; prints how many were resumed
            begun COUNT     connections that stay open after all, a part or none of a ClientHello
            left            closes those
"""

import socket
import ssl
import sys

port, roots = int(sys.argv[1]), sys.argv[2]
context = ssl.create_default_context(cafile=roots)
REQUEST = b"OPTIONS / HTTP/1.1\r\nHost: api.test\r\nMax-Forwards: 0\r\nConnection: close\r\n\r\n"


def connect():
    connection = socket.create_connection(("127.0.0.1", port), 30)
    connection.sendall(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n")
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        answer += connection.recv(1)
    assert answer.startswith(b"HTTP/1.1 200 "), answer
    return connection


def handshakes(count, resumes):
    session, resumed = None, 0
    for _ in range(count):
        with context.wrap_socket(
            connect(), server_hostname="api.test", session=session, suppress_ragged_eofs=False
        ) as tls:
            tls.sendall(REQUEST)
            assert tls.recv(65536).startswith(b"HTTP/1.1 200 ")
            while tls.recv(65536):
                pass
            resumed += tls.session_reused
            session = tls.session if resumes else None
    return resumed


def hello():
    outgoing = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="api.test").do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()


begun = []
for line in sys.stdin:
    match line.split():
        case ["full", count]:
            handshakes(int(count), False)
            print("done", flush=True)
        case ["resumed", count]:
            print(handshakes(int(count), True), flush=True)
        case ["begun", count]:
            first = hello()
            for number in range(int(count)):
                begun.append(connect())
                begun[-1].sendall(first[: number % 3 * len(first) // 2])
            print("done", flush=True)
        case ["left"]:
            for connection in begun:
                connection.close()
            print("done", flush=True)
