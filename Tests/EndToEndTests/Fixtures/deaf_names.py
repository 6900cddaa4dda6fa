"""A name server that answers for some names only, and this machine's own addresses: deaf_names.py EXECUTABLE FOLDER.

Runs in network and mount namespaces of its own, as root: a name server on 127.0.0.1 that knows good.test and me.test and
never answers for other names, and a server that is at every address. Prints as JSON what each request got.
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
KNOWN = {"good.test": "9.9.9.9", "me.test": "127.0.0.1"}


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
        address = KNOWN.get(".".join(labels))
        if address is None:
            continue
        found = [socket.inet_aton(address)] if kind == 1 else []
        answer = query[:2] + struct.pack(">HHHHH", 0x8180, 1, len(found), 0, 0) + query[12:position + 5]
        for each in found:
            answer += b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, 4) + each
        server.sendto(answer, client)


def origin(listener):
    while True:
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        connection.close()


def ask(url, port=8080, timeout=30):
    """Status, Proxy-Status error and how long it took, in seconds."""
    host = url.split("/")[2]
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        target = url if port == 8080 else "/" + url.split("/", 3)[3]
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    head = answer.partition(b"\r\n\r\n")[0].decode()
    error = head.partition("error=")[2].split("\r\n")[0].split(";")[0] or None
    return {"status": int(head.split()[1]), "error": error, "time": time.monotonic() - start}


def tunnel(authority):
    with socket.create_connection(("127.0.0.1", 8080), timeout=30) as connection:
        connection.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        return {"status": int(connection.recv(65536).split()[1]), "error": None, "time": 0}


run("ip", "link", "set", "lo", "up")
run("ip", "address", "add", "9.1.1.1/32", "dev", "lo")
# Led here, yet no addresses of an interface.
for address in ["9.9.9.9", "9.2.2.2"]:
    run("ip", "route", "add", "local", address + "/32", "dev", "lo")
for name, text in [("resolv.conf", "nameserver 127.0.0.1\n"), ("nsswitch.conf", "hosts: dns\n")]:
    (FOLDER / name).write_text(text)
    run("mount", "--bind", str(FOLDER / name), "/etc/" + name)
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
threading.Thread(target=name_server, args=(server,), daemon=True).start()
listener = socket.create_server(("::", 9000), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128)
threading.Thread(target=origin, args=(listener,), daemon=True).start()

(FOLDER / "config.yaml").write_text("""
proxy: {listen: 127.0.0.1:8080, unmatched: forward, connect: tunnel, tunnels: ["*"]}
admin: {listen: 127.0.0.1:8081, socket: "ADMIN_SOCKET"}
clients:
  deaf: {token_endpoint: "http://tokens.deaf.test/", client_id: a, client_secret: b, allow_plaintext: true}
upstreams:
  - {host: api.test, url: "http://good.test:9000", allow_plaintext: true}
  - {host: deaf.test, url: "http://deaf.test:9000", connect_timeout: 2s, allow_plaintext: true}
  - {host: round.test, url: "http://me.test:8081", allow_plaintext: true}
  - {host: signed.test, url: "http://good.test:9000", client: deaf, allow_plaintext: true}
""".replace("ADMIN_SOCKET", str(FOLDER / "admin.sock")))
proxy = subprocess.Popen(
    [EXECUTABLE, "serve", "--config", str(FOLDER / "config.yaml")], stderr=subprocess.PIPE, text=True)
results = {}
try:
    for line in proxy.stderr:
        if "administration" in line:
            break
    else:
        sys.exit("the proxy does not start")
    threading.Thread(target=proxy.stderr.read, daemon=True).start()

    waiting, lock = [], threading.Lock()

    def wait(url):
        answer = ask(url)
        with lock:
            waiting.append(answer)

    threads = [threading.Thread(target=wait, args=(f"http://n{n}.zone{n}.deaf/",)) for n in range(20)]
    threads += [threading.Thread(target=wait, args=("http://deaf.test/",)) for _ in range(5)]
    for thread in threads:
        thread.start()
    # Some clients leave: the proxy ends their look-ups.
    for n in range(20):
        gone = socket.create_connection(("127.0.0.1", 8080))
        gone.sendall(f"GET http://g{n}.zone.deaf/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        time.sleep(0.05)
        gone.close()
    beside, probes = [], []
    while any(thread.is_alive() for thread in threads):
        beside.append(ask("http://api.test/"))
        probes.append(ask("http://localhost/livez", port=8081))
        time.sleep(0.05)
    results["waiting"] = waiting
    results["beside"] = beside
    results["probes"] = probes
    results["own service"] = [ask("http://9.1.1.1:9000/"), tunnel("9.1.1.1:9000")]
    results["elsewhere"] = [ask("http://9.2.2.2:9000/"), tunnel("9.2.2.2:9000")]
    run("ip", "address", "add", "9.2.2.2/32", "dev", "lo")
    # Time itself: the proxy reads the machine's own addresses again after a second.
    time.sleep(1)
    results["since then"] = [ask("http://9.2.2.2:9000/"), tunnel("9.2.2.2:9000")]
    run("ip", "address", "del", "9.2.2.2/32", "dev", "lo")
    run("ip", "route", "replace", "local", "9.2.2.2/32", "dev", "lo")
    time.sleep(1)
    results["again elsewhere"] = [ask("http://9.2.2.2:9000/")]
    results["admin port"] = [
        ask("http://127.0.0.1:8081/status"), ask("http://me.test:8081/status"), ask("http://0.0.0.0:8081/status"),
        ask("http://localhost:8081/status"), ask("http://round.test/status"), tunnel("me.test:8081"),
    ]
finally:
    proxy.kill()
    proxy.wait()
print(json.dumps(results))
