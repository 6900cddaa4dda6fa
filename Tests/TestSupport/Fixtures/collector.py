"""A collector of spans for tests: accepts OTLP/HTTP, reads each body by OpenTelemetry's schema, prints its content as a
line of JSON, and answers by the given behaviour.

collector.py [CERTIFICATE KEY] -- BEHAVIOUR...: prints its port. One behaviour for each request, in order; then `ok`.
"""

import http.server
import json
import socket
import ssl
import sys
import threading
import time

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
from opentelemetry.proto.trace.v1 import trace_pb2 as trace

split = sys.argv.index("--")
files, script = sys.argv[1:split], sys.argv[split + 1:]
lock = threading.Lock()


def value(any_value):
    kind = any_value.WhichOneof("value")
    return str(getattr(any_value, kind)) if kind != "bool_value" else str(any_value.bool_value).lower()


def attributes(pairs):
    assert len({pair.key for pair in pairs}) == len(pairs), "an attribute stands there twice"
    return {pair.key: value(pair.value) for pair in pairs}


def unknown(message):
    """The number of fields that the schema does not know."""
    from google.protobuf import unknown_fields
    found = len(unknown_fields.UnknownFieldSet(message))
    for field, inner in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            repeated = getattr(field, "is_repeated", None)
            if repeated is None:
                repeated = field.label == field.LABEL_REPEATED
            found += sum(unknown(one) for one in (inner if repeated else [inner]))
    return found


def spans(request):
    for of_resource in request.resource_spans:
        resource = attributes(of_resource.resource.attributes)
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                yield {
                    "resource": resource, "scope": of_scope.scope.name, "version": of_scope.scope.version,
                    "trace": span.trace_id.hex(), "span": span.span_id.hex(), "parent": span.parent_span_id.hex(),
                    "state": span.trace_state, "name": span.name, "kind": trace.Span.SpanKind.Name(span.kind),
                    "start": span.start_time_unix_nano, "end": span.end_time_unix_nano,
                    "attributes": attributes(span.attributes), "flags": span.flags,
                    "status": trace.Status.StatusCode.Name(span.status.code),
                    "events": [
                        {"name": event.name, "time": event.time_unix_nano, "attributes": attributes(event.attributes)}
                        for event in span.events
                    ],
                }


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = service.ExportTraceServiceRequest.FromString(body)
        with lock:
            behaviour = script.pop(0) if script else "ok"
            print(json.dumps({
                "path": self.path, "behaviour": behaviour, "time": time.monotonic(), "bytes": len(body),
                "unknown": unknown(request), "fields": {name.lower(): text for name, text in self.headers.items()},
                "spans": list(spans(request)),
            }), flush=True)
        word, _, rest = behaviour.partition(":")
        getattr(self, word)(*(rest.split(":", 1) if rest else []))

    def answer(self, status, body=b"", fields=()):
        self.send_response(status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(body)))
        for name, text in fields:
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def ok(self):
        self.answer(200, service.ExportTraceServiceResponse().SerializeToString())

    def status(self, code, retry_after=None):
        self.answer(int(code), fields=[("Retry-After", retry_after)] if retry_after else [])

    def partial(self, count, message=""):
        answer = service.ExportTraceServiceResponse()
        answer.partial_success.rejected_spans = int(count)
        answer.partial_success.error_message = message
        self.answer(200, answer.SerializeToString())

    def redirect(self):
        self.answer(307, fields=[("Location", "/elsewhere")])

    def garbage(self):
        self.answer(200, bytes(range(256)) * 8)

    def nothttp(self):
        self.wfile.write(b"\x00\xff" * 40 + b"\r\n\r\n")
        self.close_connection = True

    def pour(self, head, piece):
        """Sends up to 1 GiB as fast as possible."""
        self.close_connection = True
        poured = 0
        try:
            self.wfile.write(head)
            while poured < 1 << 30:
                self.wfile.write(piece)
                poured += len(piece)
        except OSError:
            pass
        print(json.dumps({"poured": poured}), flush=True)

    def huge(self):
        self.pour(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n", b"x" * 65536)

    def hugehead(self):
        self.pour(b"HTTP/1.1 200 OK\r\n", b"X-More: " + b"x" * 8000 + b"\r\n")

    def close(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def slow(self):
        self.close_connection = True
        time.sleep(120)

    def drip(self):
        """Sends a byte every 0.2 s, without end."""
        self.close_connection = True
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n")
            while True:
                self.wfile.write(b"x")
                time.sleep(0.2)
        except OSError:
            pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        kind = sys.exc_info()[0]
        if not issubclass(kind, (OSError, ssl.SSLError)):
            super().handle_error(request, client_address)


server = Server(("127.0.0.1", 0), Handler)
if files:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files[:2])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
