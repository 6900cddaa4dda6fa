"""The same exchanges by HTTP/1.1 and by HTTP/2, as a server and as a client, on plain TCP.

    http_pairs.py serve h1|h2                      prints its port, then how clients leave
    http_pairs.py call h1|h2 PORT AUTHORITY CASE…  prints what came of each case
    http_pairs.py soak SECONDS PORT AUTHORITY      both versions at once; each answer has to be the one of its request
"""

import itertools
import socket
import sys
import threading
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions

LIMIT = 30
# Part of an answer that is cut, larger than the windows of HTTP/2 usually are.
PART = bytes(range(250)) * 1000
# Requests for `/wait` so far.
waits = []


def say(text):
    print(text, flush=True)


# MARK: What the server does, by path. Fields are pairs; a body is bytes.

def answer(path, fields, body, trailers):
    """The answer to a whole request: interim answers, status, fields, body, trailers."""
    if path == "/interim":
        return [(103, [("link", "</style.css>")])], 200, [], b"done", []
    if path == "/trailers":
        return [], 200, [], body, [("x-sum", dict(trailers).get("x-sum", "-"))]
    if path == "/waits":
        return [], 200, [], str(len(waits)).encode(), []
    if path == "/large":
        return [], 200, [], bytes(range(256)) * 4096, []
    return [], 200, [("x-echo", dict(fields).get("x-echo", "-"))], body, []


# MARK: HTTP/1.1

class Reader:
    def __init__(self, connection):
        self.connection, self.bytes = connection, b""

    def more(self):
        piece = self.connection.recv(65536)
        if not piece:
            raise EOFError
        self.bytes += piece

    def until(self, mark):
        while mark not in self.bytes:
            self.more()
        found, _, self.bytes = self.bytes.partition(mark)
        return found

    def take(self, count):
        while len(self.bytes) < count:
            self.more()
        taken, self.bytes = self.bytes[:count], self.bytes[count:]
        return taken

    def head(self):
        first, *lines = self.until(b"\r\n\r\n").decode().split("\r\n")
        return first, self.fields(lines)

    @staticmethod
    def fields(lines):
        return [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]

    def chunks(self):
        while size := int(self.until(b"\r\n"), 16):
            yield self.take(size)
            self.until(b"\r\n")

    def trailers(self):
        lines = []
        while line := self.until(b"\r\n"):
            lines.append(line.decode())
        return self.fields(lines)


def head_of(first, fields):
    return (first + "\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n").encode()


def chunk(piece):
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def last_chunk(trailers):
    return b"0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in trailers).encode() + b"\r\n"


def serve_h1(connection):
    reader = Reader(connection)
    while True:
        first, fields = reader.head()
        method, path, _ = first.split(" ")
        given = dict(fields)
        if path == "/early":
            connection.sendall(head_of("HTTP/1.1 413 No", [("content-length", "2"), ("connection", "close")]) + b"no")
            # Until the other side has read it and goes: an end now would be a reset.
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
            return
        if path == "/cut":
            connection.sendall(head_of("HTTP/1.1 200 OK", [("content-length", "900000")]) + PART)
            return
        if path == "/wait":
            waits.append(path)
            while connection.recv(65536):
                pass
            say("left")
            return
        chunked = "transfer-encoding" in given
        if path == "/both":
            connection.sendall(head_of("HTTP/1.1 200 OK", [("transfer-encoding", "chunked")]))
            for piece in reader.chunks():
                connection.sendall(chunk(piece))
            connection.sendall(last_chunk(reader.trailers()))
            continue
        body = b"".join(reader.chunks()) if chunked else reader.take(int(given.get("content-length", 0)))
        trailers = reader.trailers() if chunked else []
        interim, status, more, content, behind = answer(path, fields, body, trailers)
        for code, lines in interim:
            connection.sendall(head_of(f"HTTP/1.1 {code} Interim", lines))
        if behind:
            connection.sendall(head_of(f"HTTP/1.1 {status} OK", more + [("transfer-encoding", "chunked")]))
            connection.sendall((chunk(content) if content else b"") + last_chunk(behind))
        else:
            head = head_of(f"HTTP/1.1 {status} OK", more + [("content-length", str(len(content)))])
            connection.sendall(head + (b"" if method == "HEAD" else content))


