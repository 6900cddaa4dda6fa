"""A token endpoint for client credentials: token_endpoint.py PORT TOKEN CLIENT_ID CLIENT_SECRET."""

import base64
import http.server
import json
import socketserver
import sys
import urllib.parse

PORT, TOKEN, CLIENT_ID, CLIENT_SECRET = sys.argv[1:5]


class TokenHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def credentials(self, form):
        scheme, _, encoded = self.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "basic":
            name, _, secret = base64.b64decode(encoded).decode().partition(":")
            return urllib.parse.unquote_plus(name), urllib.parse.unquote_plus(secret)
        return form.get("client_id"), form.get("client_secret")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        form = dict(urllib.parse.parse_qsl(body.decode()))
        accepted = form.get("grant_type") == "client_credentials"
        accepted = accepted and self.credentials(form) == (CLIENT_ID, CLIENT_SECRET)
        if accepted:
            answer = {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600}
        else:
            answer = {"error": "invalid_client"}
        encoded = json.dumps(answer).encode()
        self.send_response(200 if accepted else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, *arguments):
        pass


class TokenServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


TokenServer(("127.0.0.1", int(PORT)), TokenHandler).serve_forever()
