"""Starts a program as systemd does, with listening sockets: activate.py SOCKET... -- COMMAND...

A SOCKET is [NAME=]WHAT: HOST:PORT, unix:PATH or unix:MODE:PATH (octal), or an unusable one: udp, pipe, closed,
connected, abstract. With --notify FILE, the program's notifications are written to FILE, one a line.
"""

import os
import select
import socket
import sys

words = sys.argv[1:]
notify = None
if words[0] == "--notify":
    notify, words = words[1], words[2:]
end = words.index("--")
specifications, command = words[:end], words[end + 1 :]
held, names = [], []
for specification in specifications:
    name, equals, what = specification.rpartition("=")
    if what.startswith("unix:"):
        mode, _, path = what[5:].rpartition(":")
        made = socket.socket(socket.AF_UNIX)
        made.bind(path)
        os.chmod(path, int(mode or "600", 8))
        made.listen(128)
    elif what == "udp":
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    elif what == "pipe":
        made = os.fdopen(os.pipe()[0])
    elif what == "connected":
        made = socket.socketpair()[0]
    elif what == "abstract":
        made = socket.socket(socket.AF_UNIX)
        made.bind(b"\0heimdallr-test-%d" % os.getpid())
        made.listen()
    elif what == "closed":
        made = None
    else:
        host, _, port = what.rpartition(":")
        made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host.strip("[]"), int(port)))
        made.listen(128)
    held.append(made)
    names.append(name if equals else "unknown")

environment = {
    **os.environ, "LISTEN_FDS": str(len(held)), "LISTEN_PID": str(os.getpid()), "LISTEN_FDNAMES": ":".join(names),
    **{name: value for name, value in os.environ.items() if name.startswith("LISTEN_")},
}
if notify:
    ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    address = notify + ".socket"
    ear.bind(address)
    environment["NOTIFY_SOCKET"] = address
    parent, child = os.getpid(), os.fork()
    if not child:
        with open(notify, "w") as output:
            while os.getppid() == parent:
                if select.select([ear], [], [], 0.2)[0]:
                    print(ear.recv(4096).decode().replace("\n", " | "), file=output, flush=True)
        os._exit(0)
# First to high numbers, because sockets made here may already have the numbers from 3 on.
high = [made and os.dup2(made.fileno(), 100 + index) for index, made in enumerate(held)]
for index, descriptor in enumerate(high):
    if descriptor is None:
        os.closerange(3 + index, 4 + index)
    else:
        os.dup2(descriptor, 3 + index)
os.closerange(3 + len(high), 200)
os.execvpe(command[0], command, environment)
