"""Calls of gRPC, by grpcio as it comes: `grpc_client.py TARGET[=AUTHORITY] CASE…`. Prints `ok CASE` for each case that went well."""

import sys
import threading
import time

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

SERVICE = "test.Service"
LONG = 30
target, *cases = sys.argv[1:]
target, _, authority = target.partition("=")
channel = grpc.insecure_channel(
    target,
    options=[
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.enable_retries", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ] + ([("grpc.default_authority", authority)] if authority else []),
)


def method(kind, name, on=channel):
    return getattr(on, kind)(f"/{SERVICE}/{name}")


def failure(call):
    """The error that the call ends with."""
    try:
        result = call()
        if hasattr(result, "__next__"):
            for _ in result:
                pass
    except grpc.RpcError as error:
        return error
    raise AssertionError("the call succeeded")


def expect(condition, *shown):
    if not condition:
        raise AssertionError(shown)


def unary():
    for size in [0, 1, 1000, 70_000]:
        body = b"x" * size
        expect(method("unary_unary", "Echo")(body, timeout=LONG) == body, size)


def metadata():
    sent = [("x-one", "1"), ("x-bytes-bin", bytes(range(256)))]
    body, call = method("unary_unary", "Echo").with_call(b"x", metadata=sent, timeout=LONG)
    got = dict(call.trailing_metadata())
    expect(got["x-one"] == "1" and got["x-bytes-bin"] == bytes(range(256)), got)
    # grpcio takes `te: trailers` for itself, and refuses calls without it.
    expect(got["seen-token"].startswith("Bearer "), got)


def server_streaming():
    call = method("unary_stream", "Count")(b"500", timeout=LONG)
    expect(dict(call.initial_metadata()).get("x-early") == "yes", call.initial_metadata())
    messages = list(call)
    expect([int(message.rstrip(b".")) for message in messages] == list(range(500)), len(messages))


def client_streaming():
    pieces = [b"x" * (index * 37 % 5000) for index in range(300)]
    total = method("stream_unary", "Collect")(iter(pieces), timeout=LONG)
    expect(int(total) == sum(map(len, pieces)), total)


def chat():
    """Each message is answered before the next one is sent."""
    turn = threading.Semaphore(1)

    def messages():
        for index in range(50):
            turn.acquire()
            yield str(index).encode()

    answers = []
    for answer in method("stream_stream", "Chat")(messages(), timeout=LONG):
        answers.append(answer)
        turn.release()
    expect(answers == [f"re {index}".encode() for index in range(50)], len(answers))


def large():
    body = bytes(range(256)) * 64 * 1024
    expect(method("unary_unary", "Echo")(body, timeout=LONG) == body, "16 MiB")


def compression():
    body = b"compressible " * 20_000
    for kind in [grpc.Compression.Gzip, grpc.Compression.Deflate]:
        expect(method("unary_unary", "Echo")(body, compression=kind, timeout=LONG) == body, kind)


def statuses():
    for code in grpc.StatusCode:
        if code.value[0] in (0, 16):
            continue
        error = failure(lambda: method("unary_unary", "Fail")(f"{code.value[0]} für 100 %".encode(), timeout=LONG))
        expect(error.code() == code and error.details() == "für 100 %", error)
        expect(dict(error.trailing_metadata())["reason-bin"] == b"\0\1\xff", error)


def early_answer():
    """The server refuses in the middle of a stream that never ends by itself."""
    stop = threading.Event()

    def messages():
        while not stop.is_set():
            yield b"x" * 10_000

    error = failure(lambda: method("stream_unary", "Refuse")(messages(), timeout=LONG))
    stop.set()
    expect(error.code() == grpc.StatusCode.INVALID_ARGUMENT and error.details() == "enough", error)


def deadline():
    begin = time.monotonic()
    error = failure(lambda: method("unary_unary", "Hang")(b"", timeout=2))
    expect(error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error)
    expect(time.monotonic() - begin < 20)


def cancellation():
    call = method("stream_stream", "Chat")(iter(lambda: time.sleep(0.01) or b"x", None), timeout=LONG)
    next(call)
    call.cancel()
    error = failure(lambda: call)
    expect(error.code() == grpc.StatusCode.CANCELLED, error)


def unimplemented():
    error = failure(lambda: method("unary_unary", "Nothing")(b"", timeout=LONG))
    expect(error.code() == grpc.StatusCode.UNIMPLEMENTED, error)


def health():
    stub = health_pb2_grpc.HealthStub(channel)
    request = health_pb2.HealthCheckRequest()
    serving = health_pb2.HealthCheckResponse.SERVING
    expect(stub.Check(request, timeout=LONG).status == serving)
    watch = stub.Watch(request, timeout=LONG)
    expect(next(watch).status == serving)
    watch.cancel()


def reflection():
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    answers = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter([request]), timeout=LONG)
    names = {service.name for service in next(answers).list_services_response.service}
    expect("grpc.health.v1.Health" in names, names)


def keepalive():
    """PINGs while a stream is silent, and while there is none."""
    kept = grpc.insecure_channel(target, options=[
        ("grpc.keepalive_time_ms", 100), ("grpc.keepalive_timeout_ms", 5000),
        ("grpc.keepalive_permit_without_calls", 1), ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.ping_timeout_ms", 5000), ("grpc.use_local_subchannel_pool", 1),
    ])
    go_on = threading.Event()

    def messages():
        yield b"one"
        go_on.wait(LONG)
        yield b"two"

    call = method("stream_stream", "Chat", kept)(messages(), timeout=LONG)
    expect(next(call) == b"re one")
    # Time itself: longer than the client waits between two PINGs.
    time.sleep(1.5)
    go_on.set()
    expect(next(call) == b"re two")
    kept.close()


def crowd():
    """Many calls at once, each with bytes of its own: none gets another's."""
    call = method("unary_unary", "Echo")
    calls = [(index, call.future(f"{index} ".encode() * (index % 900 + 1), timeout=LONG)) for index in range(400)]
    for index, future in calls:
        expect(future.result() == f"{index} ".encode() * (index % 900 + 1), index)


def error():
    """Shows how a call fails."""
    found = failure(lambda: method("unary_unary", "Echo")(b"x", timeout=LONG))
    print(f"{found.code().name}: {found.details()}", flush=True)


def seen_token():
    _, call = method("unary_unary", "Echo").with_call(b"x", timeout=LONG)
    return dict(call.trailing_metadata())["seen-token"]


def token():
    """Shows the token of a call."""
    print(seen_token(), flush=True)


def expiring():
    """Shows how a stream ends whose token ends, and the token of the next call."""
    messages = []
    try:
        for message in method("unary_stream", "Expire")(b"", timeout=LONG):
            messages.append(message)
    except grpc.RpcError as found:
        print(f"{messages} {found.code().name}", flush=True)
    token()


def long_chat():
    """A stream that stays across the end of its token."""
    first = seen_token()

    def messages():
        yield b"one"
        while seen_token() == first:
            time.sleep(0.1)
        yield b"two"

    answers = method("stream_stream", "Chat")(messages(), timeout=120)
    expect(list(answers) == [b"re one", b"re two"])


for case in cases:
    globals()[case]()
    print(f"ok {case}", flush=True)
