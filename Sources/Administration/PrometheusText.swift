import Reports

/// Writes the Prometheus text format, version 0.0.4.
/// https://prometheus.io/docs/instrumenting/exposition_formats/
struct PrometheusText {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    enum Kind: String { case counter, gauge, histogram }

    /// Names and values of labels. Names are fixed, values are escaped.
    typealias Labels = KeyValuePairs<String, String>

    struct Sample {
        let labels: Labels
        let value: String

        init(_ labels: Labels, _ value: some Numeric) {
            self.labels = labels
            self.value = "\(value)"
        }
    }

    private(set) var text = ""
    private var family = ""

    init() { text.reserveCapacity(16 * 1024) }

    /// Begins a family. The following samples belong to it.
    mutating func begin(_ name: String, _ kind: Kind, _ help: String) {
        family = name
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    }

    /// Writes a whole family.
    mutating func family(
        _ name: String, _ kind: Kind, _ help: String, _ samples: [Sample]
    ) {
        begin(name, kind, help)
        for sample in samples { line(name, sample.labels, sample.value) }
    }

    /// Writes a family of one sample without labels; writes nothing for `nil`.
    mutating func family(_ name: String, _ kind: Kind, _ help: String, _ value: (some Numeric)?) {
        if let value { family(name, kind, help, [Sample([:], value)]) }
    }

    /// Writes buckets, sum and count of a histogram.
    mutating func histogram(label name: String, _ value: String, _ histogram: Histogram) {
        var below: UInt64 = 0
        for (bound, count) in zip(histogram.bounds, histogram.counts) {
            below += count
            line(family + "_bucket", [name: value, "le": "\(bound)"], String(below))
        }
        line(family + "_bucket", [name: value, "le": "+Inf"], String(histogram.total))
        line(family + "_sum", [name: value], "\(histogram.sum)")
        line(family + "_count", [name: value], String(histogram.total))
    }

    private mutating func line(_ name: String, _ labels: Labels, _ value: String) {
        text += name
        if !labels.isEmpty {
            text += "{"
            for (index, label) in labels.enumerated() {
                if index > 0 { text += "," }
                text += "\(label.key)=\"\(Self.escaped(label.value))\""
            }
            text += "}"
        }
        text += " \(value)\n"
    }

    static func escaped(_ value: String) -> String {
        guard value.utf8.contains(where: { $0 == UInt8(ascii: "\\") || $0 == UInt8(ascii: "\"") || $0 == 0x0A }) else {
            return value
        }
        var result = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\"": result += "\\\""
            case "\n": result += "\\n"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
