"""Checks what the compiler doesn't: where Foundation and unsafe code may stand, the size of files, types and functions,
types of one name, and what lies at the top.

Prints one line a finding, `path:line: what`, and exits 1 when there is one.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# For users of the library who have URLRequests; the executable must not get it.
BRIDGE = "HeimdallrFoundation"

# Modules that may hold unsafe code, and files elsewhere that may: process limits, signals, log writing; the terminal and
# child programs; libyaml; copies of bytes and the search for one.
MAY_BE_UNSAFE = {
    "CLinux", "Enclosure", "Reactor", "CurlTransport", "Cryptography", "FileSystem", "HTTP2", "PostgresStore", "QRCode",
    "TLSServer",
}
UNSAFE_FILES = {
    "HeimdallrProxy/SystemCalls.swift", "HeimdallrProxy/Terminal.swift", "HeimdallrProxy/ChildProgram.swift",
    "HeimdallrProxy/Children.swift",
    "HeimdallrProxy/AppendedFile.swift", "HeimdallrProxy/SocketConnection.swift",
    "Configuration/YAMLEvents.swift", "WireText/SpanText.swift",
}
UNSAFE = re.compile(
    r"\bunsafe\b|\bUnsafe(Mutable|Raw|MutableRaw)?(Buffer)?Pointer\b|\bwithUnsafe\w*\b|@unchecked\b|\bunowned\(unsafe\)"
    r"|\bunsafeBitCast\b|\bOpaquePointer\b"
)

# One type takes URLs apart, so that no two readers disagree about a host. Elsewhere: fields of messages, on the wire's
# bytes, and PostgreSQL's own URIs.
TAKES_URLS_APART = {"HTTPMessage/WebURL.swift", "Proxy/AddressMap.swift", "PostgresStore/ConnectionText.swift"}
# A literal that only appends to a text, or asks for it, takes nothing apart.
URL_START = re.compile(r'(?<!append\()(?<!contains\()(?<!\+ )"(?:https?:/?/?|://)"(?! \+)')

TOP_LEVEL = {
    "Package.swift", "Sources", "Tests", "Benchmarks", "deploy", "docs", "config.yaml", "README.md", "LICENSE",
}
NEVER_COMMITTED = re.compile(r"(^|/)(\.build|\.venv|\.swiftpm|__pycache__)/|(^|/)Package\.resolved$")

# Comments and literals hold words, not code. Raw and multi-line strings first: the longest opener wins.
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|(#*)"""(?:.*?)"""\1|(#+)"(?:.*?)"\2|"(?:\\.|[^"\\\n])*"', re.DOTALL
)
IMPORT = re.compile(
    r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?import\s+"
    r"(?:(?:struct|class|enum|protocol|func|var|let|typealias|actor)\s+)?(\w+)",
    re.MULTILINE,
)

# Plain values that mirror a page of the configuration, an answer or a line of a log: a list of fields, no behaviour.
MANY_VALUES = re.compile(r"Settings\.swift$|/(HeimdallrConfiguration|HeimdallrStatus|RequestRecord)\.swift$")

# A test: its display name, else the name of its function, in backticks or plain.
TEST = re.compile(
    r'^ *@Test\b(?:\s*\(\s*"((?:[^"\\]|\\.)*)")?(?:(?!\n *@Test\b).)*?\bfunc\s+(?:`([^`]+)`|(\w+))', re.DOTALL | re.MULTILINE
)
# Words with which a name goes on from something that a log does not show.
NO_BEGINNING = set(
    "and but nor or also so yet it its they their them these those is are was were has have does gets goes takes makes says"
    .split()
)

MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 60
MAX_STORED_PROPERTIES = 15

MODIFIERS = r"(?:(?:@\w+|public|package|internal|private|fileprivate|final|unowned|weak|lazy|nonisolated|unsafe|mutating|override|required|convenience|indirect)(?:\([^)]*\))?\s+)*"
TYPE = re.compile(rf"^( *){MODIFIERS}(?:struct|class|actor)\s+(\w+)")
FUNCTION = re.compile(rf"^( *){MODIFIERS}(?:static\s+)?{MODIFIERS}(?:func\s+`?([^\s(<`]+)|(init)\b|(deinit)\b)")
STORED = re.compile(rf"^ *{MODIFIERS}(?:var|let)\s+(.*)$")
# Computed, unless the braces are a default value's or an observer's.
COMPUTED = re.compile(r"^[^={]*\{(?!\s*(?:did|will)Set\b)")

# A type that others can see, at the top of a file.
SHARED_TYPE = re.compile(
    r"^(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|final|indirect|nonisolated)\s+)*"
    r"(?:struct|class|enum|actor|protocol|typealias)\s+(\w+)", re.MULTILINE
)
# Names that two targets may give to different things, each with its reason. Empty: one word, one thing.
SHARED_NAMES = {}

findings = []
test_names = {}
types = {}


def find(path, line, what):
    findings.append(f"{path}:{line}: {what}")


def code_of(text):
    """The text with comments and literals blanked, lines kept."""
    return NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


def block_end(lines, start, indentation):
    """The line that closes the block begun at `start`."""
    for index in range(start, len(lines)):
        if re.match(rf" {{{indentation}}}\}}", lines[index]) and (index > start or lines[index].count("{") == 0):
            return index
    return start


def body_of(lines, start):
    """The line with the brace that opens the function's body; `None` for a requirement of a protocol."""
    depth = 0
    for index in range(start, len(lines)):
        depth += lines[index].count("(") - lines[index].count(")")
        if depth > 0:
            continue
        if lines[index].rstrip().endswith("{"):
            return index
        following = lines[index + 1].lstrip() if index + 1 < len(lines) else ""
        if not following.startswith(("{", "throws", "->", "where", "async")):
            return None
    return None


