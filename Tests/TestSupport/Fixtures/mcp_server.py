"""An MCP server with its own authorization, of fastmcp or of the mcp package, on a free loopback port.

    mcp_server.py fastmcp|mcp TOKEN-SECONDS

Prints its port. Consent is given at once, without a page. /test/clients has the number of registered clients; DELETE forgets
them.
"""

import socket
import sys

import uvicorn
from fastmcp.server.auth.providers import in_memory
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from starlette.responses import PlainTextResponse

kind, seconds = sys.argv[1], int(sys.argv[2])
in_memory.DEFAULT_ACCESS_TOKEN_EXPIRY_SECONDS = seconds
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
url = f"http://127.0.0.1:{listener.getsockname()[1]}"
registration = ClientRegistrationOptions(enabled=True, valid_scopes=["user"], default_scopes=["user"])
provider = in_memory.InMemoryOAuthProvider(
    base_url=url, client_registration_options=registration, required_scopes=["user"])


async def clients(request):
    if request.method == "DELETE":
        provider.clients.clear()
    return PlainTextResponse(str(len(provider.clients)))


if kind == "fastmcp":
    from fastmcp import FastMCP

    server = FastMCP("weather", auth=provider)
    server.custom_route("/test/clients", ["GET", "DELETE"])(clients)
else:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer(
        "weather", auth_server_provider=provider,
        auth=AuthSettings(
            issuer_url=url, resource_server_url=f"{url}/mcp", required_scopes=["user"], validate_token_resource=False,
            client_registration_options=registration))
    server.custom_route("/test/clients", ["GET", "DELETE"])(clients)


@server.tool()
def get_weather(city: str) -> str:
    return f"sunny in {city}"


app = server.http_app() if kind == "fastmcp" else server.streamable_http_app()
print(url.rsplit(":", 1)[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
