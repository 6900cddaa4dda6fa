"""Servers that hand out secrets: Vault's KV version 2, GitHub's ID tokens, and SPIFFE's Workload API by grpcio.

    secret_servers.py SOCKET

Prints the port of the HTTP server once all listen, and then a line for each request. Vault has `apps/billing` with the field
`client_secret`, whose value counts the readings; logins by role `billing` with the JWT `pod-jwt` or one that begins with
`token-` get a token of two seconds; `root-token` is one, too. After a request for /revoke no login is known any more.
"""

import json
import sys
import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import grpc

lock = threading.Lock()
state = {"logins": 0, "readings": 0, "tokens": {"root-token"}, "sealed": False}


def say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Vault(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"{}")
        with lock:
            known = body.get("jwt") == "pod-jwt" or body.get("jwt", "").startswith("token-")
            if self.path != "/v1/auth/kubernetes/login" or body.get("role") != "billing" or not known:
                say(f"login refused {self.path} {body.get('role')}")
                return self.answer(400, {"errors": ["invalid role name"]})
            state["logins"] += 1
            token = f"login-{state['logins']}"
            state["tokens"].add(token)
        say(f"login {state['logins']} {body['jwt']}")
        self.answer(200, {"auth": {"client_token": token, "lease_duration": 3600, "renewable": True}})

    def do_GET(self):
        url = urlsplit(self.path)
        if url.path == "/id-token":
            if self.headers.get("Authorization") != "bearer request-token":
                return self.answer(401, {})
            audience = parse_qs(url.query)["audience"][0]
            say(f"id token for {audience} version {parse_qs(url.query).get('api-version')}")
            return self.answer(200, {"count": 1, "value": f"github.{audience}.signature"})
        with lock:
            if url.path in ("/revoke", "/seal"):
                state["tokens"] = {"root-token"}
                state["sealed"] = url.path == "/seal"
                return self.answer(200, {})
            if state["sealed"]:
                return self.answer(503, {"errors": ["Vault is sealed"]})
            if self.headers.get("X-Vault-Request") != "true" or self.headers.get("X-Vault-Token") not in state["tokens"]:
                say("permission denied")
                return self.answer(403, {"errors": ["permission denied"]})
            if url.path != "/v1/secret/data/apps/billing":
                return self.answer(404, {"errors": []})
            state["readings"] += 1
            secret = f"vault-secret-{state['readings']}"
        say(f"read {self.headers['X-Vault-Token']} namespace {self.headers.get('X-Vault-Namespace')}")
        self.answer(200, {"data": {"data": {"client_secret": secret, "number": 7}, "metadata": {"version": 1}}})


def text(number, value):
    return bytes([number << 3 | 2, len(value)]) + value


def fetch(request, context):
    metadata = dict(context.invocation_metadata())
    if metadata.get("workload.spiffe.io") != "true":
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "security header missing from request")
    audience = request[2 : 2 + request[1]].decode()
    if audience == "nobody":
        context.abort(grpc.StatusCode.PERMISSION_DENIED, "no identity issued")
    say(f"svid for {audience}")
    ids = [b"spiffe://example.org/one", b"spiffe://example.org/two"]
    return b"".join(text(1, text(1, id) + text(2, id[-3:] + b"." + audience.encode() + b".signature")) for id in ids)


agent = grpc.server(futures.ThreadPoolExecutor(4))
agent.add_generic_rpc_handlers(
    [grpc.method_handlers_generic_handler("SpiffeWorkloadAPI", {"FetchJWTSVID": grpc.unary_stream_rpc_method_handler(
        lambda request, context: iter([fetch(request, context)]))})]
)
agent.add_insecure_port(f"unix:{sys.argv[1]}")
agent.start()
server = ThreadingHTTPServer(("127.0.0.1", 0), Vault)
say(server.server_port)
server.serve_forever()
