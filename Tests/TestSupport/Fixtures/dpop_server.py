"""An authorization server and a protected API that both want DPoP (RFC 9449), checked with joserfc.

Arguments: a folder. Prints one line of JSON when it listens: the port of the token endpoint and the port of the API.

The token endpoint wants a nonce that it gives with `use_dpop_nonce`, and gives another one with each answer. The API does
the same; /rotate throws its nonce away, so that the next request meets `use_dpop_nonce`. A proof is taken once. What
was seen is written to `log.jsonl` in the folder, one line for each request.
"""

import base64
import hashlib
import json
import os
import secrets
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from joserfc import jws, jwt
from joserfc.jwk import import_key

# An RSA key in the header takes more than the 512 bytes that are allowed there.
jws.JWSRegistry.max_header_length = 2048
ALGORITHMS = ["ES256", "ES384", "EdDSA", "Ed25519", "RS256", "PS256"]
FOLDER = sys.argv[1]
lock = threading.Lock()
proofs = set()
tokens = {}  # access token: thumbprint of its key
refresh_tokens = {}
nonces = {"token": secrets.token_urlsafe(8), "api": secrets.token_urlsafe(8)}


class Refused(Exception):
    pass


def note(**entry):
    with lock, open(os.path.join(FOLDER, "log.jsonl"), "a") as file:
        file.write(json.dumps(entry) + "\n")


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def header_of(token):
    text = token.split(".")[0]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def check(handler, address, role, access_token=None):
    """The thumbprint of the proof's key. RFC 9449, section 4.3, in its order."""
    fields = handler.headers.get_all("DPoP") or []
    if len(fields) != 1:
        raise Refused("%d DPoP fields" % len(fields))
    header = header_of(fields[0])
    if header.get("typ") != "dpop+jwt":
        raise Refused("typ")
    if header.get("alg") not in ALGORITHMS:
        raise Refused("alg")
    if "d" in header["jwk"]:
        raise Refused("a private key")
    key = import_key(header["jwk"])
    claims = jwt.decode(fields[0], key, algorithms=ALGORITHMS).claims
    if claims["htm"] != handler.command:
        raise Refused("htm %r" % claims["htm"])
    if claims["htu"] != address:
        raise Refused("htu %r is not %r" % (claims["htu"], address))
    if abs(time.time() - claims["iat"]) > 60 or not isinstance(claims["iat"], int):
        raise Refused("iat")
    if len(claims["jti"]) < 16:
        raise Refused("jti is short")
    with lock:
        if claims["jti"] in proofs:
            raise Refused("jti was here before")
        proofs.add(claims["jti"])
    if access_token is None:
        if "ath" in claims:
            raise Refused("ath without a token")
    elif claims.get("ath") != base64url(hashlib.sha256(access_token.encode()).digest()):
        raise Refused("ath")
    if claims.get("nonce") != nonces[role]:
        raise LookupError("nonce")
    return key.thumbprint()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status, fields, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class TokenEndpoint(Handler):
    def do_POST(self):
        from urllib.parse import parse_qs

        form = {name: values[0] for name, values in parse_qs(self.body().decode()).items()}
        address = "http://127.0.0.1:%d/token" % self.server.server_port
        try:
            thumbprint = check(self, address, "token")
        except LookupError:
            note(at="token", result="use_dpop_nonce", grant=form.get("grant_type"))
            fields = [("DPoP-Nonce", nonces["token"])]
            return self.answer(400, fields, {"error": "use_dpop_nonce", "error_description": "with a nonce, please"})
        except Exception as error:
            note(at="token", result="invalid_dpop_proof", why=str(error))
            return self.answer(400, [], {"error": "invalid_dpop_proof", "error_description": str(error)})
        grant = form.get("grant_type")
        if grant == "refresh_token" and refresh_tokens.pop(form.get("refresh_token"), None) != thumbprint:
            note(at="token", result="invalid_grant", why="refresh token of another key")
            return self.answer(400, [], {"error": "invalid_grant"})
        token = secrets.token_urlsafe(24)
        tokens[token] = thumbprint
        nonces["token"] = secrets.token_urlsafe(8)
        answer = {"access_token": token, "token_type": "DPoP", "expires_in": int(os.environ.get("LIFE", "60"))}
        if os.environ.get("REFRESH"):
            answer["refresh_token"] = secrets.token_urlsafe(24)
            refresh_tokens[answer["refresh_token"]] = thumbprint
        note(at="token", result="issued", grant=grant, key=thumbprint)
        self.answer(200, [("DPoP-Nonce", nonces["token"]), ("Cache-Control", "no-store")], answer)


class API(Handler):
    def respond(self):
        body = self.body()
        path = self.path.split("?")[0]
        address = "http://%s%s" % (self.headers["Host"], path)
        scheme, _, token = (self.headers.get("Authorization") or "").partition(" ")
        try:
            if scheme != "DPoP":
                raise Refused("scheme %r" % scheme)
            if check(self, address, "api", token) != tokens.get(token):
                raise Refused("the token is not of this key")
        except LookupError:
            note(at="api", result="use_dpop_nonce", method=self.command, path=self.path)
            fields = [
                ("DPoP-Nonce", nonces["api"]),
                ("WWW-Authenticate", 'DPoP error="use_dpop_nonce", error_description="with a nonce, please"'),
            ]
            return self.answer(401, fields, {"error": "use_dpop_nonce"})
        except Exception as error:
            note(at="api", result="refused", why=str(error), path=self.path)
            return self.answer(401, [("WWW-Authenticate", 'DPoP error="invalid_token"')], {"why": str(error)})
        if path == "/rotate":
            nonces["api"] = secrets.token_urlsafe(8)
        note(at="api", result="served", method=self.command, path=self.path, bytes=len(body))
        fields = [("DPoP-Nonce", nonces["api"])] if path != "/rotate" else []
        self.answer(200, fields, {"served": path, "bytes": len(body)})

    do_GET = do_POST = do_PUT = do_DELETE = respond


servers = [ThreadingHTTPServer(("127.0.0.1", 0), role) for role in (TokenEndpoint, API)]
for server in servers:
    threading.Thread(target=server.serve_forever, daemon=True).start()
print(json.dumps({"token": servers[0].server_port, "api": servers[1].server_port}), flush=True)
threading.Event().wait()
