"""Computes medians and ratios of samples, and writes them as Markdown."""

import statistics
from dataclasses import asdict

OURS = "heimdallr-proxy"

#: field of a sample, heading, decimals
LOAD_COLUMNS = [
    ("cpu_us", "CPU µs/request", 1),
    ("requests_per_second", "requests/s", 0),
    ("mib_per_second", "MiB/s", 0),
    ("p50_us", "p50 µs", 0),
    ("p99_us", "p99 µs", 0),
    ("peak_mib", "peak MiB", 1),
]
START_COLUMNS = [("start_ms", "start ms", 1), ("idle_mib", "idle MiB", 1), ("peak_mib", "peak MiB", 1)]


def median_of(samples, field):
    values = [getattr(sample, field) for sample in samples if getattr(sample, field) is not None]
    return statistics.median(values) if values else None


def summarise(samples, peers, workloads):
    """Medians for each workload and peer, of quiet samples if there are any."""
    cells = {}
    for workload in workloads:
        for peer in peers:
            mine = [s for s in samples if s.peer == peer.name and s.workload == workload.name]
            failures = sorted({s.failure for s in mine if s.failure})
            quiet = [s for s in mine if not s.noisy]
            used = quiet or mine
            cell = {"rounds": len(mine), "quiet_rounds": len(quiet), "failures": failures}
            if mine and not failures:
                cell |= {field: median_of(used, field) for field, _, _ in LOAD_COLUMNS}
                cell["proxy_cores"] = median_of(used, "proxy_cores")
                cpu = [s.cpu_us for s in used]
                cell["cpu_spread"] = (max(cpu) - min(cpu)) / statistics.median(cpu) if min(cpu) > 0 else None
            cells.setdefault(workload.name, {})[peer.name] = cell
    start = {}
    for peer in peers:
        mine = [s for s in samples if s.peer == peer.name]
        peaks = [s.peak_mib for s in mine if s.peak_mib is not None]
        start[peer.name] = {
            "start_ms": median_of(mine, "start_ms"),
            "idle_mib": median_of(mine, "idle_mib"),
            "peak_mib": max(peaks) if peaks else None,
        }
    ratios = {name: ratios_of(row, LOAD_COLUMNS) for name, row in cells.items()}
    ratios["start and memory"] = ratios_of(start, START_COLUMNS)
    return {"workloads": cells, "start and memory": start, "ratios": ratios}


def ratios_of(rows, columns):
    """Our values divided by those of each other peer, for every column that both have."""
    ours = rows.get(OURS, {})
    return {
        peer: {field: ours[field] / row[field] for field, _, _ in columns if ours.get(field) and row.get(field)}
        for peer, row in rows.items()
        if peer != OURS and OURS in rows
    }


def number(value, decimals):
    return "–" if value is None else f"{value:,.{decimals}f}"


def table(rows, ratios, columns, notes):
    lines = [
        "| | " + " | ".join([*(heading for _, heading, _ in columns), "note"]) + " |",
        "|:--|" + "--:|" * len(columns) + ":--|",
    ]
    for peer, row in rows.items():
        values = [number(row.get(field), decimals) for field, _, decimals in columns]
        lines.append(f"| {peer} | " + " | ".join([*values, notes.get(peer, "")]) + " |")
    for peer, row in ratios.items():
        if row:
            values = [number(row.get(field), 2) for field, _, _ in columns]
            lines.append(f"| **ours ÷ {peer}** | " + " | ".join([*values, ""]) + " |")
    return lines


def note(cell):
    if cell["failures"]:
        return "FAILED: " + "; ".join(cell["failures"]).replace("|", "/")
    if not cell["rounds"]:
        return "not measured"
    parts = []
    if cell["rounds"] > 1 and cell["cpu_spread"] is not None:
        parts.append(f"CPU ±{cell['cpu_spread'] / 2:.0%}")
    if cell["quiet_rounds"] < cell["rounds"]:
        parts.append(f"{cell['rounds'] - cell['quiet_rounds']} of {cell['rounds']} rounds noisy")
    return ", ".join(parts)


def markdown(facts, summary, workloads):
    settings = facts["settings"]
    lines = [
        "# heimdallr-proxy beside Envoy and nginx",
        "",
        f"{facts['when']}. {facts['machine']}. {facts['placement']}.",
        f"{settings['rounds']} interleaved rounds, {settings['seconds']} s each after {settings['warmup']} s of warm-up;"
        " medians. " + "; ".join(facts["versions"].values()) + ".",
        "Only the ratios carry over to other machines, and only within one run.",
    ]
    for workload in workloads:
        cells = summary["workloads"][workload.name]
        notes = {peer: note(cell) for peer, cell in cells.items()}
        lines += ["", f"## {workload.title}", ""]
        lines += table(cells, summary["ratios"][workload.name], LOAD_COLUMNS, notes)
    lines += ["", "## Start and memory", ""]
    lines += table(summary["start and memory"], summary["ratios"]["start and memory"], START_COLUMNS, {})
    return "\n".join(lines) + "\n"


def document(facts, samples, summary):
    return {**facts, "summary": summary, "samples": [asdict(sample) for sample in samples]}
