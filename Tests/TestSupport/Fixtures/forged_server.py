"""Serves pages over TLS as `localhost`, with a certificate forged with another host's stolen key.

    forged_server.py WAY CERTIFICATE KEY

CERTIFICATE: the other host's, PEM. KEY: its private scalar in hex. WAY:
    child  signed with that key, issued by that certificate
    root   signed with that key, with the certificate's issuer as its issuer
    own    the certificate itself
Prints its port, then a line for each request.
"""

import datetime
import http.server
import pathlib
import ssl
import sys
import tempfile

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

way, certificate_file, key_file = sys.argv[1:]
stolen = x509.load_pem_x509_certificate(pathlib.Path(certificate_file).read_bytes())
key = ec.derive_private_key(int(pathlib.Path(key_file).read_text(), 16), ec.SECP256R1())
assert key.public_key() == stolen.public_key()


def forge():
    now = datetime.datetime.now(datetime.timezone.utc)
    usage = dict.fromkeys(
        ["content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "key_cert_sign", "crl_sign",
         "encipher_only", "decipher_only"], False)
    identifier = stolen.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    if way == "child":
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(stolen.subject if way == "child" else stolen.issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), True)
        .add_extension(x509.KeyUsage(digital_signature=True, **usage), True)
        .add_extension(x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH]), False)
        .add_extension(identifier, False)
        .sign(key, hashes.SHA256()))


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        print(self.requestline, flush=True)
        body = b"1" * 40 + b"\trefs/heads/main\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_):
        pass


chain = [stolen] if way == "own" else [forge(), stolen]
with tempfile.NamedTemporaryFile() as file:
    for certificate in chain:
        file.write(certificate.public_bytes(serialization.Encoding.PEM))
    file.write(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    file.flush()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file.name)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_port, flush=True)
server.serve_forever()
