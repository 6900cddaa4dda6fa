"""Outlives the enclosed program: waits until an address is refused, and prints the outcome at each address."""

import errno
import socket
import time

QUERY = b"\0\7\1\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\1"


def dial(address, kind):
    with socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, kind) as one:
        one.settimeout(30)
        try:
            one.connect(address)
            if kind == socket.SOCK_DGRAM:
                one.send(QUERY)
                one.recv(512)
            return "connected"
        except OSError as error:
            return errno.errorcode.get(error.errno, "silence")


def outcome(address, kind=socket.SOCK_STREAM):
    while (outcome := dial(address, kind)) == "connected":
        time.sleep(0.05)
    return f"{address[0]} {address[1]}: {outcome}"


for host in ("127.0.0.1", "192.0.2.1", "198.18.0.1", "::1", "2001:db8::1"):
    for port in (80, 443, 53):
        print(outcome((host, port)))
    print(outcome((host, 53), socket.SOCK_DGRAM))
print(outcome(("192.0.2.7", 5432)))
print("all", flush=True)
