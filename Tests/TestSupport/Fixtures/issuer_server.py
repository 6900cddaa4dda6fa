"""Authorization servers by Authlib or idpyoidc with paths in their issuers, each with an API, on a free loopback port.

    issuer_server.py authlib|idpyoidc TOKEN-SECONDS [DOCUMENTS]

Prints its port. The API /api/FORM names the issuer /FORM/tenant, whose metadata is at one of three addresses: FORM is
oauth (RFC 8414), inserted or appended (OpenID Connect). Consent is given at once. /test/targets lists all requests.

With DOCUMENTS, Authlib's clients are client ID metadata documents with private_key_jwt. The file for an https address
in that folder is named after the last segment of the address's path.
"""

import json
import os
import pathlib
import secrets
import socket
import sys
import time
from types import SimpleNamespace

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

kind, seconds = sys.argv[1], int(sys.argv[2])
documents = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
METHODS = ["private_key_jwt"] if documents else ["none"]
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # allows http
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
url = f"http://127.0.0.1:{listener.getsockname()[1]}"
FORMS = {
    "oauth": "/.well-known/oauth-authorization-server/oauth/tenant",
    "inserted": "/.well-known/openid-configuration/inserted/tenant",
    "appended": "/appended/tenant/.well-known/openid-configuration",
}
targets = []


class Authlib:
    """https://docs.authlib.org, with public clients, PKCE, registration, rotation and iss."""

    def __init__(self, issuer):
        from authlib.oauth2.rfc6749 import AuthorizationServer, OAuth2Request, JsonRequest, grants
        from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload, JsonPayload
        from authlib.oauth2.rfc6750 import BearerTokenGenerator
        from authlib.oauth2.rfc7523 import JWTBearerClientAssertion
        from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
        from authlib.oauth2.rfc7636 import CodeChallenge
        from authlib.oauth2.rfc9207.parameter import IssuerParameter
        from joserfc.jwk import KeySet

        clients, codes, self.tokens, refresh = {}, {}, {}, {}

        class Client(SimpleNamespace):
            def get_client_id(self): return self.client_id
            def get_default_redirect_uri(self): return self.redirect_uris[0]
            def get_allowed_scope(self, scope): return scope
            def check_redirect_uri(self, uri): return uri in self.redirect_uris
            def check_endpoint_auth_method(self, method, _): return method == self.token_endpoint_auth_method
            def check_response_type(self, kind): return kind in self.response_types
            def check_grant_type(self, kind): return kind in self.grant_types

        class Request(OAuth2Request):
            def __init__(self, method, uri, headers, values):
                super().__init__(method, uri, headers=headers)
                self.payload, self.values = BasicOAuth2Payload(values), values

            @property
            def args(self): return self.values

            @property
            def form(self): return self.values

        class Issued(SimpleNamespace):
            def get_redirect_uri(self): return self.redirect_uri
            def get_scope(self): return self.scope
            def check_client(self, client): return self.client_id == client.client_id

        tokens = self.tokens

        class Server(AuthorizationServer):
            def query_client(self, client_id):
                return published(client_id) if documents else clients.get(client_id)

            def save_token(self, token, request):
                tokens[token["access_token"]] = time.time() + token["expires_in"]
                if "refresh_token" in token:
                    refresh[token["refresh_token"]] = Issued(client_id=request.client.client_id, scope=token["scope"])

            def send_signal(self, *_, **__): pass

            def create_oauth2_request(self, parts):
                return parts if isinstance(parts, Request) else Request(*parts)

            def create_json_request(self, parts):
                request = JsonRequest("POST", url, {})
                request.payload = type("Payload", (JsonPayload,), {"data": parts})()
                return request

            def handle_response(self, status, body, headers):
                headers = dict(headers)
                if isinstance(body, dict):
                    return JSONResponse(body, status, headers)
                return Answer(body or b"", status, headers)

        class Answer(Response):
            @property
            def location(self): return self.headers.get("Location")

            @location.setter
            def location(self, value): self.headers["Location"] = value

        def fetched(address): return json.loads((documents / address.rsplit("/", 1)[1]).read_text())

        def published(client_id):
            document = fetched(client_id)
            return Client(**document) if document["client_id"] == client_id else None

        class Assertion(JWTBearerClientAssertion):
            CLIENT_AUTH_METHOD = "private_key_jwt"
            seen = set()

            def get_audiences(self): return [issuer]

            def validate_jti(self, claims, jti):
                is_new = jti not in self.seen
                self.seen.add(jti)
                return is_new

            def resolve_client_public_key(self, client): return KeySet.import_key_set(fetched(client.jwks_uri))

        class Code(grants.AuthorizationCodeGrant):
            TOKEN_ENDPOINT_AUTH_METHODS = METHODS

            def save_authorization_code(self, code, request):
                data = request.payload.data
                codes[code] = Issued(
                    code=code, client_id=request.client.client_id, redirect_uri=request.payload.redirect_uri,
                    scope=request.payload.scope, code_challenge=data["code_challenge"],
                    code_challenge_method=data["code_challenge_method"])

            def query_authorization_code(self, code, client):
                found = codes.get(code)
                return found if found and found.client_id == client.client_id else None

            def delete_authorization_code(self, code): codes.pop(code.code)
            def authenticate_user(self, _): return "ada"

        class Refresh(grants.RefreshTokenGrant):
            TOKEN_ENDPOINT_AUTH_METHODS = METHODS
            INCLUDE_NEW_REFRESH_TOKEN = True

            def authenticate_refresh_token(self, value):
                self.value = value
                return refresh.get(value)

            def authenticate_user(self, _): return "ada"
            def revoke_old_credential(self, _): refresh.pop(self.value)

        class Registration(ClientRegistrationEndpoint):
            def get_server_metadata(self): return metadata
            def authenticate_token(self, _): return "anybody"

            def save_client(self, info, asked, _):
                clients[info["client_id"]] = Client(**{**info, **asked})
                return clients[info["client_id"]]

            def generate_client_secret(self, request=None): return ""

        class Named(IssuerParameter):
            def get_issuer(self): return issuer

        self.metadata = metadata = {
            "issuer": issuer, "authorization_endpoint": issuer + "/authorize", "token_endpoint": issuer + "/token",
            "registration_endpoint": issuer + "/register", "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": METHODS, "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True, "scopes_supported": ["read"],
            "client_id_metadata_document_supported": bool(documents),
        }
        self.server = Server()
        self.server.register_token_generator("default", BearerTokenGenerator(
            access_token_generator=lambda **_: secrets.token_urlsafe(24),
            refresh_token_generator=lambda **_: secrets.token_urlsafe(24), expires_generator=lambda *_: seconds))
        self.server.register_grant(Code, [CodeChallenge(required=True)])
        self.server.register_grant(Refresh)
        self.server.register_endpoint(Registration)
        self.server.register_extension(Named())
        self.server.register_client_auth_method("private_key_jwt", Assertion())

    def authorize(self, request, _):
        parts = ("GET", str(request.url), request.headers, dict(request.query_params))
        grant = self.server.get_consent_grant(parts, "ada")
        return self.server.create_authorization_response(parts, grant_user="ada", grant=grant)

    def token(self, request, form):
        return self.server.create_token_response(("POST", str(request.url), request.headers, form))

    def register(self, _, body):
        return self.server.create_endpoint_response("client_registration", body)

    def accepts(self, token):
        return self.tokens.get(token, 0) > time.time()


