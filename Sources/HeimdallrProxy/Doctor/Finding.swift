import WireText

/// The result of one check: printable, and without secrets.
struct Finding: Sendable {
    enum Outcome: String, Sendable {
        case good = "ok"
        case warning, failed, skipped

        fileprivate var mark: String {
            switch self {
            case .good: "ok   "
            case .warning: "WARN "
            case .failed: "FAIL "
            case .skipped: "-    "
            }
        }
    }

    /// Name of the check: one or two words.
    var check: String
    var outcome: Outcome
    /// A sentence without a capital letter at its start and without a full stop.
    var text: String
    /// The remedy. Warnings and failures have one.
    var advice: String?
    var duration: Duration?
    /// Whether this failure may be the consequence of another fault at the same servers.
    var isConsequence = false
    /// Address of the checked server; `nil` if the check is not about a certain server.
    var address: String?

    static func good(_ check: String, _ text: String, after duration: Duration? = nil) -> Finding {
        Finding(check: check, outcome: .good, text: text, duration: duration)
    }

    static func warning(_ check: String, _ text: String, _ advice: String) -> Finding {
        Finding(check: check, outcome: .warning, text: text, advice: advice)
    }

    static func failed(_ check: String, _ text: String, _ advice: String, isConsequence: Bool = false) -> Finding {
        Finding(check: check, outcome: .failed, text: text, advice: advice, isConsequence: isConsequence)
    }

    static func skipped(_ check: String, _ text: String) -> Finding {
        Finding(check: check, outcome: .skipped, text: text)
    }

    /// Whether both findings have the same check, outcome, text and address.
    func isSame(as other: Finding) -> Bool {
        check == other.check && outcome == other.outcome && text == other.text && address == other.address
    }

    fileprivate var line: String {
        let margin = address == nil ? "  " : "    "
        let name = check + String(repeating: " ", count: max(0, 12 - check.count))
        let time = duration.map { " (\(max(0, Int($0 / .milliseconds(1)))) ms)" } ?? ""
        let remedy = advice.map { "\(margin)                   what to do: \(Self.plain($0))\n" } ?? ""
        return "\(margin)\(outcome.mark) \(name) \(Self.plain(text))\(time)\n\(remedy)"
    }

    fileprivate var json: JSON {
        [
            "check": .string(check), "place": JSON(address), "result": .string(outcome.rawValue),
            "text": .string(Self.plain(text)), "what_to_do": JSON(advice.map(Self.plain)),
            "milliseconds": duration.map { .decimal($0 / .milliseconds(1)) } ?? .null,
        ]
    }

    private static func plain(_ text: String) -> String { text.replacing("`", with: "") }
}

extension [Finding] {
    var hasFailed: Bool { contains { $0.outcome == .failed } }

    func at(_ address: String) -> [Finding] {
        map { finding in
            var finding = finding
            finding.address = address
            return finding
        }
    }
}

/// The findings about one client, one upstream, or the files of the configuration.
struct Diagnosis: Sendable {
    enum Kind: String, Sendable { case configuration, client, upstream }

    let kind: Kind
    var name: String
    /// Findings about the same server are consecutive.
    var findings: [Finding]

    /// Merges diagnoses of upstreams if their findings are the same and include a failure. The result has all names.
    static func joined(_ all: [Diagnosis]) -> [Diagnosis] {
        all.reduce(into: []) { joined, diagnosis in
            let same = joined.firstIndex { $0.isSame(as: diagnosis) }
            guard diagnosis.kind == .upstream, diagnosis.findings.hasFailed, let same else {
                return joined.append(diagnosis)
            }
            joined[same].name += ", " + diagnosis.name
        }
    }

    private func isSame(as other: Diagnosis) -> Bool {
        kind == other.kind && findings.elementsEqual(other.findings) { $0.isSame(as: $1) }
    }

    var text: String {
        var text = kind == .configuration ? "Configuration\n" : "\(kind == .client ? "Client" : "Upstream") \(name)\n"
        var last: String?
        for finding in findings {
            if let address = finding.address, address != last { text += "  \(address)\n" }
            last = finding.address
            text += finding.line
        }
        return text
    }

    var json: JSON {
        ["kind": .string(kind.rawValue), "name": .string(name), "checks": .array(findings.map(\.json))]
    }
}
