"""Searches a program's memory for the private keys of P-256 certificates, knowing only the certificates.

    private_scalars.py PROGRAM ARGUMENT…

The program prints lines of `KIND BASE64`, a certificate each, and `done`. Every 32 bytes of its writable memory that could
be random, at any address and in both byte orders, are multiplied with the curve's generator. Where that gives a
certificate's public key, they are its private key; where it gives the first half of a certificate's signature, they are
the nonce of that signature, from which the signer's key follows. Prints a JSON object of how often each was found.

A line `process PID` has another process searched instead, and after `keys FILE` the last private key found is written
there in hex.
"""

import base64
import ctypes
import json
import re
import subprocess
import sys

# The runs of bytes that a random number can stand in, and each place in one.
RUN = re.compile(rb"(?:[^\0]|\0(?!\0\0)){32,}", re.DOTALL)
HIGH = bytes(range(0x80))

crypto = ctypes.CDLL("libcrypto.so.3")
for name in ("EC_GROUP_new_by_curve_name", "EC_POINT_new", "BN_CTX_new", "BN_bin2bn"):
    getattr(crypto, name).restype = ctypes.c_void_p
group = ctypes.c_void_p(crypto.EC_GROUP_new_by_curve_name(415))
point = ctypes.c_void_p(crypto.EC_POINT_new(group))
context = ctypes.c_void_p(crypto.BN_CTX_new())
number = ctypes.c_void_p(crypto.BN_bin2bn(b"", 0, None))
encoded = ctypes.create_string_buffer(33)


def abscissa(scalar):
    """The x of scalar · G. EC_POINT_mul(3), EC_POINT_point2oct(3), compressed."""
    crypto.BN_bin2bn(scalar, 32, number)
    assert crypto.EC_POINT_mul(group, point, number, None, None, context) == 1
    crypto.EC_POINT_point2oct(group, point, 2, encoded, 33, context)
    return encoded.raw[1:]


def elements(der):
    """The contents of the elements in DER."""
    while der:
        size, start = der[1], 2
        if size & 0x80:
            start += size & 0x7F
            size = int.from_bytes(der[2:start], "big")
        yield der[start : start + size]
        der = der[start + size :]


def could_be_random(window):
    """One in ten thousand random numbers is not taken for one."""
    return len(window.translate(None, HIGH)) >= 6 and len(set(window)) >= 24


def memory(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            words = line.split()
            if not words[1].startswith("rw") or words[-1].startswith("[v"):
                continue
            start, end = (int(bound, 16) for bound in words[0].split("-"))
            mem.seek(start)
            try:
                while start < end and (piece := mem.read(end - start)):
                    yield piece
                    start += len(piece)
            except OSError:
                pass  # A running process has unmapped it meanwhile.


options = {}
targets = {}
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for line in iter(child.stdout.readline, "done\n"):
    kind, text = line.split()
    if kind in ("process", "keys"):
        options[kind] = text
        continue
    [certificate] = elements(base64.b64decode(text))
    body, _, signature = elements(certificate)
    key = certificate.index(b"\x03\x42\x00\x04") + 4
    targets[certificate[key : key + 32]] = f"key of a {kind}"
    [pair] = elements(signature[1:])
    targets[next(elements(pair))[-32:].rjust(32, b"\0")] = f"nonce under a {kind}"

found = {what: 0 for what in targets.values()}
found["candidates"] = 0
seen = {}
for piece in memory(options.get("process", child.pid)):
    for run in RUN.finditer(piece):
        text = run.group()
        for start in range(len(text) - 31):
            window = text[start : start + 32]
            if window in seen:
                for what in seen[window]:
                    found[what] += 1
                continue
            if not could_be_random(window):
                continue
            found["candidates"] += 1
            scalars = {abscissa(scalar): scalar for scalar in (window, window[::-1])}
            seen[window] = [targets[x] for x in scalars if x in targets]
            for x in scalars.keys() & targets.keys():
                if "keys" in options and targets[x].startswith("key"):
                    with open(options["keys"], "w") as file:
                        file.write(scalars[x].hex())
            for what in seen[window]:
                found[what] += 1
child.stdin.close()
child.wait()
print(json.dumps(found))
