"""A token endpoint by authlib that knows its one client by a signed assertion, which it takes only once. Prints its port.

    authlib_tokens.py CLIENT_ID PUBLIC_KEY endpoint|issuer

The issuer is the server's root. Whoever is refused gets 403 and an empty body, and tokens are of the type `bEaReR`.
"""

import http.server
import json
import secrets
import sys
import urllib.parse

from authlib.oauth2.rfc6749 import AuthorizationServer, ClientMixin, OAuth2Request
from authlib.oauth2.rfc6749.grants import ClientCredentialsGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc7523 import JWTBearerClientAssertion
from joserfc import jwk

CLIENT_ID, KEY, AUDIENCE = sys.argv[1:]
used, given = set(), set()


class Client(ClientMixin):
    def get_client_id(self):
        return CLIENT_ID

    def get_allowed_scope(self, scope):
        return scope

    def check_endpoint_auth_method(self, method, endpoint):
        return method == JWTBearerClientAssertion.CLIENT_AUTH_METHOD

    def check_grant_type(self, grant_type):
        return grant_type == "client_credentials"


class Request(OAuth2Request):
    form = property(lambda self: self.payload.data)


class Assertion(JWTBearerClientAssertion):
    def get_audiences(self):
        return [root + "/token" if AUDIENCE == "endpoint" else root]

    def validate_jti(self, claims, jti):
        is_new = jti not in used
        used.add(jti)
        return is_new

    def resolve_client_public_key(self, client):
        return jwk.import_key(json.loads(KEY))


class Grant(ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = [JWTBearerClientAssertion.CLIENT_AUTH_METHOD]


class Server(AuthorizationServer):
    def query_client(self, client_id):
        return Client() if client_id == CLIENT_ID else None

    def save_token(self, token, request):
        given.add(token["access_token"])

    def send_signal(self, name, *args, **kwargs):
        pass

    def create_oauth2_request(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"])).decode()
        request = Request("POST", root + handler.path, headers=handler.headers)
        request.payload = BasicOAuth2Payload(dict(urllib.parse.parse_qsl(body, strict_parsing=True)))
        return request

    def handle_response(self, status, body, headers):
        return status, body, headers


def generate(grant_type, client, user=None, scope=None, expires_in=None, include_refresh_token=False):
    return {"token_type": "bEaReR", "access_token": secrets.token_urlsafe(), "expires_in": 300}


server = Server()
server.register_client_auth_method(JWTBearerClientAssertion.CLIENT_AUTH_METHOD, Assertion())
server.register_grant(Grant)
server.register_token_generator("default", generate)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b""):
        self.send_response(status)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        status, body, _ = server.create_token_response(self)
        if status != 200:
            print("refused:", body, flush=True)
            return self.answer(403)
        self.answer(200, json.dumps(body).encode())

    def do_GET(self):
        if self.path.startswith("/.well-known/oauth-authorization-server"):
            return self.answer(200, json.dumps({"issuer": root, "token_endpoint": root + "/token"}).encode())
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        self.answer(200 if scheme == "Bearer" and token in given else 401, b"{}")


listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
root = f"http://127.0.0.1:{listener.server_port}"
print(listener.server_port, flush=True)
listener.serve_forever()
