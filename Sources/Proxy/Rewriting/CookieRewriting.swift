import HTTPMessage
import Reactor
import WireText

// Rewrites an upstream's cookies for a program that uses another address (RFC 6265, section 5.2).
extension AddressMap {
    /// Writes a Set-Cookie value for the program's address: without `Secure` if the program uses http, without a
    /// `Domain` for the upstream's address only, and with a `Path` without `prefix`. The cookie's name and value stay.
    func append(cookie value: Span<UInt8>, to output: inout ByteBuffer) {
        guard changesCookies else { return output.append(value) }
        let dropsSecure = named.scheme == .http && Self.hasSecure(value)
        let first = value.position(of: Self.semicolon)
        output.append(value.extracting(first: first))
        var start = first
        while start < value.count {
            let end = value.position(of: Self.semicolon, from: start + 1)
            let attribute = Attribute(value, start + 1, end)
            start = end
            switch attribute.kind(in: value) {
            case .secure where dropsSecure: continue
            // Clients refuse SameSite=None and Partitioned without Secure (draft-ietf-httpbis-rfc6265bis, 5.7; CHIPS).
            case .sameSite where dropsSecure && value.extracting(attribute.value).equalsIgnoringCase(Self.none):
                continue
            case .partitioned where dropsSecure: continue
            case .domain where !keeps(domain: value.extracting(attribute.value)): continue
            case .path where !prefix.isEmpty:
                appendPath(attribute, value, to: &output)
            default:
                output.append(";")
                output.append(value.extracting(attribute.whole))
            }
        }
    }

    private func appendPath(_ attribute: Attribute, _ value: Span<UInt8>, to output: inout ByteBuffer) {
        let path = value.extracting(attribute.value)
        output.append(";")
        guard !path.isEmpty, path[0] == UInt8(ascii: "/"), let length = PathRules.length(of: prefix, in: path) else {
            return output.append(value.extracting(attribute.whole))
        }
        output.append(value.extracting(attribute.whole.lowerBound..<attribute.value.lowerBound))
        if length == path.count { output.append(byte: UInt8(ascii: "/")) }
        output.append(path.extracting(length...))
    }

    /// Whether to keep a `Domain`. It stays if it covers the program's address and this address is no base URL.
    /// Otherwise a `Domain` that covers the upstream is dropped. A `Domain` that covers neither address is the server's
    /// mistake and stays.
    private func keeps(domain: Span<UInt8>) -> Bool {
        let bare = !domain.isEmpty && domain[0] == UInt8(ascii: ".") ? domain.extracting(1...) : domain
        guard !bare.isEmpty else { return true }
        if !named.isBaseURL, let authority = named.authority, Self.covers(bare, authority.host) { return true }
        return !Self.covers(bare, destination.authority.host) && !aliases.contains { Self.covers(bare, $0.host) }
    }

    /// Whether the host matches the domain (RFC 6265, section 5.1.3).
    private static func covers(_ domain: Span<UInt8>, _ host: Authority.Host) -> Bool {
        let own = Array(host.description.utf8)
        guard domain.count <= own.count else { return false }
        let rest = own.count - domain.count
        guard domain.equalsIgnoringCase(Array(own[rest...])) else { return false }
        guard rest > 0 else { return true }
        if case .name = host { return own[rest - 1] == UInt8(ascii: ".") }
        return false
    }

    private static func hasSecure(_ value: Span<UInt8>) -> Bool {
        var start = value.position(of: Self.semicolon)
        while start < value.count {
            let next = value.position(of: Self.semicolon, from: start + 1)
            if Attribute(value, start + 1, next).kind(in: value) == .secure { return true }
            start = next
        }
        return false
    }

    private static let semicolon = UInt8(ascii: ";")

    private static let none = Array("none".utf8)
}

/// One attribute of a Set-Cookie value, between two semicolons.
private struct Attribute {
    enum Kind { case secure, partitioned, sameSite, domain, path, other }

    let whole: Range<Int>
    let name: Range<Int>
    /// Value without surrounding blanks; empty for an attribute without a value.
    let value: Range<Int>

    init(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) {
        whole = start..<end
        let equals = min(end, bytes.position(of: UInt8(ascii: "="), from: start))
        name = Self.trimmed(bytes, start, equals)
        value = Self.trimmed(bytes, min(equals + 1, end), end)
    }

    func kind(in bytes: Span<UInt8>) -> Kind {
        for (name, kind) in Self.kinds where bytes.extracting(self.name).equalsIgnoringCase(name) { return kind }
        return .other
    }

    private static func trimmed(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> Range<Int> {
        var first = start
        var last = end
        while first < last, bytes[first] == UInt8(ascii: " ") || bytes[first] == UInt8(ascii: "\t") { first += 1 }
        while last > first, bytes[last - 1] == UInt8(ascii: " ") || bytes[last - 1] == UInt8(ascii: "\t") { last -= 1 }
        return first..<last
    }

    private static let kinds: [(name: [UInt8], kind: Kind)] = [
        (Array("path".utf8), .path), (Array("domain".utf8), .domain), (Array("secure".utf8), .secure),
        (Array("samesite".utf8), .sameSite), (Array("partitioned".utf8), .partitioned),
    ]
}
