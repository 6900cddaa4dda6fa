"""A token endpoint and an API that both require DPoP (RFC 9449), checked by joserfc.

The token endpoint requires a nonce, which it sends with `use_dpop_nonce`, and replaces with each answer. The API does
the same. /rotate drops the API's nonce, so that the next request gets `use_dpop_nonce`. Each proof is accepted once.
Settings: `life`, the lifetime of access tokens in seconds; `refresh`, whether to issue refresh tokens.
"""

import base64
import hashlib
import json
import secrets
import time

from joserfc import jws, jwt
from joserfc.jwk import import_key

# An RSA key in the header needs more than the 512 bytes that joserfc allows by default.
jws.JWSRegistry.max_header_length = 2048
ALGORITHMS = ["ES256", "ES384", "EdDSA", "Ed25519", "RS256", "PS256"]


class Refused(Exception):
    pass


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def header_of(token):
    text = token.split(".")[0]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


class Judge:
    def __init__(self, root, settings, note):
        self.root, self.settings, self.note = root, settings, note
        self.proofs = set()
        self.tokens = {}  # access token: thumbprint of its key
        self.refresh_tokens = {}
        self.nonces = {"token": secrets.token_urlsafe(8), "api": secrets.token_urlsafe(8)}

    def check(self, request, role, access_token=None):
        """Checks a proof in the order of RFC 9449, section 4.3. Returns the thumbprint of its key."""
        fields = request.headers.get_all("DPoP") or []
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
        if claims["htm"] != request.command:
            raise Refused("htm %r" % claims["htm"])
        address = self.root + request.path.split("?")[0]
        if claims["htu"] != address:
            raise Refused("htu %r is not %r" % (claims["htu"], address))
        if abs(time.time() - claims["iat"]) > 60 or not isinstance(claims["iat"], int):
            raise Refused("iat")
        if len(claims["jti"]) < 16:
            raise Refused("jti is short")
        if claims["jti"] in self.proofs:
            raise Refused("jti was here before")
        self.proofs.add(claims["jti"])
        if access_token is None:
            if "ath" in claims:
                raise Refused("ath without a token")
        elif claims.get("ath") != base64url(hashlib.sha256(access_token.encode()).digest()):
            raise Refused("ath")
        if claims.get("nonce") != self.nonces[role]:
            raise LookupError("nonce")
        return key.thumbprint()

    def token(self, request):
        form = request.form
        grant = form.get("grant_type")
        try:
            thumbprint = self.check(request, "token")
        except LookupError:
            self.note(at="token", result="use_dpop_nonce", grant=grant)
            body = {"error": "use_dpop_nonce", "error_description": "with a nonce, please"}
            return 400, body, ("DPoP-Nonce", self.nonces["token"])
        except Exception as error:
            self.note(at="token", result="invalid_dpop_proof", why=str(error))
            return 400, {"error": "invalid_dpop_proof", "error_description": str(error)}
        if grant == "refresh_token" and self.refresh_tokens.pop(form.get("refresh_token"), None) != thumbprint:
            self.note(at="token", result="invalid_grant", why="refresh token of another key")
            return 400, {"error": "invalid_grant"}
        token = secrets.token_urlsafe(24)
        self.tokens[token] = thumbprint
        self.nonces["token"] = secrets.token_urlsafe(8)
        answer = {"access_token": token, "token_type": "DPoP", "expires_in": self.settings["life"]}
        if self.settings["refresh"]:
            answer["refresh_token"] = secrets.token_urlsafe(24)
            self.refresh_tokens[answer["refresh_token"]] = thumbprint
        self.note(at="token", result="issued", grant=grant, key=thumbprint)
        return 200, answer, ("DPoP-Nonce", self.nonces["token"]), ("Cache-Control", "no-store")

    def api(self, request):
        path = request.path.split("?")[0]
        scheme, _, token = (request.headers.get("Authorization") or "").partition(" ")
        try:
            if scheme != "DPoP":
                raise Refused("scheme %r" % scheme)
            if self.check(request, "api", token) != self.tokens.get(token):
                raise Refused("the token is not of this key")
        except LookupError:
            self.note(at="api", result="use_dpop_nonce", method=request.command)
            challenge = 'DPoP error="use_dpop_nonce", error_description="with a nonce, please"'
            return 401, {"error": "use_dpop_nonce"}, ("DPoP-Nonce", self.nonces["api"]), ("WWW-Authenticate", challenge)
        except Exception as error:
            self.note(at="api", result="refused", why=str(error))
            return 401, {"why": str(error)}, ("WWW-Authenticate", 'DPoP error="invalid_token"')
        if path == "/rotate":
            self.nonces["api"] = secrets.token_urlsafe(8)
        self.note(at="api", result="served", method=request.command, bytes=len(request.body))
        fields = [("DPoP-Nonce", self.nonces["api"])] if path != "/rotate" else []
        return 200, {"served": path, "bytes": len(request.body)}, *fields