class Idpyoidc:
    """https://github.com/IdentityPython/idpy-oidc: an OpenID provider."""

    def __init__(self, issuer):
        from idpyoidc.server import Server
        from idpyoidc.server.configure import OPConfiguration
        from idpyoidc.server.oidc.registration import Registration

        class KeylessRegistration(Registration):
            # idpyoidc 5.0.0 looks up the keys of every client, only to log them.
            def do_client_registration(self, request, client_id, **more):
                self.upstream_get("attribute", "keyjar").add_symmetric(client_id, secrets.token_urlsafe(32))
                return super().do_client_registration(request, client_id, **more)

        minting = {"supports_minting": ["access_token", "refresh_token", "id_token"]}
        self.server = Server(OPConfiguration(conf={
            "issuer": issuer, "httpc_params": {"verify": False, "timeout": 1},
            "key_conf": {"key_defs": [{"type": "EC", "crv": "P-256", "use": ["sig"]}]},
            "token_handler_args": {
                "code": {"lifetime": 600}, "token": {"lifetime": seconds}, "refresh": {"lifetime": 3600},
                "id_token": {"class": "idpyoidc.server.token.id_token.IDToken"},
            },
            "preference": {
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "response_types_supported": ["code"], "token_endpoint_auth_methods_supported": ["none"],
                "id_token_signing_alg_values_supported": ["ES256"], "subject_types_supported": ["public"],
                "scopes_supported": ["openid", "offline_access"],
            },
            "endpoint": {
                name: {
                    "path": path, "kwargs": kwargs,
                    "class": place if callable(place) else "idpyoidc.server." + place}
                for name, path, place, kwargs in [
                    ("provider_config", ".well-known/openid-configuration",
                     "oidc.provider_config.ProviderConfiguration", {"client_authn_method": None}),
                    ("registration", "register", KeylessRegistration, {"client_authn_method": None}),
                    ("authorization", "authorize", "oidc.authorization.Authorization", {"client_authn_method": None}),
                    ("token", "token", "oidc.token.Token", {"client_authn_method": ["public", "none"]}),
                ]
            },
            "authentication": {"anon": {"acr": "anon", "class": "idpyoidc.server.user_authn.user.NoAuthn",
                                        "kwargs": {"user": "ada"}}},
            "authz": {"class": "idpyoidc.server.authz.AuthzHandling", "kwargs": {"grant_config": {
                "usage_rules": {
                    "authorization_code": {**minting, "max_usage": 1}, "refresh_token": minting, "access_token": {}},
                "expires_in": 3600}}},
            "add_ons": {"pkce": {"function": "idpyoidc.server.oauth2.add_on.pkce.add_support",
                                 "kwargs": {"essential": True, "code_challenge_methods": {"S256": None}}}},
            "cookie_handler": {"class": "idpyoidc.server.cookie_handler.CookieHandler", "kwargs": {
                "keys": {"key_defs": [{"type": "OCT", "use": ["enc"]}, {"type": "OCT", "use": ["sig"]}]},
                "name": {"session": "s", "register": "r", "session_management": "m"}}},
            "session_params": {"encrypter": {"kwargs": {"keys": {"key_defs": [
                {"type": "OCT", "use": ["enc"], "kid": "password"}, {"type": "OCT", "use": ["enc"], "kid": "salt"}]}}}},
        }))
        self.keys = self.server.keyjar.export_jwks()
        self.metadata = {**self.server.context.provider_info, "jwks_uri": issuer + "/keys"}

    def answer(self, name, content, request):
        endpoint = self.server.get_endpoint(name)
        info = {"headers": dict(request.headers), "method": request.method, "url": str(request.url)}
        parsed = endpoint.parse_request(content, http_info=info)
        done = parsed if "error" in parsed else endpoint.process_request(parsed, http_info=info)
        if "error" in done:
            return JSONResponse(done.to_dict() if hasattr(done, "to_dict") else dict(done), 400)
        answer = endpoint.do_response(request=parsed, **done)
        if name == "authorization":
            return RedirectResponse(answer["response"], 302)
        return Response(answer["response"], dict(done).get("response_code", 200), dict(answer["http_headers"]))

    def authorize(self, request, _):
        return self.answer("authorization", dict(request.query_params), request)

    def token(self, request, form):
        return self.answer("token", form, request)

    def register(self, request, body):
        return self.answer("registration", body, request)

    def accepts(self, token):
        try:
            found = self.server.context.session_manager.get_session_info_by_token(token, handler_key="access_token")
            issued = self.server.context.session_manager.find_token(found["branch_id"], token)
            return issued.expires_at > time.time()
        except Exception:
            return False


