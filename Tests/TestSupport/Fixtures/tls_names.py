"""Gets pages from a TLS server by Python's own certificate checks. Trusts SSL_CERT_FILE.

    tls_names.py CHAIN KEY HOST…

Serves CHAIN with KEY on loopback, and gets a page for each HOST with the strict checks of Python 3.13. Prints one line
for each HOST: the page, or the error.
"""

import http.server
import socket
import ssl
import sys
import threading


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"page")

    def log_message(self, *_):
        pass


chain, key, *hosts = sys.argv[1:]
server = http.server.HTTPServer(("127.0.0.1", 0), Page)
serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
serving.load_cert_chain(chain, key)
server.socket = serving.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()

asking = ssl.create_default_context()
asking.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
for host in hosts:
    try:
        with asking.wrap_socket(socket.create_connection(server.server_address), server_hostname=host) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            print(connection.makefile("rb").read().split(b"\r\n\r\n")[1].decode())
    except ssl.SSLCertVerificationError as error:
        print(error.verify_message)