def check_sizes(relative, code):
    lines = code.split("\n")
    if len(lines) - 1 > MAX_FILE_LINES:
        find(relative, 1, f"{len(lines) - 1} lines; at most {MAX_FILE_LINES} in a file")
    for index, line in enumerate(lines):
        if match := FUNCTION.match(line):
            opened = body_of(lines, index)
            if opened is None:
                continue
            length = block_end(lines, opened + 1, len(match.group(1))) - index + 1
            if length > MAX_FUNCTION_LINES:
                find(relative, index + 1, f"{match.group(2) or match.group(3)} has {length} lines; at most {MAX_FUNCTION_LINES} in a function")
        if match := TYPE.match(line):
            indentation = len(match.group(1))
            count = 0
            for member in lines[index + 1 : block_end(lines, index + 1, indentation)]:
                stored = STORED.match(member)
                if stored and len(member) - len(member.lstrip()) == indentation + 4 and not COMPUTED.match(stored.group(1)):
                    # `var first, second: Int`
                    count += 1 + re.split(r"[:=(]", stored.group(1))[0].count(",")
            if count > MAX_STORED_PROPERTIES and not MANY_VALUES.search(str(relative)):
                find(relative, index + 1, f"{match.group(2)} has {count} stored properties; at most {MAX_STORED_PROPERTIES} in a type")


def check_source(path, target):
    relative = path.relative_to(ROOT)
    text = path.read_text(encoding="utf-8")
    code = code_of(text)
    check_sizes(relative, code)
    for match in SHARED_TYPE.finditer(code):
        types.setdefault(match.group(1), {}).setdefault(target, (relative, code.count("\n", 0, match.start(1)) + 1))
    for match in IMPORT.finditer(code):
        line = code.count("\n", 0, match.start(1)) + 1
        if match.group(1).startswith("Foundation") and target != BRIDGE:
            find(relative, line, f"import {match.group(1)}: Foundation stays out of all but {BRIDGE}: it is megabytes that nothing uses")
        if match.group(1) == "CLibyaml":
            yaml_files.add(relative)
    if target not in MAY_BE_UNSAFE and f"{target}/{path.name}" not in UNSAFE_FILES:
        for match in UNSAFE.finditer(code):
            find(relative, code.count("\n", 0, match.start()) + 1, f"`{match.group(0)}` in {target}: unsafe code has its modules")
    if f"{target}/{path.name}" not in TAKES_URLS_APART:
        for match in URL_START.finditer(text):
            if not text[text.rfind("\n", 0, match.start()) : match.start()].lstrip().startswith("//"):
                find(relative, text.count("\n", 0, match.start()) + 1, f"{match.group(0)}: `WebURL` takes URLs apart")
    for match in re.finditer(r"@exclusivity\(unchecked\)", code):
        if not re.search(r"#if !DEBUG\n\s*@safe $", code[: match.start()]):
            find(relative, code.count("\n", 0, match.start()) + 1, "debug builds check exclusive access: write it between `#if !DEBUG` and `#endif`, after `@safe`")
    for match in re.finditer(r"\btry!", code):
        find(relative, code.count("\n", 0, match.start()) + 1, "`try!`")


