"""Names with two addresses, the first of which is silent: silent_addresses.py EXECUTABLE FOLDER.

Runs in network and mount namespaces of its own, as root. A packet filter drops what goes to 10.9.0.1, a server is at
10.9.0.2, and each of the proxy's destinations has a port of its own. Prints as JSON what each request got.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

EXECUTABLE, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
PORTS = {name: 9000 + index for index, name in enumerate(["api", "token", "far", "next", "otlp", "hook"])}
seen = set()


def run(*command):
    subprocess.run(command, check=True)


def serve(name, listener):
    def answer(connection):
        request = b""
        while b"\r\n\r\n" not in request:
            piece = connection.recv(65536)
            if not piece:
                return
            request += piece
        seen.add(name)
        body, kind = (b'{"access_token":"t","token_type":"Bearer"}', b"application/json") if name == "token" else (b"ok", b"text/plain")
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (kind, len(body), body))
        connection.close()

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def ask(target, tunnel=None):
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", 8080), timeout=60) as connection:
        if tunnel:
            connection.sendall(f"CONNECT {tunnel} HTTP/1.1\r\nHost: {tunnel}\r\n\r\n".encode())
            connection.recv(65536)
        host = target.split("/")[2]
        connection.sendall(f"GET {target if not tunnel else '/'} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return {"status": int(answer.split()[1]) if answer else 0, "time": time.monotonic() - start}


run("ip", "link", "set", "lo", "up")
for address in ["10.9.0.1/32", "10.9.0.2/32"]:
    run("ip", "address", "add", address, "dev", "lo")
for rule in ["add table inet t", "add chain inet t in { type filter hook input priority 0; }",
             "add rule inet t in ip daddr 10.9.0.1 drop"]:
    run("nft", rule)
hosts = "127.0.0.1 localhost\n" + "".join(f"10.9.0.{number} {name}.two\n" for name in PORTS for number in (1, 2))
for name, text in [("hosts", hosts), ("nsswitch.conf", "hosts: files\n")]:
    (FOLDER / name).write_text(text)
    run("mount", "--bind", str(FOLDER / name), "/etc/" + name)
for name, port in PORTS.items():
    listener = socket.create_server(("10.9.0.2", port), backlog=128)
    threading.Thread(target=serve, args=(name, listener), daemon=True).start()

(FOLDER / "config.yaml").write_text(f"""
proxy: {{listen: 127.0.0.1:8080, connect: tunnel, tunnels: ["far.two:{PORTS['far']}"]}}
store: {{kind: memory}}
admin: {{listen: 127.0.0.1:8081}}
tracing: {{otlp: "http://otlp.two:{PORTS['otlp']}", sample: 1}}
hooks: {{webhook: "http://hook.two:{PORTS['hook']}/told", allow_plaintext: true}}
clients:
  machine:
    token_endpoint: "http://token.two:{PORTS['token']}/token"
    client_id: a
    client_secret: b
    allow_plaintext: true
  person:
    grant_type: authorization_code
    authorization_endpoint: https://idp.test/authorize
    token_endpoint: https://idp.test/token
    client_id: a
    client_secret: b
upstreams:
  - {{host: api.test, url: "http://api.two:{PORTS['api']}", allow_plaintext: true, connect_timeout: 30s}}
  - {{host: signed.test, url: "http://10.9.0.2:{PORTS['api']}", client: machine, allow_plaintext: true}}
  - {{host: via.test, url: "http://behind.test", proxy: "http://next.two:{PORTS['next']}", allow_plaintext: true}}
  - {{host: person.test, url: "https://person.test", client: person}}
""")
proxy = subprocess.Popen(
    [EXECUTABLE, "serve", "--config", str(FOLDER / "config.yaml")], stderr=subprocess.PIPE, text=True,
    env={**os.environ, "HOME": str(FOLDER), "XDG_RUNTIME_DIR": str(FOLDER)})
log = []
results = {}
try:
    for line in proxy.stderr:
        log.append(line)
        if "listening" in line:
            break
    else:
        sys.exit("the proxy does not start: " + "".join(log))
    threading.Thread(target=lambda: log.extend(proxy.stderr), daemon=True).start()
    results["api"] = [ask("http://api.test/"), ask("http://api.test/")]
    results["token"] = [ask("http://signed.test/")]
    results["far"] = [ask("http://far.two/", tunnel=f"far.two:{PORTS['far']}")]
    results["next"] = [ask("http://via.test/")]
    end = time.monotonic() + 30
    while not {"otlp", "hook"} <= seen and time.monotonic() < end:
        time.sleep(0.05)
finally:
    proxy.kill()
    proxy.wait()
print(json.dumps({"results": results, "seen": sorted(seen)}))
