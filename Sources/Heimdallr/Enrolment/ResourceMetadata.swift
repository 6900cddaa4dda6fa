internal import HTTPMessage
internal import WireText

/// Metadata of a protected resource (RFC 9728). It names the authorization servers that issue the resource's tokens.
struct ResourceMetadata: Sendable, Equatable {
    /// The resource's identifier, byte for byte as published.
    var resource: String
    var authorizationServers: [String]
    /// `nil`: the document has no list.
    var scopes: [String]?

    /// Largest number of authorization servers, and of scopes, in one document.
    static let maxEntries = 64
    static let maxTextBytes = 2048

    /// - Parameter url: address of the request at the API.
    /// - Throws: `DiscoveryFault.malformedResource`, or `.otherResource` if `resource` does not cover `url`.
    init(_ body: [UInt8], for url: String) throws(DiscoveryFault) {
        guard let value = try? JSONParser.parse(body), case .object = value, let resource = value["resource"]?.string,
            resource.utf8.count <= Self.maxTextBytes
        else { throw .malformedResource }
        guard ResourceAddress.covers(resource, url) else { throw .otherResource(ForeignText.printable(resource)) }
        self.resource = resource
        authorizationServers = try Self.texts(value["authorization_servers"]) ?? []
        scopes = try Self.texts(value["scopes_supported"])
    }

    /// Returns a list of short texts; `nil` for a missing member.
    /// - Throws: `DiscoveryFault.malformedResource` for any other value.
    private static func texts(_ value: JSONValue?) throws(DiscoveryFault) -> [String]? {
        guard let value, value != .null else { return nil }
        guard case .array(let elements) = value, elements.count <= maxEntries else { throw .malformedResource }
        var texts: [String] = []
        for element in elements {
            guard let text = element.string, !text.isEmpty, text.utf8.count <= maxTextBytes,
                text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
            else { throw .malformedResource }
            if !texts.contains(text) { texts.append(text) }
        }
        return texts
    }

    func names(_ issuer: String) -> Bool { authorizationServers.contains { ServerMetadata.isSame($0, issuer) } }

    /// Chooses the authorization server.
    /// - Parameter pinned: the configured issuer.
    /// - Throws: `DiscoveryFault.noIssuer`, `.severalIssuers` or `.unlistedIssuer`
    func issuer(pinned: String?) throws(DiscoveryFault) -> String {
        if let pinned {
            guard authorizationServers.isEmpty || names(pinned) else {
                throw .unlistedIssuer(pinned, listed: authorizationServers.map { ForeignText.printable($0) })
            }
            return pinned
        }
        guard let first = authorizationServers.first else { throw .noIssuer }
        guard authorizationServers.count == 1 else {
            throw .severalIssuers(authorizationServers.map { ForeignText.printable($0) })
        }
        return first
    }
}

/// Addresses of a resource and of its metadata. They are compared as text. Paths with dot segments never match.
enum ResourceAddress {
    private static let wellKnown = "/.well-known/oauth-protected-resource"

    /// Returns the possible addresses of the metadata, in order: the challenge's address, the well-known address with
    /// the path of `url`, and the well-known address without a path (RFC 9728 sections 3.1 and 5.1).
    static func ofMetadata(of url: String, challenged: String?) -> [String] {
        var addresses = challenged.map { [$0] } ?? []
        guard let url = try? WebURL(url) else { return addresses }
        for address in [url.start + wellKnown + (url.path == "/" ? "" : url.path), url.start + wellKnown].map(
            String.init)
        where !addresses.contains(address) {
            addresses.append(address)
        }
        return addresses
    }

    /// Whether both have the same origin, and the path of `resource` equals that of `url` or its first segments.
    static func covers(_ resource: String, _ url: String) -> Bool {
        guard let own = try? WebURL(resource), let asked = try? WebURL(url), own.origin == asked.origin else {
            return false
        }
        // A query is part of the identifier (RFC 9728 section 1.2), so only the same address matches.
        if own.query != nil { return resource.utf8.elementsEqual(url.utf8) }
        let (path, whole) = (own.path.isEmpty ? "/" : own.path, asked.path.isEmpty ? "/" : asked.path)
        guard !PathRules.hasDotSegment(Array(path.utf8).span), !PathRules.hasDotSegment(Array(whole.utf8).span) else {
            return false
        }
        if path == "/" || path.utf8.elementsEqual(whole.utf8) { return true }
        let folder = path.hasSuffix("/") ? path : path + "/"
        return whole.utf8.starts(with: folder.utf8) || (whole + "/").utf8.elementsEqual(folder.utf8)
    }
}
