"""Grants that present an assertion or a token: RFC 7523, RFC 8693, GitHub Apps. joserfc checks JWTs.

Strict: each `jti` is accepted once, and an assertion must live for at most an hour and have the token endpoint's URL as
its only audience. The setting `keys` is the JWK set of accepted issuers.
"""

import base64
import json
import time
import xml.etree.ElementTree

from joserfc import jwk, jwt

URN = "urn:ietf:params:oauth:"


class Refusal(Exception):
    def __init__(self, status, error, description=""):
        self.status, self.error, self.description = status, error, description


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Judge:
    def __init__(self, root, settings, note):
        self.root, self.note = root, note
        self.keys = settings["keys"]
        self.jtis = set()
        self.tokens = {}  # access token: (subject, expiry)
        self.count = 0

    def assertion(self, text, audience, longest):
        """Checks an assertion's signature and times. Returns its header and claims."""
        keys = jwk.KeySet.import_key_set(self.keys)
        key = keys.keys[0] if len(keys.keys) == 1 else keys
        try:
            token = jwt.decode(text, key, algorithms=["RS256", "PS256", "ES256", "ES384", "Ed25519", "EdDSA"])
        except Exception as error:
            raise Refusal(400, "invalid_grant", f"{type(error).__name__}: {error}")
        claims, now = token.claims, time.time()
        if audience and claims.get("aud") != audience:
            raise Refusal(400, "invalid_grant", f"not for us: {claims.get('aud')}")
        for name in ("iat", "exp"):
            if not isinstance(claims.get(name), int):
                raise Refusal(400, "invalid_grant", f"no {name}")
        if not (claims["iat"] <= now < claims["exp"] <= now + longest):
            raise Refusal(400, "invalid_grant", "not now")
        return {"header": token.header, "claims": claims}

    def issue(self, who, seconds):
        self.count += 1
        token = f"issued-{who}-{self.count}"
        self.tokens[token] = (who, time.time() + seconds)
        return token

    def token(self, request):
        entry = {"at": "token", **request.form}
        try:
            return 200, self.grant(request.form, entry)
        except Refusal as refusal:
            return refusal.status, {"error": refusal.error, "error_description": refusal.description}
        finally:
            self.note(**entry)

    def grant(self, form, entry):
        grant = form.get("grant_type", "").removeprefix(URN + "grant-type:")
        if grant == "jwt-bearer":
            entry |= self.assertion(form.get("assertion", ""), self.root + "/token", 3600)
            claims = entry["claims"]
            jti = claims.get("jti")
            if not jti or jti in self.jtis:
                raise Refusal(400, "invalid_grant", "jti")
            self.jtis.add(jti)
            who = claims.get("sub") or claims["iss"]
            return {"access_token": self.issue(who, 300), "token_type": "bearer", "expires_in": 300}
        if grant == "saml2-bearer":
            text = form["assertion"]
            if "=" in text or "+" in text or "/" in text:
                raise Refusal(400, "invalid_grant", "not base64url")
            root = xml.etree.ElementTree.fromstring(decode(text))
            return {"access_token": self.issue(root.text, 300), "token_type": "Bearer", "expires_in": 300}
        if grant == "token-exchange":
            return self.exchange(form)
        raise Refusal(400, "unsupported_grant_type")

    def exchange(self, form):
        """Exchanges a subject token. The first letters of the subject choose the outcome."""
        if not form.get("subject_token_type", "").startswith(URN + "token-type:"):
            raise Refusal(400, "invalid_request", "subject_token_type")
        subject = form["subject_token"]
        if subject.startswith("refused"):
            raise Refusal(400, "invalid_request", "the subject_token is not good")
        if subject.startswith("elsewhere"):
            raise Refusal(400, "invalid_target", "not for that audience")
        if subject.count(".") == 2:
            subject = json.loads(decode(subject.split(".")[1]))["sub"]
        seconds = 2 if subject.startswith("short") else 300
        answer = {"access_token": self.issue(subject, seconds), "token_type": "Bearer", "expires_in": seconds}
        if not subject.startswith("plain"):
            answer["issued_token_type"] = URN + "token-type:access_token"
        if subject.startswith("noaccess"):
            answer["token_type"] = "N_A"
        if subject.startswith("refresh"):
            answer["refresh_token"] = "never-to-be-used"
        return answer

    def installation(self, request):
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise Refusal(401, "A JSON web token could not be decoded")
        entry = self.assertion(text, None, 600)
        self.note(
            at="token", path=request.path, accept=request.headers.get("Accept"), type=request.headers.get("Content-Type"),
            body=json.loads(request.body or b"null"), **entry)
        header, claims = entry["header"], entry["claims"]
        if header.get("alg") != "RS256" or claims["iat"] > time.time() - 30:
            raise Refusal(401, "'Issued at' claim ('iat') must be an Integer representing the time that it was issued")
        if request.path != "/app/installations/42/access_tokens":
            raise Refusal(404, "Not Found")
        if str(claims["iss"]) != "1234":
            raise Refusal(401, "Integration not found")
        ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        return {
            "token": self.issue("installation", 3600), "expires_at": ends, "permissions": {"contents": "read"}}

    def api(self, request):
        if request.command == "POST" and request.path.startswith("/app/installations/"):
            try:
                return 201, self.installation(request)
            except Refusal as refusal:
                return refusal.status, {"message": refusal.error, "documentation_url": "https://docs"}
        if request.command == "POST" and request.path == "/test/revoke":
            self.tokens.clear()
            return 200, {}
        fields = request.headers.get_all("Authorization") or []
        if request.command == "TRACE":
            return 200, {"authorization": fields}
        token = request.headers.get("X-Token") or (fields[0].removeprefix("Bearer ") if len(fields) == 1 else "")
        who, ends = self.tokens.get(token, (None, 0))
        if time.time() >= ends:
            return 401, {}, ("WWW-Authenticate", 'Bearer error="invalid_token"')
        return 200, {"who": who, "token": token, "authorization": fields}
