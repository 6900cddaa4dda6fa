"""Signs an id token as a server would, or forges one.

    id_token.py '{"algorithm": "RS256", "forgery": null, "claims": {…}}'    # prints {"jwks": …, "token": …}

The claims are used unchanged. Keys are made for each call.
"""

import base64
import hashlib
import hmac
import json
import sys

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

HASHES = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
CURVES = {"256": ("P-256", ec.SECP256R1(), 32), "384": ("P-384", ec.SECP384R1(), 48), "512": ("P-521", ec.SECP521R1(), 66)}


def encode(data):
    if isinstance(data, dict):
        data = json.dumps(data, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value, size=None):
    return encode(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


def generate(algorithm, bits=2048):
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    if algorithm.startswith("ES"):
        return ec.generate_private_key(CURVES[algorithm[2:]][1])
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def public(key, algorithm):
    if algorithm == "EdDSA":
        raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return {"kty": "OKP", "crv": "Ed25519", "x": encode(raw)}
    numbers = key.public_key().public_numbers()
    if algorithm.startswith("ES"):
        name, _, size = CURVES[algorithm[2:]]
        return {"kty": "EC", "crv": name, "x": number(numbers.x, size), "y": number(numbers.y, size)}
    return {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}


def sign(key, algorithm, message):
    if algorithm == "EdDSA":
        return key.sign(message)
    digest = HASHES[algorithm[2:]]
    if algorithm.startswith("ES"):
        size = CURVES[algorithm[2:]][2]
        r, s = utils.decode_dss_signature(key.sign(message, ec.ECDSA(digest)))
        return r.to_bytes(size, "big") + s.to_bytes(size, "big")
    if algorithm.startswith("PS"):
        return key.sign(message, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
    return key.sign(message, padding.PKCS1v15(), digest)


order = json.loads(sys.argv[1])
algorithm, forgery, claims = order["algorithm"], order.get("forgery"), order["claims"]
key = generate(algorithm, 1024 if forgery == "short" else 2048)
entry = {**public(key, algorithm), "kid": "first", "use": "sig", "alg": algorithm}
header = {"alg": algorithm, "kid": "first", "typ": "JWT"}
signer = key
# An encryption key and a key of an unknown kind come first.
others = [
    {**public(generate(algorithm), algorithm), "kid": "first", "use": "enc"},
    {"kty": "oct", "k": "c2VjcmV0", "kid": "first"},
    {"kty": "Future", "kid": "first"},
]
if forgery in ("foreign", "embedded", "address"):
    signer = generate(algorithm)
if forgery == "embedded":
    header["jwk"] = public(signer, algorithm)
if forgery == "address":
    header["jku"] = order["address"]
    header["x5u"] = order["address"]
if forgery == "kid":
    header["kid"] = order["kid"]
if forgery == "no kid":
    del header["kid"]
if forgery == "critical":
    header["crit"] = ["exp"]
if forgery == "other use":
    entry["use"] = "enc"
if forgery == "other algorithm":
    entry["alg"] = "RS512"
if forgery in ("none", "nOnE"):
    header["alg"] = forgery
if forgery == "hmac":
    header["alg"] = "HS256"
message = f"{encode(header)}.{encode(claims)}"
if forgery in ("none", "nOnE"):
    signature = b""
elif forgery == "hmac":
    pem = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    signature = hmac.new(pem, message.encode(), hashlib.sha256).digest()
else:
    signature = sign(signer, algorithm, message.encode())
if forgery == "payload":
    message = f"{encode(header)}.{encode({**claims, 'sub': 'somebody else'})}"
if forgery == "cut":
    signature = signature[:-1]
if forgery == "zero":
    signature = bytes(len(signature))
if forgery == "malleable":
    signature = signature[:-1] + bytes([signature[-1] ^ 1])
print(json.dumps({"jwks": {"keys": others + [entry]}, "token": f"{message}.{encode(signature)}"}))
