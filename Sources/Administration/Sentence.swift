/// Texts of ours as people read them. Where they are written, `marks` stand around what the configuration or a command
/// line calls so.
enum Sentence {
    /// A stretch of a text.
    struct Part: Equatable {
        var text: String
        /// As one would type it.
        var isCode: Bool
    }

    /// For a terminal: without the marks.
    static func plain(_ text: String) -> String { text.replacing("`", with: "") }

    /// For a page, which sets what is to be typed in letters of its own. A mark without its partner is just text.
    static func parts(_ text: String) -> [Part] {
        let pieces = text.split(separator: "`", omittingEmptySubsequences: false)
        guard pieces.count % 2 == 1 else { return [Part(text: plain(text), isCode: false)] }
        return pieces.enumerated().map { Part(text: String($1), isCode: $0 % 2 == 1) }.filter { !$0.text.isEmpty }
    }

    /// With a capital and a full stop; without the stop behind what somebody may copy: an address, or a command.
    static func whole(_ text: String) -> String { ended(text.prefix(1).uppercased() + text.dropFirst()) }

    /// With a full stop, unless an address or a command is the last word.
    static func ended(_ text: String) -> String {
        let isAddress = text.split(separator: " ").last?.contains("://") == true
        let command = text.ranges(of: "heimdallr-proxy ").last.map { text[$0.upperBound...] }
        let isCommand = command.map { !$0.contains(where: { ",.;:()".contains($0) }) } == true
        return isAddress || isCommand || text.hasSuffix(".") ? text : text + "."
    }
}
