"""A gRPC server: grpc_server.py [CERTIFICATE KEY]. Prints its port. Without a certificate there is no TLS.

Messages are plain bytes. Each method answers with the received bytes, in the way that its name tells.
"""

import sys
import time
from concurrent import futures

import grpc


def token(context):
    return dict(context.invocation_metadata()).get("authorization", "none")


def unary(request, context):
    context.set_trailing_metadata((("x-end", "unary"), ("x-data-bin", b"\x00\xff")))
    return request + b" " + token(context).encode()


def downwards(request, context):
    for index in range(int(request)):
        yield b"%d" % index


def upwards(requests, context):
    return b"%d" % sum(len(request) for request in requests)


def both(requests, context):
    for request in requests:
        yield request + b" " + token(context).encode()


def fails(request, context):
    context.abort(grpc.StatusCode.NOT_FOUND, "nothing here: 100% sure")


def picky(request, context):
    if token(context) in ("Bearer T1", "none"):
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is old")
    return token(context).encode()


def late(request, context):
    yield b"first"
    if token(context) != "Bearer T2":
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is old")


def waits(request, context):
    print("waiting", flush=True)
    ended = []
    context.add_callback(lambda: (ended.append(1), print("left", flush=True)))
    while not ended:
        time.sleep(0.01)
    return b""


def large(request, context):
    return request * 1000


def deadline(request, context):
    return b"%d" % int(context.time_remaining() or -1)


METHODS = {
    "Unary": grpc.unary_unary_rpc_method_handler(unary),
    "Down": grpc.unary_stream_rpc_method_handler(downwards),
    "Up": grpc.stream_unary_rpc_method_handler(upwards),
    "Both": grpc.stream_stream_rpc_method_handler(both),
    "Fails": grpc.unary_unary_rpc_method_handler(fails),
    "Picky": grpc.unary_unary_rpc_method_handler(picky),
    "Late": grpc.unary_stream_rpc_method_handler(late),
    "Waits": grpc.unary_unary_rpc_method_handler(waits),
    "Large": grpc.unary_unary_rpc_method_handler(large),
    "Deadline": grpc.unary_unary_rpc_method_handler(deadline),
}

options = [("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20)]
server = grpc.server(futures.ThreadPoolExecutor(max_workers=32), options=options)
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", METHODS),))
if len(sys.argv) > 2:
    certificate, key = (open(path, "rb").read() for path in sys.argv[1:3])
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, certificate)]))
else:
    port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
server.wait_for_termination()
