"""Looks for what was secret in what was written, in a folder that a run of the tests left: HEIMDALLR_TESTS_KEEP.

The tests' own servers note each credential that they receive or give out, and the executable runs at debug."""

import subprocess
import sys
from pathlib import Path

#: Fewer secrets or less text than this, and nothing was looked at.
FEWEST = {"secrets": 50, "written": 100_000}


def main():
    folder = Path(sys.argv[1])
    for name, fewest in FEWEST.items():
        path = folder / name
        there = 0
        if path.exists():
            there = len(path.read_bytes().splitlines()) if name == "secrets" else path.stat().st_size
        if there < fewest:
            print(f"{path}: {there}, where a run of the tests leaves {fewest} at least")
            return 1
    # Thousands of words in megabytes of text: grep looks for all of them at once.
    found = subprocess.run(
        ["grep", "-aFn", "-f", folder / "secrets", folder / "written"], capture_output=True, check=False)
    if found.returncode == 1:
        print("no secret in all that was written")
        return 0
    if found.returncode != 0:
        print(found.stderr.decode())
        return 1
    secrets = (folder / "secrets").read_bytes().splitlines()
    heads = [(number, line) for number, line in enumerate((folder / "written").read_bytes().splitlines(), 1)
             if line.startswith(b"== ")]
    # How a command was called is the doing of its test.
    hits = [hit for hit in found.stdout.splitlines() if not hit.split(b":", 1)[1].startswith(b"== ")]
    if not hits:
        print("no secret in all that was written")
        return 0
    for hit in hits:
        number, text = hit.split(b":", 1)
        head = [line for place, line in heads if place <= int(number)][-1:]
        shown = [secret for secret in secrets if secret in text][:1]
        print(f"{b''.join(head).decode(errors='replace')[:160]}\n  {text.decode(errors='replace')[:400]}\n"
              f"  shows {b''.join(shown).decode(errors='replace')}")
    return 1


sys.exit(main())
