"""One call of gRPC, by grpcio as it comes: `grpc_call.py plain|tls HOST:PORT`. Prints the answer, which has the token."""

import sys

import grpc

way, target = sys.argv[1:]
if way == "tls":
    channel = grpc.secure_channel(target, grpc.ssl_channel_credentials())
else:
    channel = grpc.insecure_channel(target)
try:
    print(channel.unary_unary("/test.Echo/Unary")(b"hello", timeout=30).decode())
except grpc.RpcError as error:
    sys.exit(f"{error.code()} {error.details()}")
