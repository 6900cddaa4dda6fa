"""Names that lead to private addresses, for a proxy with `tunnels: ["*"]`: changing_names.py EXECUTABLE FOLDER.

Runs in network and mount namespaces of its own, as root: a name server on 127.0.0.1, a server that is at every address,
9.9.9.9 among them. Prints as JSON what each CONNECT got and at which address the server was reached.
"""

import json
import pathlib
import socket
import subprocess
import sys
import threading

from name_server import serve_names

EXECUTABLE, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
PUBLIC = "9.9.9.9"
FOUR = {
    "public.test": [PUBLIC], "loopback.test": ["127.0.0.1"], "private.test": ["10.0.0.1"],
    "metadata.test": ["169.254.169.254"], "zero.test": ["0.0.0.0"], "both.test": ["127.0.0.1", PUBLIC],
}
SIX = {"mapped.test": ["::ffff:127.0.0.1"], "local6.test": ["::1"]}
lookups = {}
reached = []


def run(*command):
    subprocess.run(command, check=True)


def addresses(name, kind):
    if name.endswith(".changing.test") and kind == 1:
        lookups[name] = lookups.get(name, 0) + 1
        # Half of them are good at first and bad from then on, half the other way round.
        good = (lookups[name] == 1) == (int(name.split(".")[0]) % 2 == 0)
        return [socket.inet_aton(PUBLIC if good else "127.0.0.1")]
    if kind == 1:
        return [socket.inet_aton(address) for address in FOUR.get(name, [])]
    if kind == 28:
        return [socket.inet_pton(socket.AF_INET6, address) for address in SIX.get(name, [])]
    return []


def far_end(listener):
    while True:
        connection, _ = listener.accept()
        address = connection.getsockname()[0].removeprefix("::ffff:")
        reached.append(address)
        connection.sendall(address.encode() + b"\n")
        connection.close()


def ask(proxy, authority):
    with socket.create_connection(("127.0.0.1", proxy), timeout=20) as connection:
        connection.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    head, _, rest = answer.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    error = head.partition(b"error=")[2].split(b"\r\n")[0].decode() or None
    return {"status": status, "error": error, "at": rest.decode().strip() if status == 200 else None}


run("ip", "link", "set", "lo", "up")
# Led here, yet no address of an interface: addresses of an interface are private.
run("ip", "route", "add", "local", PUBLIC + "/32", "dev", "lo")
serve_names(FOLDER, addresses)
listener = socket.create_server(("::", 9000), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128)
threading.Thread(target=far_end, args=(listener,), daemon=True).start()

(FOLDER / "config.yaml").write_text("""
proxy: {listen: 127.0.0.1:8080, connect: tunnel, tunnels: ["*"]}
upstreams: [{host: unused.test}]
""")
proxy = subprocess.Popen([EXECUTABLE, "serve", "--config", str(FOLDER / "config.yaml")], stderr=subprocess.PIPE, text=True)
try:
    for line in proxy.stderr:
        if "listening" in line:
            break
    else:
        sys.exit("the proxy does not start")
    threading.Thread(target=proxy.stderr.read, daemon=True).start()
    results = {name: [ask(8080, f"{name}:9000")] for name in [*FOUR, *SIX]}
    # Each twice: the second time from the cache or not, but never to the private address.
    results["changing"] = [ask(8080, f"{number}.changing.test:9000") for number in range(12) for _ in range(2)]
finally:
    proxy.kill()
    proxy.wait()
print(json.dumps({"results": results, "reached": reached, "lookups": sum(lookups.values())}))
