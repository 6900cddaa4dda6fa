import HTTPMessage
import Reactor
import WireText

/// Translates an upstream's addresses to those that the program uses, and back (RFC 9110, sections 10.2.2 and 8.7; RFC
/// 4918, section 10.3).
///
/// A reference to the upstream's own authority, below the path of its `url`, is rewritten to the program's address.
/// Other references pass unchanged. So do ambiguous ones: with user information, an invalid authority, or dot segments
/// if the `url` has a path. Text after the authority is never decoded or encoded. Pure.
struct AddressMap {
    let named: ProgramAddress
    let destination: Destination
    /// Other names of the upstream: its configured host, and the program's authority. The authority of a base URL is no
    /// such name, unless the upstream receives it (`keepsHost`).
    let aliases: [Authority]
    /// Path prefix of the `url`; empty, or with a `/` at its start and none at its end.
    let prefix: [UInt8]

    /// Whether the upstream receives the program's Host field (`rewrite: {host: keep}`).
    let keepsHost: Bool
    /// Whether cookies are rewritten; `false` for hosts that the configuration does not name.
    let changesCookies: Bool

    /// - Parameter host: the upstream's configured `host`; `nil` for a wildcard.
    init(
        named: ProgramAddress, destination: Destination, host: Authority?, prefix: [UInt8] = [],
        keepsHost: Bool = false, changesCookies: Bool = true
    ) {
        self.keepsHost = keepsHost
        self.changesCookies = changesCookies
        self.named = named
        self.destination = destination
        self.prefix = prefix
        aliases = [host, !named.isBaseURL || keepsHost ? named.authority : nil].compactMap(\.self)
    }

    // MARK: Answers

    /// Writes a reference in an answer (Location, Content-Location) as the program must see it.
    func append(reference value: Span<UInt8>, to output: inout ByteBuffer) {
        guard let reference = Reference(value) else { return output.append(value) }
        if reference.hasAuthority {
            guard let authority = reference.authority(in: value),
                isUpstream(reference.scheme ?? destination.scheme, authority)
            else { return output.append(value) }
        } else if prefix.isEmpty {
            return output.append(value)
        }
        guard let start = pathStart(of: reference, value) else { return output.append(value) }
        let rest = value.extracting(start...)
        let startsPath = !rest.isEmpty && rest[0] == UInt8(ascii: "/")
        let looksLikeHost = startsPath && Self.beginsWithTwoSlashes(rest)
        if reference.hasAuthority || looksLikeHost {
            if let authority = named.authority {
                if reference.scheme != nil || !reference.hasAuthority {
                    output.append(Array(named.scheme.rawValue.utf8))
                    output.append(":")
                }
                output.append("//")
                output.append(Array(authority.description.utf8))
            } else if looksLikeHost {
                return output.append(value)
            }
        }
        if !startsPath, !reference.hasAuthority || !prefix.isEmpty || named.authority == nil {
            output.append(byte: UInt8(ascii: "/"))
        }
        output.append(rest)
    }

    /// Returns the offset of the path behind `prefix`; `nil` if the path is ambiguous or does not begin with `prefix`.
    private func pathStart(of reference: Reference, _ value: Span<UInt8>) -> Int? {
        let path = value.extracting(reference.path)
        guard !prefix.isEmpty else { return reference.path.lowerBound }
        guard !PathRules.hasDotSegment(path), let length = PathRules.length(of: prefix, in: path) else { return nil }
        return reference.path.lowerBound + length
    }

    func isUpstream(_ scheme: Scheme, _ authority: Authority) -> Bool {
        let port = authority.port(for: scheme)
        if authority.host == destination.authority.host {
            let own = destination.authority.port(for: destination.scheme)
            if port == own { return true }
            // A server behind a TLS terminator may use http:// for its own address.
            if own == 443, destination.scheme == .https, port == 80 { return true }
            // The upstream at port 80 redirects to https. A rewritten redirect would lead back to port 80.
            if own == 80, destination.scheme == .http, port == 443 { return false }
        }
        return aliases.contains { $0.host == authority.host && Self.means($0.port, port) }
    }

    /// Whether the ports match. No port, 80 and 443 count as one port.
    private static func means(_ own: UInt16?, _ port: UInt16) -> Bool {
        switch own {
        case nil, 80, 443: port == 80 || port == 443
        case let own?: port == own
        }
    }

    // MARK: Requests

    /// Meaning of a request's Destination field.
    enum Target {
        case elsewhere
        /// The reference is ambiguous, or may name the upstream by an unknown name.
        case unclear
        /// The upstream, named by the program's address. The path lacks `prefix`.
        case named(path: Range<Int>)
        /// The upstream, named by its own address, which is not the program's. The path includes `prefix`.
        case upstreamAddress(path: Range<Int>)
    }

