"""Measures a proxy with many clients, each with an upstream: memory, scrape, reload, and how long other requests wait."""

import asyncio
import multiprocessing
import socket
import subprocess
import time
import urllib.request

from .machine import BenchmarkError, free_ports, resident_mib
from .processes import Process, wait_until

TOKEN = b'{"access_token":"' + b"t" * 256 + b'","token_type":"Bearer","expires_in":3600}'


async def _answer(reader, writer):
    """Answers token requests with a token, and all others with a short text."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
            await reader.readexactly(int(fields.get(b"content-length", 0)))
            body = TOKEN if head.startswith(b"POST") else b"ok"
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def _serve(port):
    async def run():
        server = await asyncio.start_server(_answer, "127.0.0.1", port, backlog=1024)
        await server.serve_forever()

    asyncio.run(run())


def _exchange(connection, host):
    connection.sendall(f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    answer = b""
    while not answer.endswith(b"ok"):
        piece = connection.recv(4096)
        if not piece:
            raise BenchmarkError(f"the proxy closed a connection after {answer[:80]!r}")
        answer += piece


def _probe(port, longest):
    """Sends one request after the other, and keeps the longest time to an answer."""
    connection = socket.create_connection(("127.0.0.1", port), 20)
    while True:
        begin = time.perf_counter()
        _exchange(connection, "probe.test")
        longest.value = max(longest.value, time.perf_counter() - begin)
        time.sleep(0.0005)


def _configuration(directory, count, ports, timeout=10):
    origin, listen, admin = ports
    secret = directory / "secret"
    secret.write_text("secret")
    text = [
        f"proxy: {{listen: 127.0.0.1:{listen}}}",
        f"admin: {{listen: 127.0.0.1:{admin}, socket: {directory}/admin.sock}}",
        "log: {level: warning, access: false}",
        "clients:",
    ]
    for number in range(count):
        text.append(
            f"  client-{number}: {{token_endpoint: 'http://127.0.0.1:{origin}/token', client_id: client-{number}, "
            f"client_secret: {{file: {secret}}}, allow_plaintext: true}}")
    url = f"url: 'http://127.0.0.1:{origin}', allow_plaintext: true, http2: false"
    text += ["upstreams:", f"  - {{host: probe.test, {url}, response_timeout: {timeout}s}}"]
    text += [f"  - {{host: api-{number}.test, client: client-{number}, {url}}}" for number in range(count)]
    file = directory / "pairs.yaml"
    file.write_text("\n".join(text) + "\n")
    return file


def _get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=120) as answer:
        return answer.read()


def _tokens(port):
    page = _get(port, "/metrics").decode()
    return sum(line.startswith("heimdallr_client_state{") and 'state="ready"' in line and line.endswith(" 1")
               for line in page.splitlines())


def measure(binary, directory, count, used):
    """Returns one row. `used` upstreams have had a request."""
    ports = free_ports(3)
    origin, listen, admin = ports
    file = _configuration(directory, count, ports)
    context = multiprocessing.get_context("fork")
    longest = context.Value("d", 0.0)
    helpers = [context.Process(target=_serve, args=(origin,), daemon=True)]
    helpers[0].start()
    process = Process([binary, "serve", "--config", file], range(0, multiprocessing.cpu_count()), directory / "log")
    try:
        def listens():
            try:
                return socket.create_connection(("127.0.0.1", admin), 1).close() is None
            except OSError:
                return False

        wait_until(listens, process, "the proxy", 120, 0.05)
        wait_until(lambda: _tokens(admin) == count, process, "every client's token", 600, 1)
        connection = socket.create_connection(("127.0.0.1", listen), 20)
        for number in range(min(used, count)):
            _exchange(connection, f"api-{number}.test")
        time.sleep(3)
        row = {"pairs": count, "resident": resident_mib(process.tree(), "VmRSS"), "own": resident_mib(process.tree(), "RssAnon")}
        row["scrape"] = len(_get(admin, "/metrics"))
        helpers.append(context.Process(target=_probe, args=(listen, longest), daemon=True))
        helpers[1].start()
        time.sleep(1)
        holds = {}

        def held(name, action):
            longest.value = 0
            begin = time.perf_counter()
            action()
            elapsed = time.perf_counter() - begin
            time.sleep(0.05)
            holds[name] = (longest.value, elapsed)

        held("nothing", lambda: time.sleep(1))
        held("metrics", lambda: _get(admin, "/metrics"))
        held("status", lambda: _get(admin, "/status"))
        held("page", lambda: _get(admin, "/"))
        _configuration(directory, count, ports, timeout=11)

        def reload():
            done = subprocess.run([binary, "reload", "--config", file], capture_output=True, text=True, timeout=300)
            if done.returncode:
                raise BenchmarkError(done.stderr + done.stdout)
            time.sleep(2)  # the former rules end

        held("reload", reload)
        row["reload"] = holds["reload"][1] - 2
        row["holds"] = {name: value[0] for name, value in holds.items()}
        return row
    finally:
        for helper in helpers:
            helper.kill()
        process.stop()


def table(binary, directory, counts):
    """Prints a row for each number of pairs."""
    print("   pairs  resident  own MiB  KiB/pair  scrape KiB  reload s   longest wait, ms: nothing metrics  status    page  reload")
    least = None
    for count in counts:
        row = measure(binary, directory, count, used=10)
        least = least or row
        each = "" if row is least else f"{(row['own'] - least['own']) * 1024 / (count - least['pairs']):.1f}"
        holds = row["holds"]
        print(
            f"{count:8}{row['resident']:10.1f}{row['own']:9.1f}{each:>10}{row['scrape'] / 1024:12.0f}{row['reload']:10.2f}"
            + " " * 19 + "".join(f"{holds[name] * 1000:8.1f}" for name in ("nothing", "metrics", "status", "page", "reload")),
            flush=True)
