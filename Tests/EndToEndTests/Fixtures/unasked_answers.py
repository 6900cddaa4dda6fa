"""Pauses the proxy while its upstream puts answers on idle connections, and counts the clients that get one of them.

unasked_answers.py EXECUTABLE [--secure CERTIFICATE KEY AUTHORITY] [--seconds N] [--cgroup FOLDER]: starts the proxy,
stops it with SIGSTOP for 15 ms at a time, and prints how many requests were answered, how many answers were planted and
how many of those were passed on. An answer is planted only while the proxy is stopped and no byte of a request waits at
the upstream, so no planted answer may reach a client, but where a pause falls between the look and the head.
"""

import argparse
import http.server
import os
import random
import select
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

PAUSE = 0.015
CLIENTS = 4


class Connection:
    """One connection at the upstream."""

    def __init__(self, raw, context):
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lock = threading.Lock()
        self.below = socket.socket(fileno=os.dup(raw.fileno()))
        self.stream = context.wrap_socket(raw, server_side=True) if context else raw
        self.is_idle = False

    def serve(self):
        try:
            received = b""
            while True:
                if not (isinstance(self.stream, ssl.SSLSocket) and self.stream.pending()):
                    select.select([self.below], [], [])
                with self.lock:
                    piece = self.stream.recv(65536)
                    if not piece:
                        break
                    self.is_idle = False
                    received += piece
                    if b"\r\n\r\n" in received:
                        target = received.split()[1].decode()
                        received = b""
                        self.answer(target)
                        self.is_idle = True
        except OSError:
            pass
        with self.lock:
            self.is_idle = False
            connections.discard(self)
            self.stream.close()
            self.below.close()

    def answer(self, body):
        self.stream.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())

    def plant(self):
        with self.lock:
            if not self.is_idle:
                return False
            try:
                self.below.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
                return False
            except BlockingIOError:
                pass
            try:
                self.answer("planted")
            except OSError:
                return False
            self.is_idle = False
            return True


class Tokens(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"access_token": "T1", "token_type": "Bearer", "expires_in": 3600}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


connections = set()
counts = {"answered": 0, "planted": 0, "passed": 0, "failed": 0}
counting = threading.Lock()
is_over = threading.Event()


def count(name):
    with counting:
        counts[name] += 1


def accept(listener, context):
    while True:
        raw, _ = listener.accept()

        def begin(raw=raw):
            try:
                connection = Connection(raw, context)
            except OSError:
                return
            connections.add(connection)
            connection.serve()

        threading.Thread(target=begin, daemon=True).start()


def client(port, name):
    stream = None
    number = 0
    while not is_over.is_set():
        number += 1
        target = f"/{name}-{number}"
        try:
            if stream is None:
                stream = socket.create_connection(("127.0.0.1", port), 20).makefile("rwb")
            stream.write(f"GET http://api.test{target} HTTP/1.1\r\nHost: api.test\r\n\r\n".encode())
            stream.flush()
            status = stream.readline().split()
            length = 0
            while (line := stream.readline().strip()):
                field, _, value = line.partition(b":")
                if field.lower() == b"content-length":
                    length = int(value)
            body = stream.read(length).decode()
        except (OSError, ValueError):
            status, body = [], ""
        if body == target:
            count("answered")
        else:
            count("passed" if status[1:2] == [b"200"] else "failed")
            if stream:
                stream.close()
            stream = None
        time.sleep(random.random() * 0.01)


def is_stopped(process):
    for task in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{task}/stat") as file:
            if file.read().rpartition(")")[2].split()[0] != "T":
                return False
    return True


def pause(process):
    os.kill(process, signal.SIGSTOP)
    begin = time.monotonic()
    try:
        while not is_stopped(process):
            time.sleep(0)
        for connection in list(connections):
            if random.random() < 0.5 and connection.plant():
                count("planted")
        time.sleep(max(0, begin + PAUSE - time.monotonic()))
    finally:
        os.kill(process, signal.SIGCONT)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("executable")
    arguments.add_argument("--secure", nargs=3, metavar=("CERTIFICATE", "KEY", "AUTHORITY"))
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--cgroup")
    options = arguments.parse_args()

    context = None
    if options.secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*options.secure[:2])
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, args=(listener, context), daemon=True).start()
    tokens = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tokens)
    threading.Thread(target=tokens.serve_forever, daemon=True).start()

    scheme = "https" if context else "http"
    trust = f"\n    tls: {{ca_file: {options.secure[2]}}}" if context else "\n    allow_plaintext: true"
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/config.yaml", "w") as file:
            file.write(f"""
proxy: {{listen: "127.0.0.1:0", threads: 1}}
clients:
  api:
    token_endpoint: http://127.0.0.1:{tokens.server_port}/
    client_id: c
    client_secret: not-a-secret
    allow_plaintext: true
upstreams:
  - host: api.test
    url: {scheme}://localhost:{listener.getsockname()[1]}
    client: api{trust}
""")
        proxy = subprocess.Popen(
            [options.executable, "serve", "--config", f"{folder}/config.yaml"], stderr=subprocess.PIPE, text=True)
        try:
            port = None
            for line in proxy.stderr:
                if "listening" in line:
                    port = int(line.split("address=")[1].split()[0].rpartition(":")[2])
                    break
            if port is None:
                sys.exit("the proxy does not listen")
            threading.Thread(target=lambda: [None for _ in proxy.stderr], daemon=True).start()
            if options.cgroup:
                with open(f"{options.cgroup}/cgroup.procs", "w") as file:
                    file.write(str(proxy.pid))
            clients = [threading.Thread(target=client, args=(port, name)) for name in range(CLIENTS)]
            for thread in clients:
                thread.start()
            end = time.monotonic() + options.seconds
            while time.monotonic() < end:
                time.sleep(random.random() * 2 * PAUSE)
                pause(proxy.pid)
            is_over.set()
            for thread in clients:
                thread.join()
        finally:
            proxy.kill()
            proxy.wait()
    print(*(f"{name}={number}" for name, number in counts.items()), flush=True)


main()
