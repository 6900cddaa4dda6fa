/// Sentences for people. Backquotes in them mark names of the configuration and of commands.
enum Sentence {
    struct Run: Equatable {
        var text: String
        var isCode: Bool
    }

    /// Returns the text for a terminal, without the backquotes.
    static func plain(_ text: String) -> String { text.replacing("`", with: "") }

    /// Splits the text for a page, which shows code in another font. A text with an unpaired backquote has no code.
    static func runs(_ text: String) -> [Run] {
        let pieces = text.split(separator: "`", omittingEmptySubsequences: false)
        guard pieces.count % 2 == 1 else { return [Run(text: plain(text), isCode: false)] }
        return pieces.enumerated().map { Run(text: String($1), isCode: $0 % 2 == 1) }.filter { !$0.text.isEmpty }
    }

    /// Returns the text with a capital first letter, ended as by `ended`.
    static func whole(_ text: String) -> String { ended(text.prefix(1).uppercased() + text.dropFirst()) }

    /// Returns the text with a full stop, except after an address or a command, which a reader may copy.
    static func ended(_ text: String) -> String {
        let isAddress = text.split(separator: " ").last?.contains("://") == true
        let command = text.ranges(of: "heimdallr-proxy ").last.map { text[$0.upperBound...] }
        let isCommand = command.map { !$0.contains(where: { ",.;:()".contains($0) }) } == true
        return isAddress || isCommand || text.hasSuffix(".") ? text : text + "."
    }
}
