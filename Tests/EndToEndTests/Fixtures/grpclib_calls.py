"""Calls of gRPC by grpclib, a library of pure Python on h2, and a server of it.

    grpclib_calls.py serve            prints its port
    grpclib_calls.py call HOST PORT   prints `ok CASE` for each case that went well
"""

import asyncio
import sys

from grpclib.client import Channel, StreamStreamMethod, UnaryStreamMethod, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler, Status
from grpclib.encoding.base import CodecBase
from grpclib.exceptions import GRPCError
from grpclib.server import Server

SERVICE = "/test.Service/"


class Bytes(CodecBase):
    # Servers of grpcio answer `application/grpc`, which grpclib takes for `application/grpc+proto`.
    __content_subtype__ = "proto"

    def encode(self, message, message_type):
        return message

    def decode(self, data, message_type):
        return data


class Service:
    async def echo(self, stream):
        request = await stream.recv_message()
        await stream.send_message(request)

    async def fail(self, stream):
        await stream.recv_message()
        raise GRPCError(Status.NOT_FOUND, "für 100 %")

    async def chat(self, stream):
        async for message in stream:
            await stream.send_message(b"re " + message)

    async def count(self, stream):
        for index in range(int(await stream.recv_message())):
            await stream.send_message(str(index).encode())

    async def hang(self, stream):
        await stream.recv_message()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            print("hang cancelled", flush=True)
            raise

    def __mapping__(self):
        kinds = {
            "Echo": (self.echo, Cardinality.UNARY_UNARY),
            "Fail": (self.fail, Cardinality.UNARY_UNARY),
            "Hang": (self.hang, Cardinality.UNARY_UNARY),
            "Chat": (self.chat, Cardinality.STREAM_STREAM),
            "Count": (self.count, Cardinality.UNARY_STREAM),
        }
        return {SERVICE + name: Handler(call, kind, bytes, bytes) for name, (call, kind) in kinds.items()}


async def serve():
    server = Server([Service()], codec=Bytes())
    await server.start("127.0.0.1", 0)
    print(server._server.sockets[0].getsockname()[1], flush=True)
    await server.wait_closed()


async def call(host, port):
    async with Channel(host, int(port), codec=Bytes()) as channel:
        def method(kind, name):
            return kind(channel, SERVICE + name, bytes, bytes)

        for size in [0, 1, 70_000, 1_000_000]:
            body = b"x" * size
            assert await method(UnaryUnaryMethod, "Echo")(body, timeout=30) == body, size
        print("ok unary", flush=True)

        got = await method(UnaryStreamMethod, "Count")(b"200", timeout=30)
        assert [int(message.rstrip(b".")) for message in got] == list(range(200))
        print("ok count", flush=True)

        async with method(StreamStreamMethod, "Chat").open(timeout=30) as stream:
            for index in range(50):
                await stream.send_message(str(index).encode())
                assert await stream.recv_message() == f"re {index}".encode()
            await stream.end()
            assert await stream.recv_message() is None
        print("ok chat", flush=True)

        try:
            await method(UnaryUnaryMethod, "Fail")("5 für 100 %".encode(), timeout=30)
            raise AssertionError("no error")
        except GRPCError as error:
            assert (error.status, error.message) == (Status.NOT_FOUND, "für 100 %"), error
        print("ok status", flush=True)

        try:
            await method(UnaryUnaryMethod, "Hang")(b"", timeout=0.5)
            raise AssertionError("no error")
        except asyncio.TimeoutError:
            print("ok deadline", flush=True)

        bodies = [f"{index} ".encode() * (index + 1) for index in range(200)]
        answers = await asyncio.gather(*(method(UnaryUnaryMethod, "Echo")(body, timeout=30) for body in bodies))
        assert answers == bodies
        print("ok crowd", flush=True)


asyncio.run(serve() if sys.argv[1] == "serve" else call(*sys.argv[2:4]))
