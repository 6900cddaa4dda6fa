"""Name servers that fall silent, and a resolv.conf that changes: silent_names.py EXECUTABLE FOLDER.

Runs in network and mount namespaces of its own, as root. The name server at 127.0.0.1 is deaf, the one at 127.0.0.2
answers; both can be told to drop AAAA, or everything. Prints as JSON what each request got.
"""

import json
import pathlib
import socket
import struct
import subprocess
import sys
import threading
import time

EXECUTABLE, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
drops = {"all": False, "AAAA": False}
seen = []


def run(*command):
    subprocess.run(command, check=True)


def name_server(server):
    while True:
        query, client = server.recvfrom(512)
        position, labels = 12, []
        while length := query[position]:
            labels.append(query[position + 1:position + 1 + length].decode().lower())
            position += 1 + length
        kind = struct.unpack(">H", query[position + 1:position + 3])[0]
        name = ".".join(labels)
        seen.append((name, kind))
        if drops["all"] or drops["AAAA"] and kind == 28:
            continue
        missing = name.startswith("no-")
        found = [socket.inet_aton("127.0.0.1")] if kind == 1 and not missing else []
        answer = query[:2] + struct.pack(">HHHHH", 0x8183 if missing else 0x8180, 1, len(found), 0, 0) + query[12:position + 5]
        for each in found:
            answer += b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, 4) + each
        server.sendto(answer, client)


def origin(listener):
    while True:
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        connection.close()


def ask(host):
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", 8080), timeout=30) as connection:
        connection.sendall(f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    detail = json.loads(body).get("detail") if body.startswith(b"{") else None
    return {"status": int(head.split()[1]), "detail": detail, "time": time.monotonic() - start}


run("ip", "link", "set", "lo", "up")
resolv = FOLDER / "resolv.conf"
for name, text in [("resolv.conf", "nameserver 127.0.0.1\n"), ("nsswitch.conf", "hosts: dns\n")]:
    (FOLDER / name).write_text(text)
    run("mount", "--bind", str(FOLDER / name), "/etc/" + name)
deaf = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
deaf.bind(("127.0.0.1", 53))
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.2", 53))
threading.Thread(target=name_server, args=(server,), daemon=True).start()
listener = socket.create_server(("127.0.0.1", 9000), backlog=128)
threading.Thread(target=origin, args=(listener,), daemon=True).start()

names = ["early", "waits", "half", "no-such"]
(FOLDER / "config.yaml").write_text(
    "proxy: {listen: 127.0.0.1:8080}\nupstreams:\n"
    + "".join(
        f"  - {{host: {name}.test, url: \"http://{name}.example:9000\", connect_timeout: {wait}s, allow_plaintext: true}}\n"
        for name, wait in [("early", 1), ("waits", 20), ("half", 20), ("no-such", 20)]))
proxy = subprocess.Popen(
    [EXECUTABLE, "serve", "--config", str(FOLDER / "config.yaml")], stderr=subprocess.PIPE, text=True)
results = {}
try:
    for line in proxy.stderr:
        if "listening" in line:
            break
    else:
        sys.exit("the proxy does not start")
    threading.Thread(target=proxy.stderr.read, daemon=True).start()

    # Nobody waits for this look-up any more, but it hangs for many seconds.
    results["silence"] = [ask("early.test")]
    waiting = []
    thread = threading.Thread(target=lambda: waiting.append(ask("waits.test")))
    thread.start()
    deaf.settimeout(10)
    while b"waits" not in deaf.recvfrom(512)[0]:
        pass
    # In place, because the file is a mount, as in a container.
    resolv.write_text("nameserver 127.0.0.2\n")
    changed = time.monotonic()
    thread.join()
    results["waiting"] = [dict(waiting[0], time=time.monotonic() - changed)]
    results["after"] = [ask("early.test"), ask("waits.test")]

    drops["AAAA"] = True
    results["half"] = [ask("half.test") for _ in range(3)]
    drops["AAAA"] = False
    results["missing"] = [ask("no-such.test")]

    drops["all"] = True
    # Time itself: answers are fresh for five seconds.
    time.sleep(5.1)
    results["last good"] = [ask("early.test"), ask("early.test")]
finally:
    proxy.kill()
    proxy.wait()
print(json.dumps(results))