class H1Client:
    def __init__(self, port):
        self.port = port
        self.socket = socket.create_connection(("127.0.0.1", port), LIMIT)
        self.reader = Reader(self.socket)

    def call(self, method, authority, path, fields=(), pieces=None, trailers=(), length=None, each=None):
        fields = [("host", authority), *fields]
        if pieces is not None:
            fields.append(("content-length", str(length)) if length is not None else ("transfer-encoding", "chunked"))
        result = Result()
        try:
            self.socket.sendall(head_of(f"{method} http://{authority}{path} HTTP/1.1", fields))
            if each is None:
                self.send(pieces, trailers, length)
            while True:
                first, lines = self.reader.head()
                status = int(first.split(" ")[1])
                if status >= 200:
                    break
                result.interim.append(status)
            result.status, given = status, dict(lines)
            result.fields = given
            if method == "HEAD":
                pass
            elif "transfer-encoding" in given:
                came = self.reader.chunks()
                if each is not None:
                    for piece in each:
                        self.socket.sendall(chunk(piece))
                        result.body += next(came)
                    self.socket.sendall(last_chunk(trailers))
                for piece in came:
                    result.body += piece
                result.trailers = self.reader.trailers()
            else:
                count = int(given.get("content-length", 0))
                while count > len(result.body):
                    if not self.reader.bytes:
                        self.reader.more()
                    result.body += self.reader.take(min(len(self.reader.bytes), count - len(result.body)))
        except (EOFError, ConnectionError):
            result.end = "cut"
        return result

    def send(self, pieces, trailers, length):
        try:
            for piece in pieces or []:
                self.socket.sendall(piece if length is not None else chunk(piece))
            if pieces is not None and length is None:
                self.socket.sendall(last_chunk(trailers))
        except ConnectionError:
            pass

    def leave(self):
        self.socket.close()


class Result:
    def __init__(self):
        self.interim, self.status, self.fields, self.body, self.trailers, self.end = [], 0, {}, b"", [], "whole"


# MARK: HTTP/2

class H2Side:
    """A connection, with bodies that wait for the peer's window."""

    def __init__(self, connection, client):
        self.socket = connection
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=client, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.waiting = {}
        self.flush()

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.socket.sendall(data)

    def send(self, stream, body, trailers=None, ends=True):
        self.waiting[stream] = [self.waiting.get(stream, [b""])[0] + body, trailers, ends]
        self.go_on(stream)

    def go_on(self, stream):
        try:
            self.send_waiting(stream)
        except h2.exceptions.ProtocolError:
            # The other side has reset the stream.
            self.waiting.pop(stream, None)

    def send_waiting(self, stream):
        body, trailers, ends = self.waiting.get(stream, (None, None, None))
        if body is None:
            return
        while body:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if room <= 0:
                break
            self.h2.send_data(stream, body[:room])
            body = body[room:]
        self.waiting[stream][0] = body
        if not body:
            del self.waiting[stream]
            if ends and trailers:
                self.h2.send_headers(stream, trailers, end_stream=True)
            elif ends:
                self.h2.end_stream(stream)

    def events(self):
        data = self.socket.recv(65536)
        if not data:
            raise EOFError
        events = self.h2.receive_data(data)
        for event in events:
            if isinstance(event, h2.events.DataReceived) and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if isinstance(event, h2.events.StreamReset):
                self.waiting.pop(event.stream_id, None)
            if isinstance(event, (h2.events.WindowUpdated, h2.events.RemoteSettingsChanged)):
                for stream in list(self.waiting):
                    self.go_on(stream)
        return events


