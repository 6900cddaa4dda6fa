"""A server of gRPC, with health checks and reflection, without generated code: messages are bytes.

    grpc_server.py [CERTIFICATE KEY] [--refuse TOKEN]…

Prints its port once it listens, and then a line for each event that a test may wait for. Calls without `Bearer …`, or with a
refused token, end with UNAUTHENTICATED.
"""

import argparse
import sys
import threading
from concurrent import futures

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

SERVICE = "test.Service"

arguments = argparse.ArgumentParser()
arguments.add_argument("tls", nargs="*")
arguments.add_argument("--refuse", action="append", default=[])
options = arguments.parse_args()


def say(text):
    # One write: lines of several threads don't mix.
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def metadata(context):
    return {name: value for name, value in context.invocation_metadata()}


def echo(request, context):
    """The request's bytes; its own metadata come back behind them."""
    sent = metadata(context)
    context.set_trailing_metadata(
        [(name, value) for name, value in sent.items() if name.startswith("x-")]
        + [("seen-token", sent.get("authorization", "-"))]
    )
    return request


def fail(request, context):
    code, _, text = request.decode().partition(" ")
    context.set_trailing_metadata([("reason-bin", b"\0\1\xff")])
    context.abort(next(status for status in grpc.StatusCode if status.value[0] == int(code)), text)


def count(request, context):
    """That many messages, of one KiB, behind metadata that come first."""
    context.send_initial_metadata([("x-early", "yes")])
    for index in range(int(request)):
        yield str(index).encode().ljust(1024, b".")


def collect(requests, context):
    return str(sum(len(request) for request in requests)).encode()


def refuse(requests, context):
    """Answers at the first message, in the middle of the stream."""
    next(requests)
    context.abort(grpc.StatusCode.INVALID_ARGUMENT, "enough")


def chat(requests, context):
    say("chat began")
    for request in requests:
        yield b"re " + request


def hang(request, context):
    """Says nothing until the caller goes."""
    gone = threading.Event()
    context.add_callback(gone.set)
    say("hang began")
    gone.wait(60)
    say(f"hang ended {context.code()}" if context.is_active() else "hang cancelled")
    return b""


def expire(request, context):
    """A message, and then UNAUTHENTICATED: the token has ended within the stream."""
    yield b"one"
    context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token has ended")


class Gate(grpc.ServerInterceptor):
    def intercept_service(self, go_on, details):
        sent = {name: value for name, value in details.invocation_metadata}
        kind, _, token = sent.get("authorization", "").partition(" ")
        if kind == "Bearer" and token and token not in options.refuse:
            return go_on(details)
        handler = go_on(details)
        say(f"refused {token}")

        def refuse(request, context):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no valid token")

        def refuse_stream(request, context):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no valid token")
            yield b""

        if handler is None:
            return None
        if handler.request_streaming:
            return (
                grpc.stream_stream_rpc_method_handler(refuse_stream)
                if handler.response_streaming
                else grpc.stream_unary_rpc_method_handler(refuse)
            )
        return (
            grpc.unary_stream_rpc_method_handler(refuse_stream)
            if handler.response_streaming
            else grpc.unary_unary_rpc_method_handler(refuse)
        )


server = grpc.server(
    futures.ThreadPoolExecutor(64),
    interceptors=[Gate()],
    options=[
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.http2.min_ping_interval_without_data_ms", 10),
        ("grpc.http2.max_ping_strikes", 0),
    ],
)
server.add_generic_rpc_handlers([
    grpc.method_handlers_generic_handler(SERVICE, {
        "Echo": grpc.unary_unary_rpc_method_handler(echo),
        "Fail": grpc.unary_unary_rpc_method_handler(fail),
        "Hang": grpc.unary_unary_rpc_method_handler(hang),
        "Count": grpc.unary_stream_rpc_method_handler(count),
        "Expire": grpc.unary_stream_rpc_method_handler(expire),
        "Collect": grpc.stream_unary_rpc_method_handler(collect),
        "Refuse": grpc.stream_unary_rpc_method_handler(refuse),
        "Chat": grpc.stream_stream_rpc_method_handler(chat),
    })
])
state = health.HealthServicer()
state.set("", health_pb2.HealthCheckResponse.SERVING)
health_pb2_grpc.add_HealthServicer_to_server(state, server)
reflection.enable_server_reflection(
    [health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME], server)

if options.tls:
    with open(options.tls[0], "rb") as certificate, open(options.tls[1], "rb") as key:
        credentials = grpc.ssl_server_credentials([(key.read(), certificate.read())])
    port = server.add_secure_port("127.0.0.1:0", credentials)
else:
    port = server.add_insecure_port("127.0.0.1:0")
server.start()
say(port)
server.wait_for_termination()
