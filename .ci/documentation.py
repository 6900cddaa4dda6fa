"""Checks that every public symbol of the library products has a docstring, and that DocC has nothing to warn of.

Prints one line a finding, `path:line: what`, and exits 1 when there is one. Builds what is not built yet; the symbol
graphs and DocC's pages go to a temporary folder.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
# An extension as such has no docstring; its members have theirs.
KINDS_WITHOUT_WORDS = {"swift.extension", "module"}


def run(*command):
    """What a command prints; its own words and an end where it fails."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: failed\n{done.stdout}{done.stderr}")
    return done.stdout


def place(uri, line):
    """`path:line`, the path from the repository's top; lines from 1 on."""
    path = pathlib.Path(urllib.parse.unquote(urllib.parse.urlsplit(uri).path))
    # A symbol graph may name the sources by another way to the same folder.
    for folder in (ROOT, ROOT.resolve()):
        if path.is_relative_to(folder):
            path = path.relative_to(folder)
    return f"{path}:{line + 1}"


def library_targets():
    """The targets that the library products name: what is public there is what users of the library see."""
    manifest = json.loads(run("swift", "package", "dump-package"))
    products = [product for product in manifest["products"] if "library" in product["type"]]
    return sorted({target for product in products for target in product["targets"]})


def extract(targets, folder):
    """Writes the symbol graphs of targets, which are built already."""
    modules = pathlib.Path(run("swift", "build", "--show-bin-path").strip()) / "Modules"
    triple = json.loads(run("swiftc", "-print-target-info"))["target"]["unversionedTriple"]
    searched = [modules, *sorted(path.parent for path in (ROOT / "Sources").glob("*/module.modulemap"))]
    includes = [word for path in searched for word in ("-I", str(path))]
    for target in targets:
        run(
            "swift", "symbolgraph-extract", "-module-name", target, "-target", triple, *includes,
            "-minimum-access-level", "public", "-skip-synthesized-members", "-output-dir", str(folder),
            # The library hands out JSONValue as its own.
            "-experimental-allowed-reexported-modules=WireText",
        )


def undocumented(folder):
    for path in sorted(folder.glob("*.symbols.json")):
        for symbol in json.loads(path.read_text(encoding="utf-8"))["symbols"]:
            location = symbol.get("location")
            written = location and "::SYNTHESIZED" not in symbol["identifier"]["precise"]
            if not written or symbol["kind"]["identifier"] in KINDS_WITHOUT_WORDS:
                continue
            words = "".join(line["text"] for line in symbol.get("docComment", {}).get("lines", []))
            if not words.strip():
                where = place(location["uri"], location["position"]["line"])
                yield f"{where}: {'.'.join(symbol['pathComponents'])} is public and has no docstring"


def docc():
    """DocC of the toolchain that `swift` comes from."""
    beside = pathlib.Path(shutil.which("swift") or "swift").resolve().parent / "docc"
    return str(beside) if beside.exists() else "docc"


def warnings(targets, graphs, folder):
    """What DocC says of all the modules together, with the page that begins the documentation."""
    catalogs = [path for target in targets for path in sorted((ROOT / "Sources" / target).glob("*.docc"))]
    if len(catalogs) > 1:
        sys.exit(f"more than one DocC catalogue: {' '.join(map(str, catalogs))}")
    said = folder / "diagnostics.json"
    command = [
        docc(), "convert", *map(str, catalogs), "--fallback-display-name", "Heimdallr",
        "--fallback-bundle-identifier", "heimdallr.library", "--additional-symbol-graph-dir", str(graphs),
        "--output-path", str(folder / "pages"), "--diagnostics-file", str(said),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    found = json.loads(said.read_text(encoding="utf-8"))["diagnostics"] if said.exists() else []
    for diagnostic in found:
        line = diagnostic.get("range", {}).get("start", {}).get("line", 1)
        where = place(diagnostic["source"], line - 1) if diagnostic.get("source") else "DocC"
        yield f"{where}: {diagnostic['severity']}: {diagnostic['summary']}"
    if done.returncode != 0 and not found:
        yield f"DocC failed: {done.stdout}{done.stderr}"


def main():
    targets = library_targets()
    for target in targets:
        run("swift", "build", "--target", target)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        graphs = folder / "graphs"
        os.mkdir(graphs)
        extract(targets, graphs)
        for target in targets:
            if not (graphs / f"{target}.symbols.json").exists():
                sys.exit(f"no symbol graph of {target}")
        findings = [*undocumented(graphs), *warnings(targets, graphs, folder)]
    for finding in sorted(set(findings)):
        print(finding)
    print(f"{len(set(findings))} findings in {', '.join(targets)}")
    return 1 if findings else 0


sys.exit(main())
