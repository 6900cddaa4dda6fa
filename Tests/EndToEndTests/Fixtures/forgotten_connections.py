"""Connections to upstreams that the network has forgotten: forgotten_connections.py EXECUTABLE FOLDER.

Runs in a network namespace of its own, as root. A packet filter drops what belongs to connections that are open at one
moment, as a NAT does after a restart; new ones pass. Prints as JSON what each request got, and what the server saw.
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
PORTS = {"plain": 9001, "tls": 9002, "http2": 9003, "post": 9004}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def ask(name, method="GET", limit=60):
    start = time.monotonic()
    status = 0
    try:
        with socket.create_connection(("127.0.0.1", 8080), timeout=limit) as connection:
            body = "Content-Length: 2\r\n\r\nhi" if method == "POST" else "\r\n"
            connection.sendall(f"{method} http://{name}.test/ HTTP/1.1\r\nHost: {name}.test\r\nConnection: close\r\n{body}".encode())
            status = int(connection.recv(65536).split()[1])
    except TimeoutError:
        pass
    return {"status": status, "time": time.monotonic() - start}


def forget():
    """Drops what belongs to the connections that are open now."""
    lines = run("ss", "--tcp", "--numeric", "--no-header", "state", "established").splitlines()
    ends = [line.split()[2:4] for line in lines]
    servers = {str(port) for port in PORTS.values()}
    ports = sorted({near.rsplit(":", 1)[1] for near, far in ends if far.rsplit(":", 1)[1] in servers})
    for direction in ["sport", "dport"]:
        run("nft", f"add rule inet t in tcp {direction} {{ {', '.join(ports)} }} drop")
    return len(ports)


run("ip", "link", "set", "lo", "up")
run("nft", "add table inet t")
run("nft", "add chain inet t in { type filter hook input priority 0; }")
run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1",
    "-keyout", str(FOLDER / "key.pem"), "-out", str(FOLDER / "cert.pem"))
servers = "".join(
    f"server {{ listen 127.0.0.1:{port}{' ssl' if name in ('tls', 'http2') else ''}{' http2' if name == 'http2' else ''};"
    f" location / {{ return 200 ok; }} }}\n" for name, port in PORTS.items())
(FOLDER / "nginx.conf").write_text(f"""
daemon off; master_process off; pid {FOLDER}/pid; error_log {FOLDER}/errors;
events {{}}
http {{
  log_format seen '$server_port $request_method';
  access_log {FOLDER}/seen seen;
  keepalive_timeout 300; client_body_temp_path {FOLDER}/body; proxy_temp_path {FOLDER}/proxy;
  fastcgi_temp_path {FOLDER}/fastcgi; uwsgi_temp_path {FOLDER}/uwsgi; scgi_temp_path {FOLDER}/scgi;
  ssl_certificate {FOLDER}/cert.pem; ssl_certificate_key {FOLDER}/key.pem;
  {servers}
}}
""")
(FOLDER / "config.yaml").write_text("proxy: {listen: 127.0.0.1:8080}\nupstreams:\n" + "".join(
    f"  - {{host: {name}.test, url: \"http{'s' if name in ('tls', 'http2') else ''}://127.0.0.1:{port}\", response_timeout: 50s, "
    + (f"tls: {{ca_file: {FOLDER}/cert.pem}}, http2: {str(name == 'http2').lower()}}}\n" if name in ("tls", "http2") else "allow_plaintext: true}\n")
    for name, port in PORTS.items()))
nginx = subprocess.Popen(["nginx", "-c", str(FOLDER / "nginx.conf")], env={"PATH": "/usr/sbin:/usr/bin:/bin"})
proxy = subprocess.Popen(
    [EXECUTABLE, "serve", "--config", str(FOLDER / "config.yaml")], stderr=subprocess.PIPE, text=True,
    env={**os.environ, "HOME": str(FOLDER), "XDG_RUNTIME_DIR": str(FOLDER)})
log, results = [], {}
try:
    for line in proxy.stderr:
        log.append(line)
        if "listening" in line:
            break
    else:
        sys.exit("the proxy does not start: " + "".join(log))
    threading.Thread(target=lambda: log.extend(proxy.stderr), daemon=True).start()
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", PORTS["post"])).close()
            break
        except OSError:
            time.sleep(0.05)
    # Each connection serves twice, so that it is a kept one.
    before = {name: [ask(name), ask(name)] for name in PORTS}
    forgotten = forget()

    def later(name):
        # The server never gets this POST, but that nobody can know: it goes out once.
        results[name] = [ask(name, "POST", limit=5)] if name == "post" else [ask(name), ask(name)]

    threads = [threading.Thread(target=later, args=(name,)) for name in PORTS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
finally:
    proxy.kill()
    proxy.wait()
    nginx.kill()
    nginx.wait()
seen = (FOLDER / "seen").read_text().split("\n")[:-1]
print(json.dumps({"before": before, "results": results, "forgotten": forgotten, "seen": seen}))
