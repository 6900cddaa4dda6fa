/// One sample of the Prometheus text format.
struct Sample: Hashable {
    var name: String
    var labels: [String: String]
}

/// Reads the Prometheus text format 0.0.4, strictly: each family has its help and type before its samples, and no sample
/// comes twice.
struct PrometheusReader {
    var samples: [Sample: Double] = [:]
    var types: [String: String] = [:]
    var problems: [String] = []

    init(_ text: String) {
        var helped: Set<String> = []
        var family = ""
        if !text.hasSuffix("\n") { problems.append("the last line has no end") }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
            if let match = line.wholeMatch(of: /# HELP ([a-z_]+) (.+)/) {
                if !helped.insert(String(match.1)).inserted { problems.append("helped twice: \(line)") }
                family = String(match.1)
            } else if let match = line.wholeMatch(of: /# TYPE ([a-z_]+) (counter|gauge|histogram)/) {
                if match.1 != family { problems.append("a type without its help: \(line)") }
                types[family] = String(match.2)
            } else if let match = line.wholeMatch(of: /([a-z_]+)(?:\{(.*)\})? (-?[0-9.e+-]+|NaN|[+-]Inf)/) {
                let name = String(match.1)
                let base = types[family] == "histogram" ? name.replacing(/_(bucket|sum|count)$/, with: "") : name
                if base != family { problems.append("outside its family: \(line)") }
                guard let value = Double(match.3), let labels = Self.labels(match.2 ?? "") else {
                    problems.append("unreadable: \(line)")
                    continue
                }
                if samples.updateValue(value, forKey: Sample(name: name, labels: labels)) != nil {
                    problems.append("twice: \(line)")
                }
            } else {
                problems.append("unreadable: \(line)")
            }
        }
    }

    private static func labels(_ text: Substring) -> [String: String]? {
        var labels: [String: String] = [:]
        var rest = text
        while !rest.isEmpty {
            guard let match = rest.prefixMatch(of: /([a-z_]+)="((?:[^"\\]|\\\\|\\"|\\n)*)"(?:,|$)/) else { return nil }
            guard labels.updateValue(String(match.2), forKey: String(match.1)) == nil else { return nil }
            rest = rest[match.range.upperBound...]
        }
        return labels
    }

    func value(_ name: String, _ labels: [String: String] = [:]) -> Double? {
        samples[Sample(name: name, labels: labels)]
    }
}
