"""Runs all tests; those that failed a second time, alone. One that passes then is printed as FLAKY: it waits for
something else than it means, and wants mending. What fails twice has failed."""

import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

#: More than these have one cause, which their number does not change.
MANY = 25


def run(minutes, *arguments):
    """Returns whether all passed, and the names of those that did not: None when the run broke off."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "tests.xml"
        command = ["timeout", "--kill-after=30", f"{minutes}m", "./deploy/test", "--xunit-output", str(report)]
        passed = subprocess.run([*command, *arguments]).returncode == 0
        found = Path(folder) / "tests-swift-testing.xml"
        try:
            cases = ET.parse(found).getroot().iter("testcase")
        except (OSError, ET.ParseError):
            return passed, None
        failed = [f"{case.get('classname')}/{case.get('name')}" for case in cases if case.find("failure") is not None]
        return passed, failed


def main():
    passed, failed = run(40)
    if passed:
        return 0
    if failed and len(failed) <= MANY:
        print(f"\n== tests: {len(failed)} failed; running them a second time", flush=True)
        arguments = [word for name in failed for word in ("--filter", "^" + re.escape(name))]
        again, still = run(20, "--skip-build", *arguments)
        still = failed if still is None else still
        for name in failed:
            print(f"{'FAILED' if name in still else 'FLAKY'} {name}")
        return 0 if again else 1
    print("\n== tests: the run broke off, or too much failed; running all a second time", flush=True)
    again, _ = run(20)
    if again:
        print("FLAKY the whole run")
    return 0 if again else 1


sys.exit(main())
