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
    /// A sentence without its capital letter and full stop.
    var text: String
    /// The remedy. Warnings and failures have one.
    var advice: String?
    var duration: Duration?
    /// Whether another fault of the same servers explains this one.
    var isConsequence = false

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

    /// Whether only the times differ.
    func isSame(as other: Finding) -> Bool {
        check == other.check && outcome == other.outcome && text == other.text
    }

    fileprivate func text(_ margin: String) -> String {
        let name = check + String(repeating: " ", count: max(0, 12 - check.count))
        let time = duration.map { " (\(max(0, Int($0 / .milliseconds(1)))) ms)" } ?? ""
        let remedy = advice.map { "\(margin)                   what to do: \(Self.plain($0))\n" } ?? ""
        return "\(margin)\(outcome.mark) \(name) \(Self.plain(text))\(time)\n\(remedy)"
    }

    fileprivate func json(_ address: String?) -> JSON {
        .object([
            .init("check", .string(check)), .init("place", JSON(address)), .init("result", .string(outcome.rawValue)),
            .init("text", .string(Self.plain(text))), .init("what_to_do", JSON(advice.map(Self.plain))),
            .init("milliseconds", duration.map { JSON.decimal($0 / .milliseconds(1)) } ?? .null),
        ])
    }

    private static func plain(_ text: String) -> String { text.replacing("`", with: "") }
}

extension [Finding] {
    var hasFailed: Bool { contains { $0.outcome == .failed } }
}

/// The findings about one client, one upstream, or the files of the configuration.
struct Diagnosis: Sendable {
    enum Kind: String, Sendable { case configuration, client, upstream }

    struct Group: Sendable {
        /// `nil`: the findings are about the whole.
        var address: String?
        var findings: [Finding]
    }

    var kind: Kind
    var name: String
    var groups: [Group]

    var findings: [Finding] { groups.flatMap(\.findings) }

    /// Makes one diagnosis of upstreams with one address and the same faults, under all their names.
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
        kind == other.kind && groups.map(\.address) == other.groups.map(\.address)
            && findings.elementsEqual(other.findings) { $0.isSame(as: $1) }
    }

    var text: String {
        var text = kind == .configuration ? "Configuration\n" : "\(kind == .client ? "Client" : "Upstream") \(name)\n"
        for group in groups {
            if let address = group.address { text += "  \(address)\n" }
            text += group.findings.map { $0.text(group.address == nil ? "  " : "    ") }.joined()
        }
        return text
    }

    var json: JSON {
        let checks = groups.flatMap { group in group.findings.map { $0.json(group.address) } }
        return .object([
            .init("kind", .string(kind.rawValue)), .init("name", .string(name)), .init("checks", .array(checks)),
        ])
    }
}
