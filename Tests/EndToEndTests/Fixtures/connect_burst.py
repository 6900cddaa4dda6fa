"""Opens many connections to a port at once and holds them, silent: connect_burst.py PORT COUNT.

Prints `sent N` when all have been asked for; ends when it is killed.
"""

import errno
import resource
import signal
import socket
import sys

PORT, COUNT = map(int, sys.argv[1:])
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
sockets = []
for _ in range(min(COUNT, limit - 50)):
    connection = socket.socket()
    connection.setblocking(False)
    if connection.connect_ex(("127.0.0.1", PORT)) not in (0, errno.EINPROGRESS):
        break
    sockets.append(connection)
print("sent", len(sockets), flush=True)
signal.pause()