def check_tests(path):
    relative = path.relative_to(ROOT)
    text = path.read_text(encoding="utf-8")
    if text.count("\n") > 400:
        find(relative, 1, f"{text.count(chr(10))} lines; at most 400 in a file of tests")
    for match in IMPORT.finditer(code_of(text)):
        if match.group(1) == "XCTest":
            find(relative, text.count("\n", 0, match.start()) + 1, "XCTest: the tests are Swift Testing")
    for match in TEST.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        name = match.group(1) or match.group(2)
        if not name:
            find(relative, line, f"{match.group(3)}: a test's name is a sentence that says what holds, and when")
            continue
        words = re.sub(r"^(\[\d+\] ?|\d+: )+", "", name).split()
        if len(words) < 3 or words[0].lower() in NO_BEGINNING:
            find(relative, line, f"`{name}` says nothing in a log, which has no suite: name what it is about")
        if name in test_names:
            find(relative, line, f"`{name}` is the name of the test at {test_names[name]}, too")
        test_names[name] = f"{relative}:{line}"


def check_manifest():
    dumped = subprocess.run(
        ["swift", "package", "dump-package"], cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if dumped.returncode != 0:
        find("Package.swift", 1, "can't be read: " + dumped.stderr.strip())
        return
    arrows, names, order = set(), set(), []
    for target in json.loads(dumped.stdout)["targets"]:
        if target["type"] in ("test", "plugin") or not (ROOT / "Sources" / target["name"]).is_dir():
            continue
        names.add(target["name"])
        order.append(target["name"])
        for dependency in target["dependencies"]:
            wanted = (dependency.get("byName") or dependency.get("target") or dependency.get("product"))[0]
            arrows.add((target["name"], wanted))
    if BRIDGE in reached("HeimdallrProxy", arrows):
        find("Package.swift", 1, f"{BRIDGE} comes into the executable, and all of Foundation with it")
    path = pathlib.Path("docs/architecture.md")
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    for name in sorted(names - {name for row in rows for name in re.findall(r"`(\w+)`", row)}):
        find(path, 1, f"the table of targets lacks {name}")
    floors = {path: [name for row in rows for name in re.findall(r"`(\w+)`", row)], "Package.swift": order}
    for page, sorted_names in floors.items():
        for begin, end in sorted(arrows & {(one, other) for one in sorted_names for other in sorted_names}):
            if sorted_names.index(end) < sorted_names.index(begin):
                find(page, 1, f"{end} stands above {begin}, which imports it: targets stand top down")


def reached(start, arrows):
    """The targets that `start` depends on, directly or not."""
    found, waiting = set(), [start]
    while waiting:
        name = waiting.pop()
        for target in {end for begin, end in arrows if begin == name} - found:
            found.add(target)
            waiting.append(target)
    return found


def check_tree():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    committed = [name for name in listed.stdout.split("\0") if name]
    for name in sorted({name.split("/")[0] for name in committed}):
        if not name.startswith(".") and name not in TOP_LEVEL:
            find(name, 1, "nothing else lies at the top level")
    for name in committed:
        if NEVER_COMMITTED.search(name):
            find(name, 1, "is made by a build and never committed")


yaml_files = set()
for source in sorted((ROOT / "Sources").rglob("*.swift")):
    check_source(source, source.relative_to(ROOT / "Sources").parts[0])
if len(yaml_files) > 1:
    find(sorted(yaml_files)[1], 1, "CLibyaml is imported in one file only")
for name, homes in sorted(types.items()):
    if len(homes) > 1 and name not in SHARED_NAMES:
        (first, _), (path, line) = list(homes.values())[:2]
        find(path, line, f"{name} is also a type in {first}: each thing has its own name")
for test in sorted((ROOT / "Tests").rglob("*.swift")):
    check_tests(test)
check_manifest()
check_tree()

for finding in findings:
    print(finding)
print(f"{len(findings)} findings")
sys.exit(1 if findings else 0)
