import WireText

/// One thing that was looked at, and what came of it. No secret in it, and nothing that does not print.
struct Finding: Sendable, Equatable {
    enum Outcome: String, Sendable {
        case good = "ok"
        case warning
        case failed
        /// Not looked at, and why.
        case skipped
    }

    /// What was looked at, in a word or two.
    var check: String
    var outcome: Outcome
    /// What was seen: a sentence without its capital and full stop.
    var text: String
    /// What to do; where it is not well, there always is something.
    var advice: String?
    var duration: Duration?
    var kin = Kin.none

    /// How a finding depends on others.
    enum Kin: Sendable {
        case none
        /// Follows from a fault of a place or of the metadata, and is told only without one.
        case consequence
        /// Is told only where no token came.
        case refutedByToken
    }

    static func good(_ check: String, _ text: String, after duration: Duration? = nil) -> Finding {
        Finding(check: check, outcome: .good, text: text, duration: duration)
    }

    static func warning(_ check: String, _ text: String, _ advice: String) -> Finding {
        Finding(check: check, outcome: .warning, text: text, advice: advice)
    }

    static func failed(_ check: String, _ text: String, _ advice: String) -> Finding {
        Finding(check: check, outcome: .failed, text: text, advice: advice)
    }

    static func skipped(_ check: String, _ text: String) -> Finding {
        Finding(check: check, outcome: .skipped, text: text)
    }
}

/// What was found out about one client, one upstream, or the files of the configuration.
struct Diagnosis: Sendable, Equatable {
    enum Kind: String, Sendable { case configuration, client, upstream }

    /// Findings that belong together, about one address say.
    struct Part: Sendable, Equatable {
        /// `nil`: about the whole.
        var place: String?
        var findings: [Finding]
    }

    var kind: Kind
    var name: String
    var parts: [Part]

    var findings: [Finding] { parts.flatMap(\.findings) }

    /// Upstreams at one place of which the same is wrong are one, under all their names.
    static func joined(_ all: [Diagnosis]) -> [Diagnosis] {
        all.reduce(into: []) { joined, diagnosis in
            let isWrong = diagnosis.findings.contains { $0.outcome == .failed }
            let same = joined.firstIndex { $0.kind == diagnosis.kind && $0.words == diagnosis.words }
            guard diagnosis.kind == .upstream, isWrong, let same else { return joined.append(diagnosis) }
            joined[same].name += ", " + diagnosis.name
        }
    }

    /// All places and findings, without durations.
    private var words: [String] {
        parts.flatMap { part in
            [part.place ?? ""] + part.findings.map { "\($0.check) \($0.outcome) \($0.text) \($0.advice ?? "")" }
        }
    }

    // MARK: For people

    var text: String {
        var text = kind == .configuration ? "Configuration\n" : "\(kind == .client ? "Client" : "Upstream") \(name)\n"
        for part in parts {
            if let place = part.place { text += "  \(place)\n" }
            let margin = part.place == nil ? "  " : "    "
            for finding in part.findings { text += Self.text(finding, margin) }
        }
        return text
    }

    private static func text(_ finding: Finding, _ margin: String) -> String {
        let mark =
            switch finding.outcome {
            case .good: "ok   "
            case .warning: "WARN "
            case .failed: "FAIL "
            case .skipped: "-    "
            }
        let name = finding.check + String(repeating: " ", count: max(0, 12 - finding.check.count))
        var text = "\(margin)\(mark) \(name) \(plain(finding.text))"
        if let duration = finding.duration { text += " (\(words(duration)))" }
        text += "\n"
        if let advice = finding.advice { text += "\(margin)                   what to do: \(plain(advice))\n" }
        return text
    }

    private static func plain(_ text: String) -> String { text.replacing("`", with: "") }

    private static func words(_ duration: Duration) -> String {
        "\(max(0, Int(duration / .milliseconds(1)))) ms"
    }

    // MARK: For programs

    var json: JSON {
        let checks = parts.flatMap { part in part.findings.map { Self.json($0, part.place) } }
        return .object([
            .init("kind", .string(kind.rawValue)), .init("name", .string(name)), .init("checks", .array(checks)),
        ])
    }

    private static func json(_ finding: Finding, _ place: String?) -> JSON {
        .object([
            .init("check", .string(finding.check)), .init("place", JSON(place)),
            .init("result", .string(finding.outcome.rawValue)), .init("text", .string(plain(finding.text))),
            .init("what_to_do", JSON(finding.advice.map(plain))),
            .init("milliseconds", finding.duration.map { JSON.decimal($0 / .milliseconds(1)) } ?? .null),
        ])
    }
}
