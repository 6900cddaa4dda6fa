internal import WireText

/// File names made of client names.
enum FileStoreName {
    /// A file name has 255 bytes at most, and the longest suffix, `.token.new`, has 10.
    private static let longest = 240

    /// Unique for each client, and of letters, digits, `-`, `_` and `%` only: no name leads out of the directory or hides.
    /// `nil`: the name is empty or too long.
    static func file(for client: String) -> String? {
        let name = PercentEncoding.fileName.encode(client)
        return name.isEmpty || name.utf8.count > longest ? nil : name
    }
}