Issuer = {"authlib": Authlib, "idpyoidc": Idpyoidc}[kind]
issuers = {form: Issuer(f"{url}/{form}/tenant") for form in FORMS}


def noting(handler):
    async def run(request):
        targets.append(request.url.path)
        return await handler(request)
    return run


def routes(form):
    issuer, document = issuers[form], f"/.well-known/oauth-protected-resource/api/{form}"

    async def api(request):
        if issuer.accepts(request.headers.get("Authorization", "").removeprefix("Bearer ")):
            return PlainTextResponse(f"welcome to {form}")
        return Response(status_code=401, headers={"WWW-Authenticate": f'Bearer resource_metadata="{url}{document}"'})

    async def resource(_):
        return JSONResponse({"resource": f"{url}/api/{form}", "authorization_servers": [f"{url}/{form}/tenant"],
                             "scopes_supported": ["openid"] if kind == "idpyoidc" else ["read"]})

    async def metadata(_): return JSONResponse(issuer.metadata)
    async def keys(_): return JSONResponse(getattr(issuer, "keys", {}))
    async def authorize(request): return issuer.authorize(request, None)
    async def token(request): return issuer.token(request, dict(await request.form()))
    async def register(request): return issuer.register(request, await request.json())

    return [
        Route(path, noting(handler), methods=[method]) for path, handler, method in [
            (f"/api/{form}{{rest:path}}", api, "GET"), (document, resource, "GET"), (FORMS[form], metadata, "GET"),
            (f"/{form}/tenant/authorize", authorize, "GET"), (f"/{form}/tenant/token", token, "POST"),
            (f"/{form}/tenant/register", register, "POST"), (f"/{form}/tenant/keys", keys, "GET"),
        ]
    ]


async def seen(_):
    return PlainTextResponse("\n".join(targets))


async def missing(request, _):
    targets.append(request.url.path)
    return PlainTextResponse("no", 404)


app = Starlette(
    routes=[Route("/test/targets", seen), *(route for form in FORMS for route in routes(form))],
    exception_handlers={404: missing})
listener.listen()
print(url.rsplit(":", 1)[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
