"""HTTP/2 by ALPN alone, in TLS inside CONNECT: http2_inside_tls.py PROXY HOST CA AUTHORITY… asks for each authority's / on one
connection, and prints what ALPN chose, then the statuses."""

import socket
import ssl
import sys

import h2.config
import h2.connection
import h2.events


def connect(proxy, host, anchors):
    plain = socket.create_connection(proxy, timeout=20)
    plain.sendall(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += plain.recv(1)
    context = ssl.create_default_context(cafile=anchors)
    context.set_alpn_protocols(["h2"])
    return context.wrap_socket(plain, server_hostname=host)


def main(address, host, anchors, *authorities):
    name, port = address.split(":")
    stream = connect((name, int(port)), host, anchors)
    print(stream.selected_alpn_protocol())
    session = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    session.initiate_connection()
    open_streams = {}
    for index, authority in enumerate(authorities):
        fields = [(":method", "GET"), (":scheme", "https"), (":authority", authority), (":path", f"/{index}")]
        session.send_headers(2 * index + 1, fields, end_stream=True)
        open_streams[2 * index + 1] = authority
    statuses = {}
    stream.sendall(session.data_to_send())
    while open_streams:
        for event in session.receive_data(stream.recv(65536)):
            if isinstance(event, h2.events.ResponseReceived):
                statuses[open_streams[event.stream_id]] = dict(event.headers)[":status"]
            if isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                open_streams.pop(event.stream_id)
        stream.sendall(session.data_to_send())
    for authority in authorities:
        print(authority, statuses.get(authority))


main(*sys.argv[1:])
