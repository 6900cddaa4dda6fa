"""Whether each link in the pages leads to a file that is committed, and to a heading that it has; whether the fields of the
logs have a row in docs/logs.md, and what the map of docs/architecture.md names is in the sources.

Prints one line a finding, `path:line: what`, and exits 1 when there is one. Links to other hosts are not followed.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^()\s]+)\)|src=\"([^\"]+)\"")


def lines(path):
    """The lines outside blocks of code, numbered from 1."""
    code = False
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code:
            yield number, line


def anchor(heading):
    """A heading's anchor, as GitHub and most renderers make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower().replace(" ", "-")
    return re.sub(r"[^\w-]", "", text)


def anchors(path):
    return {anchor(line.lstrip("#")) for _, line in lines(path) if re.match(r"#+ ", line)}


def unwritten():
    """Fields that a log writes, without a row in its section of docs/logs.md."""
    page = (ROOT / "docs/logs.md").read_text(encoding="utf-8")
    for section, name in (("Access log", "AccessLog"), ("Audit", "AuditTrail")):
        rows = page.split(f"\n## {section}\n")[1].split("\n## ")[0]
        known = {word for row in re.findall(r"^\|.*$", rows, re.MULTILINE) for word in re.findall(r"`(\w+)`", row)}
        source = (ROOT / f"Sources/HeimdallrProxy/Log/{name}.swift").read_text(encoding="utf-8")
        for field in sorted(set(re.findall(r"\bline\.\w+\(\"(\w+)\"", source)) - known):
            yield f"docs/logs.md:1: {section}: there is no row for {field}"


def unknown():
    """Names of code in the map of docs/architecture.md that no file of the sources or the tests has."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    files = [path.relative_to(ROOT) for folder in ("Sources", "Tests") for path in (ROOT / folder).rglob("*.swift")]
    words = {part for path in files for part in (*path.parts, path.stem)} | {"NAMECommand"}
    for path in (ROOT / "Sources").rglob("*.swift"):
        words |= set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    for name in re.findall(r"`([A-Z]\w*(?:\.\w+)*)(?:\([^`]*\))?`", page.split("\n## Where to add what\n")[1].split("\n## ")[0]):
        for missing in sorted(set(name.split(".")) - words - {"tsv", "swift", "yaml", "yml", "Problems", "Limits"}):
            yield f"docs/architecture.md:1: {name}: the sources have no {missing}"


def main():
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True,
        check=True)
    files = {(ROOT / name).resolve() for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}
    folders = {parent for file in files for parent in file.parents}
    headings, others = {}, [*unwritten(), *unknown()]
    faults = len(others)
    for fault in others:
        print(fault)
    for page in sorted(file for file in files if file.suffix == ".md" and "/Sources/" not in str(file)):
        for number, line in lines(page):
            for target in (one or other for one, other in LINK.findall(re.sub(r"`[^`]*`", "", line))):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, wanted = target.partition("#")
                file = (page.parent / name).resolve() if name else page
                if file not in files | folders:
                    fault = "there is no such file"
                elif wanted and wanted not in headings.setdefault(file, anchors(file)):
                    fault = "that page has no such heading"
                else:
                    continue
                faults += 1
                print(f"{page.relative_to(ROOT)}:{number}: {target}: {fault}")
    print(f"{faults} findings")
    return 1 if faults else 0


sys.exit(main())
