"""Asks HOST:PORT for 100 bodies on one connection of HTTP/2 whose windows stay closed, and prints when all heads have come."""

import sys
import time

import http2_hostile as raw

host, port = sys.argv[1].split(":")
connection = raw.Connection((host, int(port)))
connection.socket.settimeout(60)
connection.send(raw.PREFACE + raw.setting(4, 0) + b"".join(raw.get(2 * index + 1) for index in range(100)))
heads = 0
for kind, _, _ in connection.frames():
    heads += kind == raw.HEADERS
    if heads == 100:
        break
print(f"{heads} heads", flush=True)
time.sleep(60)
