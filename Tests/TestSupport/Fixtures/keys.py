"""Makes keys and checks signatures made with them, by a third-party library.

    keys.py make KIND [FORMAT]                    # a private key: rsa2048, rsa1024, p256, p384, p521, ed25519; pem, jwk
    keys.py verify '{"token": …, "key": …, "algorithms": […]}'     # {"header": …, "claims": …}, or it fails
    keys.py thumbprint KEY
    keys.py public KEY                            # as a JWK
"""

import json
import sys

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from joserfc import jwk, jwt
from joserfc.errors import InvalidKeyTypeError

KINDS = {
    "rsa1024": lambda: rsa.generate_private_key(public_exponent=65537, key_size=1024),
    "rsa2048": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "p384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "p521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "secp256k1": lambda: ec.generate_private_key(ec.SECP256K1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
}
TYPES = {"rsa": jwk.RSAKey, "p": jwk.ECKey, "ed": jwk.OKPKey}


def read(text):
    """Reads a JWK, a PEM or a shared secret."""
    if text.lstrip().startswith("{"):
        return jwk.import_key(json.loads(text))
    if "-----BEGIN" not in text:
        return jwk.OctKey.import_key(text)
    for kind in TYPES.values():
        try:
            return kind.import_key(text)
        except (ValueError, InvalidKeyTypeError):
            continue
    raise SystemExit("no key of a kind that joserfc knows")


def make(kind, form="pem"):
    key = KINDS[kind]()
    encoding, layouts = serialization.Encoding.PEM, serialization.PrivateFormat
    if form == "traditional":
        return key.private_bytes(encoding, layouts.TraditionalOpenSSL, serialization.NoEncryption()).decode()
    if form == "encrypted":
        return key.private_bytes(encoding, layouts.PKCS8, serialization.BestAvailableEncryption(b"x")).decode()
    if form == "public":
        return key.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
    text = key.private_bytes(encoding, layouts.PKCS8, serialization.NoEncryption()).decode()
    return text if form == "pem" else json.dumps(read(text).as_dict(private=True))


def verify(order):
    token = jwt.decode(order["token"], read(order["key"]), algorithms=order["algorithms"])
    return json.dumps({"header": token.header, "claims": token.claims})


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "make":
        print(make(*arguments))
    elif command == "verify":
        print(verify(json.loads(arguments[0])))
    elif command == "thumbprint":
        print(read(arguments[0]).thumbprint())
    elif command == "public":
        print(json.dumps(read(arguments[0]).as_dict(private=False)))
    else:
        raise SystemExit(__doc__)