def serve_h2(connection):
    side = H2Side(connection, client=False)
    requests, cut = {}, set()
    while True:
        for event in side.events():
            stream = getattr(event, "stream_id", None)
            if isinstance(event, h2.events.RequestReceived):
                fields = dict(event.headers)
                requests[stream] = [fields[":method"], fields[":path"], fields, b"", []]
                path = fields[":path"]
                if path == "/early":
                    side.h2.send_headers(stream, [(":status", "413"), ("content-length", "2")])
                    side.h2.send_data(stream, b"no", end_stream=True)
                    if event.stream_ended is None:
                        side.h2.reset_stream(stream, 0)
                    del requests[stream]
                elif path == "/cut":
                    side.h2.send_headers(stream, [(":status", "200")])
                    side.send(stream, PART, ends=False)
                    cut.add(stream)
                    del requests[stream]
                elif path == "/wait":
                    waits.append(path)
                elif path == "/both":
                    side.h2.send_headers(stream, [(":status", "200")])
            elif isinstance(event, h2.events.DataReceived) and stream in requests:
                if requests[stream][1] == "/both":
                    side.send(stream, event.data, ends=False)
                else:
                    requests[stream][3] += event.data
            elif isinstance(event, h2.events.TrailersReceived) and stream in requests:
                requests[stream][4] = event.headers
            elif isinstance(event, h2.events.StreamReset):
                requests.pop(stream, None)
                say(f"reset {int(event.error_code)}")
            elif isinstance(event, h2.events.StreamEnded) and stream in requests:
                method, path, fields, body, trailers = requests.pop(stream)
                if path == "/wait":
                    continue
                if path == "/both":
                    side.send(stream, b"", [(name, value) for name, value in trailers])
                    continue
                interim, status, more, content, behind = answer(path, fields.items(), body, trailers)
                for code, lines in interim:
                    side.h2.send_headers(stream, [(":status", str(code)), *lines])
                length = [] if behind else [("content-length", str(len(content)))]
                side.h2.send_headers(stream, [(":status", str(status)), *more, *length], end_stream=method == "HEAD")
                if method != "HEAD":
                    side.send(stream, content, behind)
        for stream in [stream for stream in cut if stream not in side.waiting]:
            side.h2.reset_stream(stream, 11)
            cut.remove(stream)
        side.flush()


class H2Client(H2Side):
    def __init__(self, port):
        self.port = port
        super().__init__(socket.create_connection(("127.0.0.1", port), LIMIT), client=True)

    def begin(self, method, authority, path, fields=(), ends=True):
        stream = self.h2.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "http"), (":authority", authority), (":path", path), *fields]
        self.h2.send_headers(stream, head, end_stream=ends)
        return stream

    def note(self, event, result):
        if isinstance(event, h2.events.InformationalResponseReceived):
            result.interim.append(int(dict(event.headers)[":status"]))
        elif isinstance(event, h2.events.ResponseReceived):
            result.fields = dict(event.headers)
            result.status = int(result.fields[":status"])
        elif isinstance(event, h2.events.DataReceived):
            result.body += event.data
        elif isinstance(event, h2.events.TrailersReceived):
            result.trailers = list(event.headers)
        elif isinstance(event, h2.events.StreamEnded):
            return True
        elif isinstance(event, h2.events.StreamReset):
            result.end = f"reset {int(event.error_code)}"
            return True
        return False

    def call(self, method, authority, path, fields=(), pieces=None, trailers=(), length=None, each=None):
        result = Result()
        fields = [*fields, *([("content-length", str(length))] if length is not None else [])]
        stream = self.begin(method, authority, path, fields, ends=pieces is None and each is None)
        pending = iter(each) if each is not None else None
        if pieces is not None and each is None:
            self.send(stream, b"".join(pieces), list(trailers) or None)
        sent = 0
        while True:
            if pending is not None and len(result.body) == sent and result.status:
                piece = next(pending, None)
                if piece is None:
                    self.send(stream, b"", list(trailers) or None)
                    pending = None
                else:
                    sent += len(piece)
                    self.send(stream, piece, ends=False)
            self.flush()
            try:
                events = self.events()
            except EOFError:
                result.end = "cut"
                return result
            if any([self.note(event, result) for event in events if getattr(event, "stream_id", None) == stream]):
                self.flush()
                return result

    def leave(self):
        self.h2.reset_stream(1, 8)
        self.flush()


# MARK: The cases

CLIENTS = {"h1": H1Client, "h2": H2Client}


def case_echo(client, authority):
    body = bytes(range(256)) * 1000
    found = client.call("POST", authority, "/echo", [("x-echo", "yes")], [body], length=len(body))
    return found.status, found.body == body, found.fields.get("x-echo"), found.end


def case_chunked(client, authority):
    body = [b"a" * 10_000, b"b", b"c" * 70_000]
    found = client.call("POST", authority, "/echo", pieces=body)
    return found.status, found.body == b"".join(body), found.end


def case_trailers(client, authority):
    found = client.call("POST", authority, "/trailers", pieces=[b"abc"], trailers=[("x-sum", "6")])
    return found.status, found.body, dict(found.trailers).get("x-sum"), found.end


def case_interim(client, authority):
    found = client.call("GET", authority, "/interim")
    return found.interim, found.status, found.body, found.end


