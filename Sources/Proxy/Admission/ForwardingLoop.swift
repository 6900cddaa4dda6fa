import HTTPMessage
import WireText

/// Detects requests that return to this proxy through a port redirection or another proxy, by their Via field (RFC
/// 9110, section 7.6.3), or by CDN-Loop (RFC 8586), which requests get instead with `via: false`.
enum ForwardingLoop {
    /// More hops than any real chain of heimdallr proxies has. A small number, because each hop costs two connections.
    private static let maxHops = 8
    private static let ownName = Array("heimdallr-proxy".utf8)

    /// Whether the request has passed heimdallr proxies at least `maxHops` times.
    static func isClosed(by head: RequestHead, _ bytes: Span<UInt8>) -> Bool {
        var hops = 0
        for field in head.fields where field.known.bit & counted != 0 { hops += Self.hops(bytes[field.value]) }
        return hops >= maxHops
    }

    private static let counted = KnownField.via.bit | KnownField.cdnLoop.bit

    /// Returns the number of list members whose last word is `heimdallr-proxy`, as in `1.1 heimdallr-proxy`.
    private static func hops(_ list: Span<UInt8>) -> Int {
        var hops = 0
        var start = 0
        for index in 0...list.count where index == list.count || list[index] == UInt8(ascii: ",") {
            let member = list.extracting(start..<index)
            var end = member.count
            while end > 0, member[end - 1] == UInt8(ascii: " ") || member[end - 1] == UInt8(ascii: "\t") { end -= 1 }
            let isWord =
                end == ownName.count || end > ownName.count && ASCII.isBlank(member[end - ownName.count - 1])
            if isWord, member.extracting((end - ownName.count)..<end).equalsIgnoringCase(ownName) {
                hops += 1
            }
            start = index + 1
        }
        return hops
    }
}