    func target(of value: Span<UInt8>) -> Target {
        guard let reference = Reference(value) else { return .unclear }
        guard reference.hasAuthority else { return .named(path: reference.path) }
        guard let authority = reference.authority(in: value) else { return .unclear }
        let scheme = reference.scheme ?? named.scheme
        if let own = named.authority, own.host == authority.host,
            Self.means(own.port, authority.port(for: scheme))
                || own.port(for: named.scheme) == authority.port(for: scheme)
        {
            return .named(path: reference.path)
        }
        if isUpstream(scheme, authority) { return .upstreamAddress(path: reference.path) }
        return isAnother(authority.host) ? .elsewhere : .unclear
    }

    /// Whether this host is certainly another machine's. Ignores the port, as some servers do.
    private func isAnother(_ host: Authority.Host) -> Bool {
        if host == destination.authority.host || host == named.authority?.host { return false }
        if aliases.contains(where: { $0.host == host }) || Self.isOwnMachine(host) { return false }
        switch (host, destination.authority.host) {
        case (.name, _), (.ipv4, .ipv4), (.ipv6, .ipv6): return true
        // The upstream's name may stand for this address, and a machine may have both IPv4 and IPv6 addresses.
        default: return false
        }
    }

    /// Whether every server reads the host as its own machine.
    private static func isOwnMachine(_ host: Authority.Host) -> Bool {
        switch host {
        case .name(let name): host.isLoopback || name.hasPrefix("localhost.")
        case .ipv4(let address): host.isLoopback || address >> 24 == 0
        case .ipv6(let high, let low): host.isLoopback || high == 0 && low == 0
        }
    }

    /// Writes a reference in a request as the upstream must see it.
    func append(destination value: Span<UInt8>, to output: inout ByteBuffer) {
        guard case .named(let path) = target(of: value), let reference = Reference(value) else {
            return output.append(value)
        }
        if reference.hasAuthority {
            output.append(Array(destination.scheme.rawValue.utf8))
            output.append("://")
            if keepsHost, let authority = named.authority {
                output.append(Array(authority.description.utf8))
            } else {
                output.append(destination.host)
            }
        }
        output.append(prefix)
        if path.isEmpty { output.append(byte: UInt8(ascii: "/")) }
        output.append(value.extracting(path.lowerBound...))
    }

    /// Whether a URL parser could read the start of the path as two slashes, followed by a host. Parsers drop tabs
    /// everywhere (URL Standard, section 4.4), and some drop other controls and spaces.
    private static func beginsWithTwoSlashes(_ path: Span<UInt8>) -> Bool {
        var index = 1
        while index < path.count, path[index] <= 0x20 || path[index] == 0x7F { index += 1 }
        return index < path.count && isSlash(path[index])
    }

    private static func isSlash(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\") }
}

/// A URI reference (RFC 3986, section 4.1) with an authority or with a path from the root.
private struct Reference {
    let scheme: Scheme?
    let authority: Range<Int>
    let hasAuthority: Bool
    /// Path up to the query or fragment; empty, or with a `/` at its start.
    let path: Range<Int>

    /// Parses a reference; `nil` for other forms: a relative path, another scheme, an empty value, a `/\` at the start.
    init?(_ value: Span<UInt8>) {
        var index = 0
        if value.count >= 7, value.extracting(first: 7).equalsIgnoringCase(Self.http) {
            scheme = .http
            index = 5
        } else if value.count >= 8, value.extracting(first: 8).equalsIgnoringCase(Self.https) {
            scheme = .https
            index = 6
        } else {
            scheme = nil
        }
        guard index < value.count, value[index] == UInt8(ascii: "/") else { return nil }
        hasAuthority = index + 1 < value.count && value[index + 1] == UInt8(ascii: "/")
        // Browsers read a slash and a backslash as two slashes.
        if !hasAuthority, index + 1 < value.count, value[index + 1] == UInt8(ascii: "\\") { return nil }
        if hasAuthority {
            let start = index + 2
            index = start
            while index < value.count, !Self.endsPath(value[index]), value[index] != UInt8(ascii: "/") { index += 1 }
            authority = start..<index
        } else {
            authority = 0..<0
        }
        let start = index
        while index < value.count, !Self.endsPath(value[index]) { index += 1 }
        path = start..<index
    }

    /// Returns the parsed authority; `nil` if it is invalid or has user information, which is never rewritten.
    func authority(in value: Span<UInt8>) -> Authority? {
        try? Authority(parsing: value, ByteRange(authority.lowerBound, authority.upperBound))
    }

    private static func endsPath(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") }

    private static let http = Array("http://".utf8)
    private static let https = Array("https://".utf8)
}
