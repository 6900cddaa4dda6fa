import Foundation

/// The rows of docs/metrics.md.
public struct MetricsReference: Sendable {
    public struct Row: Sendable {
        public var name: String
        public var type: String
        public var labels: Set<String>
        public var meaning: String
        /// Example in PromQL.
        public var query: String
    }

    public var rows: [Row] = []

    /// - Throws: `TestFailure` for a row without a name, or without exactly five cells.
    public init() throws {
        let text = try String(contentsOfFile: "\(Repository.root)/docs/metrics.md", encoding: .utf8)
        for line in text.split(separator: "\n") where line.hasPrefix("| `") {
            // `\|` is a bar within a cell.
            let cells = line.replacing("\\|", with: "\u{1}").split(separator: "|", omittingEmptySubsequences: false)
                .dropFirst().dropLast()
                .map { $0.replacing("\u{1}", with: "|").trimmingCharacters(in: .whitespaces) }
            guard cells.count == 5 else { throw TestFailure("\(cells.count) cells: \(line)") }
            func code(_ cell: String) -> [String] {
                cell.split(separator: "`", omittingEmptySubsequences: false).enumerated()
                    .compactMap { $0.offset % 2 == 1 ? String($0.element) : nil }
            }
            guard let name = code(cells[0]).first else { throw TestFailure("no name: \(line)") }
            rows.append(
                Row(
                    name: name, type: cells[1], labels: Set(code(cells[2])), meaning: cells[3],
                    query: code(cells[4]).first ?? ""))
        }
    }
}
