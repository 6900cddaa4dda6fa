"""A program with OAuth code of its own: own_oauth.py LIBRARY [COUNT]

Asks a token endpoint of idp.test, GETs https://api.test/x with that token COUNT times, and prints each status. It holds a dummy
secret, and knows of no proxy but by its environment.
"""

import json
import sys

ID, SECRET, SERVER, API = "legacy", "dummy-secret-0123", "https://idp.test", "https://api.test"


def show(answer):
    print(answer.status_code, flush=True)


def requests_oauthlib(count):
    from oauthlib.oauth2 import BackendApplicationClient
    from requests_oauthlib import OAuth2Session

    session = OAuth2Session(client=BackendApplicationClient(client_id=ID))
    session.fetch_token(SERVER + "/token", client_id=ID, client_secret=SECRET)
    for _ in range(count):
        show(session.get(API + "/x"))


def requests_oauthlib_refresh(count):
    from requests_oauthlib import OAuth2Session

    token = {"access_token": "ended", "refresh_token": SECRET, "token_type": "Bearer", "expires_in": -30}
    session = OAuth2Session(
        ID, token=token, auto_refresh_url=SERVER + "/token", token_updater=lambda token: None,
        auto_refresh_kwargs={"client_id": ID, "client_secret": SECRET})
    for _ in range(count):
        show(session.get(API + "/x"))


def authlib_requests(count):
    from authlib.integrations.requests_client import OAuth2Session

    session = OAuth2Session(ID, SECRET, token_endpoint=SERVER + "/token", grant_type="client_credentials")
    session.fetch_token()
    for _ in range(count):
        show(session.get(API + "/x"))


def authlib_httpx(count):
    from authlib.integrations.httpx_client import OAuth2Client

    with OAuth2Client(ID, SECRET, token_endpoint_auth_method="client_secret_post") as client:
        client.fetch_token(SERVER + "/token", grant_type="client_credentials", scope="read")
        for _ in range(count):
            show(client.get(API + "/x"))


def msal(count):
    import msal
    import requests

    program = msal.ConfidentialClientApplication(ID, client_credential=SECRET, oidc_authority=SERVER + "/tenant")
    for _ in range(count):
        answer = program.acquire_token_for_client(["read"])
        if "access_token" not in answer:
            sys.exit(json.dumps(answer))
        show(requests.get(API + "/x", headers={"Authorization": "Bearer " + answer["access_token"]}))
    # Without the asked scope in the answer, its cache never finds the token.
    if answer.get("token_source") != "cache" and count > 1:
        sys.exit("asked each time")


def google_auth(count):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from google.auth.transport.requests import AuthorizedSession
    from google.oauth2 import service_account

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    info = {
        "type": "service_account", "client_email": "job@project.iam.test", "private_key": key.decode(),
        "private_key_id": "1", "token_uri": SERVER + "/token",
    }
    credentials = service_account.Credentials.from_service_account_info(info, scopes=["read"])
    session = AuthorizedSession(credentials)
    for _ in range(count):
        show(session.get(API + "/x"))


def simple_salesforce(count):
    from simple_salesforce import Salesforce

    api = Salesforce(consumer_key=ID, consumer_secret=SECRET, domain="idp")
    for _ in range(count):
        show(api._call_salesforce("GET", API + "/x"))


def databricks_sdk(count):
    from databricks.sdk import WorkspaceClient

    client = WorkspaceClient(host=API, client_id=ID, client_secret=SECRET, auth_type="oauth-m2m")
    for _ in range(count):
        client.api_client.do("GET", "/x")
        print(200, flush=True)


def mcp(count):
    """Asks for a token only after a 401, and finds the token endpoint by the API's metadata."""
    import asyncio

    import httpx2
    from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider

    class Storage:
        tokens = information = None

        async def get_tokens(self):
            return self.tokens

        async def set_tokens(self, tokens):
            self.tokens = tokens

        async def get_client_info(self):
            return self.information

        async def set_client_info(self, client_info):
            self.information = client_info

    async def run():
        provider = ClientCredentialsOAuthProvider(API + "/x", Storage(), ID, SECRET)
        async with httpx2.AsyncClient(auth=provider) as client:
            for _ in range(count):
                show(await client.get(API + "/x"))

    asyncio.run(run())


def mistaken(count):
    """Sends its placeholder to another host, by each way."""
    import requests

    token = requests.post(
        SERVER + "/token", auth=(ID, SECRET), data={"grant_type": "client_credentials"}).json()["access_token"]
    for _ in range(count):
        show(requests.get(API + "/x", headers={"Authorization": "Bearer " + token}))
        show(requests.get("https://other.test/", headers={"Authorization": "Bearer " + token}))
        show(requests.get("https://other.test/", auth=("me", token)))
        show(requests.get("https://other.test/", params={"access_token": token}))
        show(requests.get("https://other.test/", cookies={"session": token}))


globals()[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 1)
