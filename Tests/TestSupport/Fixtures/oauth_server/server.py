"""An authorization server and an API that check requests by third-party libraries.

    server.py grants|dpop|assertions FOLDER        # prints its port

The first argument names the judge, a module beside this one, which reads FOLDER/settings.json. Before each answer, the
judge's findings about the request are a line of FOLDER/log.jsonl.
"""

import http.server
import importlib
import json
import os
import sys
import threading
import urllib.parse

JUDGE, FOLDER = sys.argv[1:]
lock = threading.Lock()


def note(**entry):
    with open(os.path.join(FOLDER, "log.jsonl"), "a") as file:
        file.write(json.dumps(entry) + "\n")


class Request(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    @property
    def form(self):
        return dict(urllib.parse.parse_qsl(self.body.decode(), True))

    def serve(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with lock:
            is_token = self.command == "POST" and self.path == "/token"
            status, body, *fields = judge.token(self) if is_token else judge.api(self)
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        if data:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_TRACE = serve


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Request)
with open(os.path.join(FOLDER, "settings.json")) as file:
    judge = importlib.import_module(JUDGE).Judge(f"http://127.0.0.1:{server.server_port}", json.load(file), note)
print(server.server_port, flush=True)
server.serve_forever()