def case_head(client, authority):
    found = client.call("HEAD", authority, "/large")
    return found.status, found.fields.get("content-length"), found.body, found.end


def case_large(client, authority):
    found = client.call("GET", authority, "/large")
    return found.status, found.body == bytes(range(256)) * 4096, found.end


def case_early(client, authority):
    """An answer before the body has passed."""
    body = b"x" * (4 << 20)
    found = client.call("POST", authority, "/early", pieces=[body], length=len(body))
    # An HTTP/2 server may follow a complete answer with RST_STREAM(NO_ERROR).
    return found.status, found.body, found.end in ("whole", "reset 0")


def case_cut(client, authority):
    """All that came before the cut arrives."""
    found = client.call("GET", authority, "/cut")
    return found.body == PART, found.end != "whole"


def case_both(client, authority):
    """Each piece comes back before the next one goes."""
    pieces = [f"piece {index};".encode() for index in range(20)]
    found = client.call("POST", authority, "/both", each=pieces, pieces=[], trailers=[("x-sum", "20")])
    return found.status, found.body == b"".join(pieces), dict(found.trailers).get("x-sum"), found.end


def case_reset(client, authority):
    """The code of an upstream's reset within its answer."""
    return client.call("GET", authority, "/cut").end


def case_leave(client, authority):
    """The client leaves a request that waits."""
    if isinstance(client, H2Client):
        client.begin("GET", authority, "/wait")
        client.flush()
    else:
        client.socket.sendall(head_of(f"GET http://{authority}/wait HTTP/1.1", [("host", authority)]))
    # Until the server has the request.
    while type(client)(client.port).call("GET", authority, "/waits").body == b"0":
        time.sleep(0.05)
    client.leave()
    return "left"


# MARK: The soak

def soak(seconds, port, authority):
    end = time.monotonic() + float(seconds)
    faults, counts = [], {"h1": 0, "h2": 0}

    def bytes_of(name, number):
        return f"{name} {number};".encode() * (number % 3000 + 1)

    def run(version, name):
        client = CLIENTS[version](port)
        for number in itertools.count():
            if time.monotonic() > end:
                return
            body = bytes_of(name, number)
            found = client.call("POST", authority, "/echo", [("x-echo", f"{name}-{number}")], [body], length=len(body))
            if (found.status, found.body, found.fields.get("x-echo")) != (200, body, f"{name}-{number}"):
                faults.append((version, name, number, found.status, found.end, len(found.body)))
                return
            counts[version] += 1

    def run_many(name):
        """Forty streams at once on one connection."""
        client = H2Client(port)
        open_streams, number = {}, 0
        while time.monotonic() < end or open_streams:
            while len(open_streams) < 40 and time.monotonic() < end:
                body = bytes_of(name, number)
                fields = [("x-echo", f"{name}-{number}")]
                stream = client.begin("POST", authority, "/echo", fields, ends=False)
                client.send(stream, body)
                open_streams[stream] = (number, body, Result())
                number += 1
            client.flush()
            for event in client.events():
                stream = getattr(event, "stream_id", None)
                if stream in open_streams and client.note(event, open_streams[stream][2]):
                    number_, body, found = open_streams.pop(stream)
                    if (found.status, found.body, found.fields.get("x-echo")) != (200, body, f"{name}-{number_}"):
                        faults.append(("h2", name, number_, found.status, found.end, len(found.body)))
                        return
                    counts["h2"] += 1

    threads = [threading.Thread(target=run, args=(version, f"{version}{index}")) for version in CLIENTS for index in range(4)]
    threads += [threading.Thread(target=run_many, args=(f"many{index}",)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(f"faults {faults}")
    say(f"served {min(counts.values()) > 10}")
    print(counts, file=sys.stderr)


def serve(version):
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    say(listener.getsockname()[1])

    def run(connection):
        try:
            {"h1": serve_h1, "h2": serve_h2}[version](connection)
        except (EOFError, ConnectionError):
            pass
        finally:
            connection.close()

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=run, args=(connection,), daemon=True).start()


def main(command, *arguments):
    if command == "serve":
        serve(*arguments)
    elif command == "soak":
        soak(arguments[0], int(arguments[1]), arguments[2])
    else:
        version, port, authority, *cases = arguments
        for case in cases:
            client = CLIENTS[version](int(port))
            say(f"{case}: {globals()['case_' + case](client, authority)}")


main(*sys.argv[1:])
