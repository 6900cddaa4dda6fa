"""Both ends of tunnels.

    tunnel_crowd.py echo | flood | exchange | switch
        A server that prints its port. echo: says again what it hears, `gone` when a connection ends. flood: talks
        without end, `full` when nobody takes anything any more. exchange: sends 1 GiB while it reads to the end.
        switch: the same after an upgrade.
    tunnel_crowd.py crowd | deaf | hold | tunnel | upgrade PROXY TARGET COUNT
        crowd: COUNT tunnels at once, each of which is spoken through twice, and ended. deaf: COUNT that are not read.
        hold: COUNT that are held until they end. tunnel, upgrade: COUNT MiB each way through one.
"""

import asyncio
import resource
import socket
import sys
import threading

limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
GIBIBYTE = 1 << 30
BLOCK = bytes(range(256)) * 1024


async def echo(reader, writer):
    try:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass
    print("gone", flush=True)
    writer.close()


written = 0


async def flood(reader, writer):
    global written
    try:
        while True:
            writer.write(BLOCK)
            await writer.drain()
            written += len(BLOCK)
    except OSError:
        writer.close()


async def watch():
    last, quiet = 0, 0
    while quiet < 10:
        await asyncio.sleep(0.1)
        quiet = quiet + 1 if written == last and written else 0
        last = written
    print("full", flush=True)


async def serve(handler):
    server = await asyncio.start_server(handler, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    if handler is flood:
        await watch()
    await server.serve_forever()


def both_ways(connection, size, ends=True):
    sent = []

    def send():
        for _ in range(size // len(BLOCK)):
            connection.sendall(BLOCK)
        if ends:
            connection.shutdown(socket.SHUT_WR)
        sent.append(size)

    sending = threading.Thread(target=send)
    sending.start()
    received = 0
    buffer = bytearray(1 << 18)
    while count := connection.recv_into(buffer):
        received += count
        if received >= size:
            break
    sending.join()
    return sum(sent), received


def head(connection):
    text = b""
    while not text.endswith(b"\r\n\r\n"):
        piece = connection.recv(1)
        if not piece:
            raise SystemExit(f"ended in its head: {text}")
        text += piece
    return text


def exchange(switches):
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    connection, _ = listener.accept()
    if switches:
        head(connection)
        connection.sendall(b"HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n")
    # The upstream's end is the end of an upgraded connection.
    print("sent", *both_ways(connection, GIBIBYTE, ends=not switches), flush=True)
    connection.close()


async def connect(proxy, target, kind):
    client = socket.socket()
    if kind == "deaf":
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", proxy))
    reader, writer = await asyncio.open_connection(sock=client)
    writer.write(f"CONNECT 127.0.0.1:{target} HTTP/1.1\r\nHost: 127.0.0.1:{target}\r\n\r\n".encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    if not answer.startswith(b"HTTP/1.1 200 "):
        raise SystemExit(answer)
    return reader, writer


async def crowd(proxy, target, count, kind):
    tunnels = await asyncio.gather(*(connect(proxy, target, kind) for _ in range(count)))
    print("open", len(tunnels), flush=True)
    if kind == "deaf":
        for _, writer in tunnels:
            writer.transport.pause_reading()
        return await asyncio.sleep(3600)
    if kind == "hold":
        try:
            await asyncio.gather(*(reader.read() for reader, _ in tunnels))
        except OSError:
            pass
        return print("gone", flush=True)

    async def speak(number, reader, writer):
        message = f"this is {number:05}".encode() * 100
        writer.write(message)
        return await reader.readexactly(len(message)) == message

    for _ in range(2):
        print("echoed", sum(await asyncio.gather(*(speak(n, *tunnel) for n, tunnel in enumerate(tunnels)))), flush=True)

    async def end(reader, writer):
        writer.write_eof()
        rest = await reader.read()
        writer.close()
        return rest == b""

    print("ended", sum(await asyncio.gather(*(end(*tunnel) for tunnel in tunnels))), flush=True)


def one(proxy, target, size, kind):
    connection = socket.create_connection(("127.0.0.1", proxy))
    if kind == "tunnel":
        connection.sendall(f"CONNECT 127.0.0.1:{target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        expected = b"HTTP/1.1 200 "
    else:
        connection.sendall(
            b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n")
        expected = b"HTTP/1.1 101 "
    answer = head(connection)
    if not answer.startswith(expected):
        raise SystemExit(answer)
    print("sent", *both_ways(connection, size))


match sys.argv[1:]:
    case ["echo"]:
        asyncio.run(serve(echo))
    case ["flood"]:
        asyncio.run(serve(flood))
    case ["exchange"]:
        exchange(False)
    case ["switch"]:
        exchange(True)
    case [("tunnel" | "upgrade") as kind, proxy, target, count]:
        one(int(proxy), int(target), int(count) << 20, kind)
    case [kind, proxy, target, count]:
        asyncio.run(crowd(int(proxy), int(target), int(count), kind))
