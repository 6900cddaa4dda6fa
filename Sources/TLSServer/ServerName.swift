import WireText

/// The name in a ClientHello's extension server_name (RFC 6066 section 3).
enum ServerName {
    /// - Parameter content: content of the extension, as sent by the client.
    /// - Returns: the name in lower case; `nil` unless the extension holds exactly one host name of ASCII letters,
    ///   digits, `-`, `.` and `_`.
    static func parse(_ content: MessageReader) -> String? {
        var content = content
        guard var list = content.vector(2), content.isAtEnd, list.integer(1) == 0, let host = list.vector(2),
            list.isAtEnd, 1...255 ~= host.rest.count
        else { return nil }
        let isName = host.rest.allSatisfy {
            ASCII.isAlphanumeric($0) || $0 == ASCII.hyphen || $0 == ASCII.dot || $0 == ASCII.underscore
        }
        return isName ? String(decoding: host.rest.map(ASCII.lowercased), as: UTF8.self) : nil
    }
}
