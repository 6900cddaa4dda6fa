import Logging
import WireText

/// Writes errors and warnings of a command to standard error.
enum ErrorOutput {
    static func error(_ text: String) { write(.error, "error: \(text)") }

    /// Writes an answer of the running proxy, which may already begin with `error:`.
    static func answer(_ text: String) { text.hasPrefix("error: ") ? write(.error, text) : error(text) }

    static func warning(_ text: String) { write(.warning, "warning: \(text)") }

    /// Writes the text as whole lines, each with its priority if systemd's journal reads them.
    static func write(_ level: Logger.Level, _ text: String) {
        let shown = ForeignText.lines(text)
        let lines = (shown.hasSuffix("\n") ? shown.dropLast() : shown[...])
            .split(separator: "\n", omittingEmptySubsequences: false)
        let marked = lines.map { "\(Journal.prefix(level))\($0)\n" }.joined()
        _ = LineDescriptor.standardError.take(Array(marked.utf8))
    }
}
