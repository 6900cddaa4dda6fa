"""Searches a program's memory for the private keys of P-256 certificates, knowing only the certificates.

    private_scalars.py PROGRAM ARGUMENT…

The program prints a line `KIND BASE64` for each certificate, then `done`. Every 32 bytes of its writable memory that
look random, at any address and in both byte orders, are multiplied with the curve's generator. If the result is a
certificate's public key, the bytes are its private key. If it is the first half of a certificate's signature, they are
the signature's nonce, which reveals the signer's key. Prints a JSON object with the number of each.

After a line `process PID`, that process is searched instead. After `keys FILE`, the last private key found is written
to FILE in hex.
"""

import base64
import ctypes
import json
import re
import subprocess
import sys

# Runs of 32 bytes or more without three zero bytes in a row, which may hold a random number.
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
    """The x coordinate of scalar · G, by EC_POINT_mul(3) and EC_POINT_point2oct(3), compressed."""
    crypto.BN_bin2bn(scalar, 32, number)
    assert crypto.EC_POINT_mul(group, point, number, None, None, context) == 1
    crypto.EC_POINT_point2oct(group, point, 2, encoded, 33, context)
    return encoded.raw[1:]


def elements(der):
    """Yields the contents of the elements in DER."""
    while der:
        size, start = der[1], 2
        if size & 0x80:
            start += size & 0x7F
            size = int.from_bytes(der[2:start], "big")
        yield der[start : start + size]
        der = der[start + size :]


def could_be_random(window):
    """Whether the bytes look random. Misses one in ten thousand random numbers."""
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
                pass  # The running process has unmapped these pages.


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
