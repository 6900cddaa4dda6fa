"""An authorization server and the API behind it, for grants that show something: RFC 7523, RFC 8693, GitHub's Apps.

    grant_server.py FOLDER        # prints its port; FOLDER/keys.json is a JWK set: whose assertions are taken

JWTs are judged by joserfc. It is strict: each `jti` is good once, an assertion lives for an hour at most, and is for the
token endpoint's URL alone.
"""

import base64
import http.server
import json
import os
import sys
import threading
import time
import urllib.parse
import xml.etree.ElementTree

from joserfc import jwk, jwt

FOLDER = sys.argv[1]
lock = threading.Lock()
jtis = set()
tokens = {}  # access token: (who, when it ends)
asked = []  # what came to the token endpoint
count = 0
URN = "urn:ietf:params:oauth:"


class Refusal(Exception):
    def __init__(self, status, error, description=""):
        self.status, self.error, self.description = status, error, description


def judge(text, audiences, longest):
    """The claims of an assertion whose signature is right."""
    keys = jwk.KeySet.import_key_set(json.load(open(os.path.join(FOLDER, "keys.json"))))
    if len(keys.keys) == 1:
        keys = keys.keys[0]
    try:
        token = jwt.decode(text, keys, algorithms=["RS256", "PS256", "ES256", "ES384", "Ed25519", "EdDSA"])
    except Exception as error:
        raise Refusal(400, "invalid_grant", f"{type(error).__name__}: {error}")
    claims, now = token.claims, time.time()
    if audiences and claims.get("aud") not in audiences:
        raise Refusal(400, "invalid_grant", f"not for us: {claims.get('aud')}")
    for name in ("iat", "exp"):
        if not isinstance(claims.get(name), int):
            raise Refusal(400, "invalid_grant", f"no {name}")
    if not (claims["iat"] <= now < claims["exp"] <= now + longest):
        raise Refusal(400, "invalid_grant", "not now")
    return token.header, claims


def issue(who, seconds):
    global count
    count += 1
    token = f"issued-{who}-{count}"
    tokens[token] = (who, time.time() + seconds)
    return token


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, fields=()):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}{self.path}"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with lock:
            try:
                if self.path == "/token":
                    return self.answer(200, self.token(dict(urllib.parse.parse_qsl(body.decode(), True))))
                if self.path.startswith("/app/installations/"):
                    return self.answer(201, self.installation(body))
                if self.path == "/test/revoke":
                    tokens.clear()
                    return self.answer(200, {})
            except Refusal as refusal:
                if self.path == "/token":
                    return self.answer(
                        refusal.status, {"error": refusal.error, "error_description": refusal.description})
                return self.answer(refusal.status, {"message": refusal.error, "documentation_url": "https://docs"})
        self.api()

    def token(self, form):
        asked.append({name: value for name, value in form.items()})
        grant = form.get("grant_type", "").removeprefix(URN + "grant-type:")
        if grant == "jwt-bearer":
            header, claims = judge(form.get("assertion", ""), [self.url()], 3600)
            asked[-1] |= {"header": header, "claims": claims}
            jti = claims.get("jti")
            if not jti or jti in jtis:
                raise Refusal(400, "invalid_grant", "jti")
            jtis.add(jti)
            who = claims.get("sub") or claims["iss"]
            return {"access_token": issue(who, 300), "token_type": "bearer", "expires_in": 300}
        if grant == "saml2-bearer":
            text = form["assertion"]
            if "=" in text or "+" in text or "/" in text:
                raise Refusal(400, "invalid_grant", "not base64url")
            root = xml.etree.ElementTree.fromstring(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            return {"access_token": issue(root.text, 300), "token_type": "Bearer", "expires_in": 300}
        if grant == "token-exchange":
            if not form.get("subject_token_type", "").startswith(URN + "token-type:"):
                raise Refusal(400, "invalid_request", "subject_token_type")
            subject = form["subject_token"]
            if subject.startswith("refused"):
                raise Refusal(400, "invalid_request", "the subject_token is not good")
            if subject.startswith("elsewhere"):
                raise Refusal(400, "invalid_target", "not for that audience")
            if subject.count(".") == 2:
                part = subject.split(".")[1]
                subject = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["sub"]
            seconds = 2 if subject.startswith("short") else 300
            answer = {"access_token": issue(subject, seconds), "token_type": "Bearer", "expires_in": seconds}
            if not subject.startswith("plain"):
                answer["issued_token_type"] = URN + "token-type:access_token"
            if subject.startswith("noaccess"):
                answer["token_type"] = "N_A"
            if subject.startswith("refresh"):
                answer["refresh_token"] = "never-to-be-used"
            return answer
        raise Refusal(400, "unsupported_grant_type")

    def installation(self, body):
        scheme, _, text = self.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise Refusal(401, "A JSON web token could not be decoded")
        header, claims = judge(text, None, 600)
        asked.append({"path": self.path, "header": header, "claims": claims, "accept": self.headers.get("Accept"),
                      "type": self.headers.get("Content-Type"), "body": json.loads(body or b"null")})
        if header.get("alg") != "RS256" or claims["iat"] > time.time() - 30:
            raise Refusal(401, "'Issued at' claim ('iat') must be an Integer representing the time that it was issued")
        if self.path != "/app/installations/42/access_tokens":
            raise Refusal(404, "Not Found")
        if str(claims["iss"]) != "1234":
            raise Refusal(401, "Integration not found")
        ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        return {"token": issue("installation", 3600), "expires_at": ends, "permissions": {"contents": "read"}}

    def api(self):
        if self.path == "/test/asked":
            return self.answer(200, asked)
        fields = self.headers.get_all("Authorization") or []
        if self.command == "TRACE":
            return self.answer(200, {"authorization": fields})
        token = self.headers.get("X-Token") or (fields[0].removeprefix("Bearer ") if len(fields) == 1 else "")
        who, ends = tokens.get(token, (None, 0))
        if time.time() >= ends:
            return self.answer(401, {}, [("WWW-Authenticate", 'Bearer error="invalid_token"')])
        self.answer(200, {"who": who, "token": token, "authorization": fields})

    do_GET = do_HEAD = do_TRACE = api


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
