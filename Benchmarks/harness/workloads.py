"""The requests to each proxy: one checked request (`ask`), or load (`drive`)."""

import http.client
import json
import re
import subprocess
from dataclasses import dataclass

from .machine import BenchmarkError
from .installation import program
from .stage import HTTP2_HOST, PLAIN_HOST, SECURE_HOST

KIB = 1024
MIB = 1024 * 1024


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    path: str
    connections: int
    host: str = PLAIN_HOST
    method: str = "GET"
    upload_bytes: int = 0
    download_bytes: int = 0
    streams: int = 0
    """Concurrent streams on each connection, over HTTP/2 without TLS; 0: HTTP/1.1."""

    @property
    def target(self):
        """The absolute form, as a program with `http_proxy` set sends it."""
        return f"http://{self.host}{self.path}"

    @property
    def payload_bytes(self):
        return self.upload_bytes + self.download_bytes


WORKLOADS = [
    Workload("get-1k-c1", "GET 1 KiB, http, 1 connection", "/1k", 1, download_bytes=KIB),
    Workload("get-1k-c64", "GET 1 KiB, http, 64 connections", "/1k", 64, download_bytes=KIB),
    Workload("get-1k-tls-c64", "GET 1 KiB, https upstream, 64 connections", "/1k", 64, SECURE_HOST, download_bytes=KIB),
    Workload(
        "post-64k-c64", "POST 64 KiB, http, 64 connections", "/upload", 64, method="POST", upload_bytes=64 * KIB
    ),
    Workload("get-10m-c16", "GET 10 MiB, http, 16 connections", "/10m", 16, download_bytes=10 * MIB),
    Workload(
        "call-1k-s100",
        "gRPC-like POST 1 KiB, HTTP/2 both ways, 1 connection, 100 streams",
        "/call",
        1,
        HTTP2_HOST,
        method="POST",
        upload_bytes=KIB,
        download_bytes=KIB,
        streams=100,
    ),
]


def ask(port, workload):
    """Sends one request through the proxy. Returns None if the answer is right, otherwise its error."""
    if workload.streams:
        return ask_http2(port, workload)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(
            workload.method, workload.target, b"u" * workload.upload_bytes or None, {"Host": workload.host}
        )
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        connection.close()
    scheme = "https" if workload.host == SECURE_HOST else "http"
    if response.status != 200:
        return f"status {response.status}: " + " ".join(body[:300].decode(errors="replace").split())
    if workload.upload_bytes and int(body) < workload.upload_bytes:
        return f"the origin got {int(body)} bytes of a request with a body of {workload.upload_bytes}"
    if workload.download_bytes and len(body) != workload.download_bytes:
        return f"{len(body)} bytes came, {workload.download_bytes} were sent"
    if not workload.upload_bytes and response.headers["X-Origin-Scheme"] != scheme:
        return f"the proxy went to the origin over {response.headers['X-Origin-Scheme']}, not {scheme}"
    return None


#: The fields of a gRPC call, without its trailers: the origin is nginx.
CALL_FIELDS = ["-H", "content-type: application/grpc", "-H", "te: trailers"]


def ask_http2(port, workload):
    command = ["curl", "-sS", "--http2-prior-knowledge", "-m", "10", *CALL_FIELDS]
    command += ["--data-binary", "u" * workload.upload_bytes, "-o", "-", "-w", "%{http_version} %{http_code}"]
    command += ["--connect-to", f"{workload.host}:80:127.0.0.1:{port}", workload.target]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode or not done.stdout.endswith("2 200"):
        return " ".join((done.stdout[-300:] + done.stderr).split())
    if len(done.stdout) != workload.download_bytes + len("2 200"):
        return f"{len(done.stdout)} bytes came, {workload.download_bytes} were sent"
    return None


@dataclass(frozen=True)
class Load:
    """Results of wrk or h2load. Latencies are in microseconds."""

    requests: int
    seconds: float
    bytes: int
    p50: float | None
    p99: float | None
    failures: str


#: wrk formats the request once, so that no Lua runs for each request.
LUA = """
wrk.method = "%(method)s"
wrk.path = "%(target)s"
wrk.headers["Host"] = "%(host)s"
if %(upload)d > 0 then wrk.body = string.rep("u", %(upload)d) end
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    'RESULT {"requests":%%d,"us":%%d,"bytes":%%d,"p50":%%d,"p99":%%d,' ..
    '"non-2xx":%%d,"connect":%%d,"read":%%d,"write":%%d,"timeout":%%d}\\n',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99),
    e.status, e.connect, e.read, e.write, e.timeout))
end
"""


def drive(port, workload, seconds, directory):
    """Loads the proxy by wrk or h2load for `seconds`, on the caller's cores."""
    if workload.streams:
        return drive_http2(port, workload, seconds, directory)
    script = directory / f"{workload.name}.lua"
    script.write_text(
        LUA
        % {
            "method": workload.method,
            "target": workload.target,
            "host": workload.host,
            "upload": workload.upload_bytes,
        }
    )
    command = ["wrk", "-t1", f"-c{workload.connections}", f"-d{seconds}s", "--timeout", "10s", "-s", str(script)]
    try:
        done = subprocess.run(
            [*command, f"http://127.0.0.1:{port}"], capture_output=True, text=True, timeout=seconds + 30
        )
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"wrk did not end within {seconds + 30} s") from None
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise BenchmarkError(f"wrk failed: {(done.stdout + done.stderr).strip()[-400:]}")
    result = json.loads(lines[0].removeprefix("RESULT "))
    kinds = ("non-2xx", "connect", "read", "write", "timeout")
    failures = [f"{result[kind]} {kind}" for kind in kinds if result[kind]]
    if not result["requests"]:
        failures.append("no answer at all")
    elif result["bytes"] < result["requests"] * workload.download_bytes:
        failures.append("answers were too short")
    return Load(
        requests=result["requests"],
        seconds=result["us"] / 1e6,
        bytes=result["bytes"],
        p50=result["p50"],
        p99=result["p99"],
        failures=", ".join(failures),
    )


def drive_http2(port, workload, seconds, directory):
    """Loads the proxy by h2load, which reports no percentiles."""
    body = directory / f"{workload.name}.body"
    body.write_bytes(b"u" * workload.upload_bytes)
    command = [program("h2load"), "-t1", f"-c{workload.connections}", f"-m{workload.streams}", f"-D{seconds}"]
    command += [*CALL_FIELDS, "-d", body, f"--connect-to=127.0.0.1:{port}", workload.target]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30)
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"h2load did not end within {seconds + 30} s") from None
    counts = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", done.stdout)
    statuses = re.search(r"(\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", done.stdout)
    traffic = re.search(r"traffic: .*\((\d+)\) data", done.stdout)
    if not (counts and statuses and traffic):
        raise BenchmarkError(f"h2load failed: {(done.stdout + done.stderr).strip()[-400:]}")
    requests, *wrong = map(int, counts.groups())
    wrong += map(int, statuses.groups()[1:])
    kinds = ("failed", "errored", "timeout", "3xx", "4xx", "5xx")
    failures = [f"{count} {kind}" for count, kind in zip(wrong, kinds) if count]
    if not requests:
        failures.append("no answer at all")
    elif int(traffic[1]) < requests * workload.download_bytes:
        failures.append("answers were too short")
    return Load(requests, seconds, int(traffic[1]), p50=None, p99=None, failures=", ".join(failures))
