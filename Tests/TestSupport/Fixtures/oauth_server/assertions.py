"""A token endpoint by authlib. Its one client authenticates by signed assertions, each of which is accepted once.

Settings: `client`, the client's identifier; `key`, its public JWK; `audience`, the required audience: `endpoint` or
`issuer`, which is the server's root. A refused client gets 403 and an empty body. The token type is `bEaReR`.
"""

import os
import secrets

from authlib.oauth2.rfc6749 import AuthorizationServer, ClientMixin, OAuth2Request
from authlib.oauth2.rfc6749.grants import ClientCredentialsGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc7523 import JWTBearerClientAssertion
from joserfc import jwk

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"


class Client(ClientMixin):
    def __init__(self, identifier):
        self.identifier = identifier

    def get_client_id(self):
        return self.identifier

    def get_allowed_scope(self, scope):
        return scope

    def check_endpoint_auth_method(self, method, endpoint):
        return method == JWTBearerClientAssertion.CLIENT_AUTH_METHOD

    def check_grant_type(self, grant_type):
        return grant_type == "client_credentials"


class Form(OAuth2Request):
    form = property(lambda self: self.payload.data)


class Assertion(JWTBearerClientAssertion):
    def __init__(self, audience, key):
        super().__init__()
        self.audience, self.key, self.used = audience, key, set()

    def get_audiences(self):
        return [self.audience]

    def validate_jti(self, claims, jti):
        is_new = jti not in self.used
        self.used.add(jti)
        return is_new

    def resolve_client_public_key(self, client):
        return self.key


class Grant(ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = [JWTBearerClientAssertion.CLIENT_AUTH_METHOD]


class Judge(AuthorizationServer):
    def __init__(self, root, settings, note):
        super().__init__()
        self.root, self.note, self.given = root, note, set()
        self.client = Client(settings["client"])
        audience = root + "/token" if settings["audience"] == "endpoint" else root
        self.register_client_auth_method(
            JWTBearerClientAssertion.CLIENT_AUTH_METHOD, Assertion(audience, jwk.import_key(settings["key"])))
        self.register_grant(Grant)
        self.register_token_generator("default", self.generate)

    def generate(self, grant_type, client, user=None, scope=None, expires_in=None, include_refresh_token=False):
        return {"token_type": "bEaReR", "access_token": secrets.token_urlsafe(), "expires_in": 300}

    def query_client(self, client_id):
        return self.client if client_id == self.client.identifier else None

    def save_token(self, token, request):
        self.given.add(token["access_token"])

    def send_signal(self, name, *args, **kwargs):
        pass

    def create_oauth2_request(self, request):
        made = Form("POST", self.root + request.path, headers=request.headers)
        made.payload = BasicOAuth2Payload(request.form)
        return made

    def handle_response(self, status, body, headers):
        return status, body, headers

    def token(self, request):
        status, body, _ = self.create_token_response(request)
        if status != 200:
            self.note(at="token", result="refused", why=str(body))
            return 403, None
        self.note(at="token", result="issued")
        return 200, body

    def api(self, request):
        if request.path.startswith("/.well-known/oauth-authorization-server"):
            return 200, {"issuer": self.root, "token_endpoint": self.root + "/token"}
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return (200 if scheme == "Bearer" and token in self.given else 401), {}
