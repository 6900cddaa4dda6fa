"""Holds connections to a Unix socket: `idle_connections.py PATH COUNT`. Half of them have sent a part of a message. Prints
`ready`, and ends with its standard input."""

import socket
import sys

held = []
for number in range(int(sys.argv[2])):
    one = socket.socket(socket.AF_UNIX)
    one.connect(sys.argv[1])
    if number % 2:
        one.sendall(b"\x30\0\0\0part")
    held.append(one)
print("ready", flush=True)
sys.stdin.read()
