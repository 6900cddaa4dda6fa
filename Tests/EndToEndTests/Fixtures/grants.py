"""One connection to the proxy, over HTTP/1.1 or HTTP/2: grants.py '{"version": 1, "address": "HOST:PORT", …}'.

It asks once and prints the status. Then it waits for the file `go`, asks again and prints what came: a status, `refused`,
`goaway`, `closed`. With `waits`, it does not ask again, but prints what the proxy does. With `resume`, another connection
then resumes the TLS session and asks.

  tls: authorities of the listener's certificate     identity: [certificate, key]      tls_version: 1.2 or 1.3
  connect: HOST:PORT of a CONNECT                     inside: authorities of the certificate inside CONNECT
  password: USER:PASSWORD of the proxy, with CONNECT or else with each request
  urls: scheme, authority and path of both requests   held: the first request gets no answer
"""

import base64
import http.client
import json
import os
import socket
import ssl
import sys
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions

plan = json.loads(sys.argv[1])
is_second = plan["version"] == 2


password = plan.get("password")
basic = password and "Basic " + base64.b64encode(password.encode()).decode()
login = f"Proxy-Authorization: {basic}\r\n" if basic else ""


def say(*words):
    print(*words, flush=True)


def context(anchors, protocols):
    made = ssl.create_default_context(cafile=anchors)
    made.set_alpn_protocols(protocols)
    return made


def dial(former=None):
    name, port = plan["address"].split(":")
    stream = socket.create_connection((name, int(port)), timeout=60)
    protocols = ["h2"] if is_second else ["http/1.1"]
    if anchors := plan.get("tls"):
        secure = context(anchors, ["http/1.1"] if "connect" in plan else protocols)
        if version := plan.get("tls_version"):
            secure.minimum_version = secure.maximum_version = getattr(ssl.TLSVersion, "TLSv" + version.replace(".", "_"))
        if former:
            secure = former.context
        elif identity := plan.get("identity"):
            secure.load_cert_chain(*identity)
        stream = secure.wrap_socket(stream, server_hostname="localhost", session=former.session if former else None)
    if target := plan.get("connect"):
        stream.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{login}\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += stream.recv(1)
        if b" 200 " not in answer:
            sys.exit(answer.decode())
    if anchors := plan.get("inside"):
        stream = context(anchors, protocols).wrap_socket(stream, server_hostname=plan["connect"].split(":")[0])
    return stream


class First:
    """HTTP/1.1."""

    def __init__(self, stream):
        self.stream = stream

    def send(self, scheme, authority, path):
        inside = "connect" in plan
        target = path if inside else f"{scheme}://{authority}{path}"
        fields = f"Host: {authority}\r\n" + ("" if inside else login)
        self.stream.sendall(f"GET {target} HTTP/1.1\r\n{fields}\r\n".encode())

    def outcome(self, until_end):
        try:
            answer = http.client.HTTPResponse(self.stream)
            answer.begin()
            answer.read()
            return [str(answer.status)] + (["close"] if answer.getheader("Connection") == "close" else [])
        except (OSError, http.client.HTTPException):
            return ["closed"]


class Second:
    """HTTP/2."""

    def __init__(self, stream):
        self.stream = stream
        self.session = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.session.initiate_connection()
        self.number = -1

    def send(self, scheme, authority, path):
        self.number += 2
        fields = [(":method", "GET"), (":scheme", scheme), (":authority", authority), (":path", path)]
        if basic and "connect" not in plan:
            fields.append(("proxy-authorization", basic))
        try:
            self.session.send_headers(self.number, fields, end_stream=True)
            self.stream.sendall(self.session.data_to_send())
        except (OSError, h2.exceptions.ProtocolError):
            pass

    def outcome(self, until_end):
        found = []
        while until_end or not found:
            try:
                data = self.stream.recv(65536)
                if not data:
                    return found + ["closed"]
                for event in self.session.receive_data(data):
                    if isinstance(event, h2.events.ResponseReceived):
                        found.append(dict(event.headers)[":status"])
                    if isinstance(event, h2.events.StreamReset):
                        found.append("refused" if event.error_code == 7 else "reset")
                    if isinstance(event, h2.events.ConnectionTerminated):
                        found.append("goaway")
                self.stream.sendall(self.session.data_to_send())
            except (OSError, h2.exceptions.ProtocolError):
                return found + ["closed"]
        return found


def open_connection(former=None):
    stream = dial(former)
    return stream, (Second if is_second else First)(stream)


stream, connection = open_connection()
first, second = plan["urls"] if len(plan["urls"]) == 2 else plan["urls"] * 2
if plan.get("tunnel"):
    stream.sendall(b"hello")
    say(stream.recv(5).decode())
    try:
        say("closed" if not stream.recv(1) else "more")
    except OSError:
        say("closed")
    sys.exit()
connection.send(*first)
if plan.get("held"):
    say("sent")
else:
    say(*connection.outcome(until_end=False))
if plan.get("waits"):
    say(*connection.outcome(until_end=True))
else:
    while not os.path.exists(plan["go"]):
        time.sleep(0.02)
    connection.send(*second)
    say(*connection.outcome(until_end=plan.get("ends", True)))
if plan.get("resume"):
    try:
        again, connection = open_connection(stream)
        connection.send(*second)
        say("resumed" if again.session_reused else "new", *connection.outcome(until_end=False))
    except OSError:
        say("no TLS")
