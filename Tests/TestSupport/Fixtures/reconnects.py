"""Clients that connect and leave again as fast as the machine can.

    reconnects.py PORT CLIENTS HOW [REQUEST]

HOW ends a connection: `close` or `reset`. REQUEST, with \\r and \\n as escapes, is sent first. Each client has its own
loopback address, so that clients do not take ports from each other. Prints the number of connections each second. Ends
when the parent process ends.
"""

import ctypes
import multiprocessing
import os
import signal
import socket
import struct
import sys
import time

BIND_ADDRESS_NO_PORT = 24  # IP_BIND_ADDRESS_NO_PORT of ip(7)


def end_with(parent):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG of prctl(2)
    if os.getppid() != parent:
        sys.exit()


def client(number, port, resets, request, made, parent):
    end_with(parent)
    while True:
        connection = socket.socket()
        try:
            connection.setsockopt(socket.IPPROTO_IP, BIND_ADDRESS_NO_PORT, 1)
            connection.bind((f"127.0.1.{number + 1}", 0))
            connection.settimeout(2)
            connection.connect(("127.0.0.1", port))
            if request:
                connection.sendall(request)
            if resets:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            made[number] += 1
        except OSError:
            pass
        connection.close()


def main():
    port, clients, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    request = sys.argv[4].encode().decode("unicode_escape").encode() if len(sys.argv) > 4 else b""
    made = multiprocessing.Array("L", clients, lock=False)
    end_with(os.getppid())
    for number in range(clients):
        multiprocessing.Process(
            target=client, args=(number, port, how == "reset", request, made, os.getpid()),
            daemon=True).start()
    while True:
        time.sleep(1)
        print(sum(made), flush=True)


main()
