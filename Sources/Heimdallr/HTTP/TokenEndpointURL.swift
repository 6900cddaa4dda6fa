/// Checks of a token endpoint's URL.
enum TokenEndpointURL {
    enum Fault: Error, Equatable {
        case malformed
        case plaintext
    }

    /// - Throws: `Fault.plaintext` for http:// without permission; `Fault.malformed` for anything but an absolute
    ///   http(s) URL without user information or fragment (RFC 6749 section 3.2).
    static func check(_ url: String, allowPlaintext: Bool) throws(Fault) {
        guard url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), !url.utf8.contains(UInt8(ascii: "#")) else {
            throw .malformed
        }
        let lowered = url.lowercased()
        let rest: Substring
        if lowered.hasPrefix("https://") {
            rest = url.dropFirst(8)
        } else if lowered.hasPrefix("http://") {
            rest = url.dropFirst(7)
            guard allowPlaintext else { throw .plaintext }
        } else {
            throw .malformed
        }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard !authority.isEmpty, !authority.contains("@"), !authority.contains("\\"), !authority.hasPrefix(":") else {
            throw .malformed
        }
    }

    /// Returns scheme, host and port in one normal form (RFC 3986 section 6.2), the same for all URLs of a server.
    static func origin(of url: String) -> String {
        let lowered = url.lowercased()
        guard let colon = lowered.firstRange(of: "://") else { return lowered }
        let end = lowered[colon.upperBound...].firstIndex { "/?#".contains($0) } ?? lowered.endIndex
        let origin = lowered[..<end]
        let port = lowered.hasPrefix("https:") ? ":443" : ":80"
        return String(origin.hasSuffix(port) ? origin.dropLast(port.count) : origin)
    }
}
