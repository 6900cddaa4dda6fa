"""WebSockets, at both ends.

    web_sockets.py serve [CERTIFICATE KEY]
        Prints its port, then a line for each connection that begins and ends. Says first which Authorization it saw;
        then says again what it hears. /close: closes with 4001 at once. /chat and others: until the client goes.
    web_sockets.py talk LIBRARY URL PROXY
        Talks to it and prints what came of it. LIBRARY: websockets, aiohttp or websocket-client. PROXY: host:port to
        connect to instead of the URL's, `proxy=URL` for a library's own way through a proxy, or `-`.
    web_sockets.py hold URL
        Connects, says one thing, and waits to be killed.
"""

import asyncio
import os
import ssl
import sys

import websockets


async def handle(connection):
    path = connection.request.path
    seen = connection.request.headers.get_all("Authorization")
    print("open", path, *seen, flush=True)
    await connection.send(",".join(seen))
    if path == "/close":
        await connection.close(4001, "enough")
    try:
        async for message in connection:
            await connection.send(message)
    except websockets.ConnectionClosed:
        pass
    print("closed", path, connection.close_code, flush=True)


def refuse(connection, request):
    if request.path == "/refuse":
        return connection.respond(403, "not you\n")


async def serve(certificate=None, key=None):
    context = None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
    async with websockets.serve(
        handle, "localhost", int(os.environ.get("PORT", 0)), ssl=context, process_request=refuse, max_size=None,
        subprotocols=["talk"],
    ) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


async def by_websockets(url, proxy):
    options = {"proxy": None, "max_size": None, "subprotocols": ["other", "talk"]}
    if proxy.startswith("proxy="):
        options["proxy"] = proxy.removeprefix("proxy=")
    elif proxy != "-":
        options["host"], _, options["port"] = proxy.rpartition(":")
    try:
        async with websockets.connect(url, **options) as connection:
            print("saw", await connection.recv(), "subprotocol", connection.subprotocol)
            if url.endswith("/close"):
                try:
                    await connection.recv()
                except websockets.ConnectionClosed as end:
                    print("end", end.rcvd.code, end.rcvd.reason)
                return
            for message in ["hello", "ü" * 1000, b"\0\1\2", os.urandom(3 << 20), ""]:
                await connection.send(message)
                print("same", await connection.recv() == message)
            await (await connection.ping())
            many = [f"message {number}" for number in range(1000)]

            async def send():
                for message in many:
                    await connection.send(message)

            sending = asyncio.create_task(send())
            print("many", [await connection.recv() for _ in many] == many)
            await sending
        print("end", connection.close_code)
    except websockets.InvalidStatus as refusal:
        print("refused", refusal.response.status_code, refusal.response.body.decode().strip())


async def by_aiohttp(url, proxy):
    import aiohttp

    async with aiohttp.ClientSession() as session:
        options = {"proxy": proxy.removeprefix("proxy=")} if proxy != "-" else {}
        async with session.ws_connect(url, max_msg_size=0, protocols=["talk"], **options) as connection:
            print("saw", await connection.receive_str())
            for message in ["hello", "x" * 100_000]:
                await connection.send_str(message)
                print("same", await connection.receive_str() == message)
        print("end", connection.close_code)


def by_websocket_client(url, proxy):
    import websocket

    if proxy != "-":
        os.environ["http_proxy"] = proxy.removeprefix("proxy=")
    # By itself it says that a page at the server's own address sent it. Only a proxy can't be asked by a page.
    connection = websocket.create_connection(
        url, timeout=20, subprotocols=["talk"], suppress_origin=proxy == "-")
    print("saw", connection.recv())
    connection.send_binary(b"x" * 100_000)
    print("same", connection.recv() == b"x" * 100_000)
    connection.close()
    print("end")


async def hold(url):
    async with websockets.connect(url, proxy=None, subprotocols=["talk"]) as connection:
        await connection.recv()
        await connection.send("held")
        print(await connection.recv(), flush=True)
        try:
            await connection.recv()
        except websockets.ConnectionClosed as end:
            print("end", connection.close_code, flush=True)


match sys.argv[1:]:
    case ["serve", *certificate]:
        asyncio.run(serve(*certificate))
    case ["talk", "websockets", url, proxy]:
        asyncio.run(by_websockets(url, proxy))
    case ["talk", "aiohttp", url, proxy]:
        asyncio.run(by_aiohttp(url, proxy))
    case ["talk", "websocket-client", url, proxy]:
        by_websocket_client(url, proxy)
    case ["hold", url]:
        asyncio.run(hold(url))
