"""A token endpoint that rotates strictly and revokes families on reuse, and an upstream that looks at every token.

Both keep one ordered log. The rules are those of RFC 9700 section 4.14.2. With a grace, whoever has just spent a refresh token,
and did not get the answer, gets the same answer again; without one, a single lost answer costs the family.
"""
import http.server
import json
import random
import secrets
import socket
import threading
import time
import urllib.parse


class Family:
    """One sign-in: a chain of refresh tokens, of which the last is good."""

    def __init__(self, seed):
        self.current = seed
        self.spent = {}  # refresh token -> (replica, successor's refresh token, access token, when, answer lost)
        self.dead = False


class Authority:
    """State of endpoint and upstream. `life` is that of an access token, in seconds."""

    def __init__(self, clients, life, grace, on_dead):
        self.grace = grace
        self.lock = threading.Lock()
        self.life = life
        self.lives = {}  # client -> life of its access tokens, where it differs
        self.log = []  # (time, kind, client, replica, detail)
        self.families = {}
        self.issued = {}  # refresh token -> client
        self.tokens = {}  # access token -> (client, asked for at, life)
        self.lose = 0.0  # how often an answer is lost on purpose
        self.strike = None  # called once, between a rotation and its answer
        self.on_dead = on_dead
        self.begin = time.monotonic()
        for client in clients:
            self.seed(client)

    def now(self):
        return time.monotonic() - self.begin

    def note(self, kind, client, replica, detail=""):
        self.log.append((self.now(), kind, client, replica, detail))

    def seed(self, client):
        """Somebody signs in: a new family. Returns its first refresh token."""
        token = f"seed-{client}-{secrets.token_urlsafe(12)}"
        self.families[client] = Family(token)
        self.issued[token] = client
        return token

    def refresh(self, client, replica, token):
        """Returns (status, answer, whether the answer is to be lost)."""
        with self.lock:
            family = self.families[client]
            if self.issued.get(token, client) != client:
                self.note("foreign", client, replica, f"{token} of {self.issued[token]}")
                return 400, {"error": "invalid_grant"}, False
            if family.dead:
                self.note("dead", client, replica, token)
                return 400, {"error": "invalid_grant"}, False
            if token == family.current:
                successor = f"r-{client}-{secrets.token_urlsafe(12)}"
                access = f"a-{client}-{secrets.token_urlsafe(12)}"
                family.current = successor
                self.issued[successor] = client
                self.tokens[access] = (client, self.now(), self.lives.get(client, self.life))
                lost = random.random() < self.lose
                family.spent[token] = (replica, successor, access, self.now(), lost)
                self.note("lost" if lost else "rotated", client, replica, token)
                return 200, self.answer(access, successor, self.tokens[access][2]), lost
            if token in family.spent:
                by, successor, access, when, lost = family.spent[token]
                # The successor has not been used, and the same replica asks.
                if by == replica and successor == family.current and self.now() - when < self.grace:
                    self.note("again", client, replica, token)
                    _, asked, life = self.tokens[access]
                    return 200, self.answer(access, successor, max(0, int(life - (self.now() - asked)))), False
                family.dead = True
                self.note("reuse", client, replica, f"{token} spent by {by} at {when:.2f}" + (" lost" if lost else ""))
                self.on_dead(client)
                return 400, {"error": "invalid_grant"}, False
            self.note("unknown", client, replica, token)
            return 400, {"error": "invalid_grant"}, False

    def answer(self, access, successor, life):
        return {"access_token": access, "token_type": "Bearer", "expires_in": life, "refresh_token": successor}

    def use(self, client, token):
        """What the upstream thinks of a token: nothing, or what is wrong."""
        with self.lock:
            known = self.tokens.get(token)
            if known is None:
                wrong = "nobody's token"
            elif known[0].partition(".")[0] != client:
                wrong = f"the token of {known[0]}"
            elif self.now() > known[1] + known[2] + 0.25:
                wrong = f"{self.now() - known[1] - known[2]:.2f} s past its life"
            else:
                self.note("used", client, "", token)
                return None
            self.note("wrong", client, "", wrong)
            return wrong


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    authority = None

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        form = dict(urllib.parse.parse_qsl(body))
        # Each path is a separate endpoint with separate sign-ins.
        endpoint = self.path.removeprefix("/token").replace("/", ".")
        status, answer, lost = self.authority.refresh(
            form.get("client_id", "") + endpoint, self.headers.get("X-Replica", "?"), form.get("refresh_token", ""))
        with self.authority.lock:
            strike = self.authority.strike if status == 200 else None
            if strike:
                self.authority.strike = None
        if strike:
            strike()
        if lost:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.give(status, json.dumps(answer).encode())

    def do_GET(self):
        client = self.path.strip("/")
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        wrong = self.authority.use(client, token)
        self.give(401 if wrong else 200, (wrong or "ok").encode())

    def give(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request, address):
        pass  # a replica that was killed


def serve(authority, address):
    """Starts both on a port; returns it."""
    handler = type("Bound", (Handler,), {"authority": authority})
    server = Server((address, 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]
