import enum WireText.TextTable

extension Problem {
    /// Condition that a problem answers. Each has one row in Problems.tsv, of its name.
    enum Condition: String, CaseIterable, Sendable {
        // The request.
        case malformedRequest, traceWithBody, badMaxForwards, targetTooLong, otherExpectation, headTooLarge,
            otherVersion, slowHead, slowBody, slowCall, nothingInside, slowHello, bodyCut, bodyTooLarge,
            upgradeBodyTooLarge, hostMissing, schemeNotSupported, ambiguousPath, climbingPath, wholeServer, queryNeeded,
            signsInItself, bodyNotSignable, signedChunks, bytesBeforeUpgrade, expectationFailed
        // Permissions.
        case userRequired, callerTokenNeeded, callerTokenRefused, tooManyCallers, unknownHost, unknownHostNear,
            notCovered, pathNotCovered, methodNotCovered, fieldNotCovered, notForCaller, connectRefused, noHello,
            connectToUpstream, connectNear, connectUnlisted, otherAuthority, otherThanDialled, tunnelNotListed,
            tunnelToUpstream, tunnelNear, tunnelUnlisted, foreignHost, webPage, ownCredential, placeholderElsewhere,
            placeholderEnded, placeholderForeign, methodOverride, pathOverride, destinationNotCovered, addressDenied
        // Token requests that the proxy answers (`issue`).
        case tokenRequestMalformed, tokenRequestClient, tokenRequestGrant, tokenRequestGrantType, tokenRequestScope,
            tokenRequestMethod, tokenRequestTooLarge
        // The token.
        case loginNeeded, loginLost, noToken, storeFault, lateToken, clientRefused, wrongTokenEndpoint, noSecret,
            tokensRefused,
            noCredential
        // The upstream.
        case nameUnknown, tunnelNameUnknown, nameTimedOut, machineShortage, connectionRefused, tunnelRefused,
            unreachable, tunnelUnreachable, connectionTimeout, tunnelTimeout, connectionLimit, tls, tlsCertificate,
            tlsConfiguration, nextProxy, nextProxyLogin, connectionLost, responseCut, noCloseNotify, responseTimeout,
            malformedAnswer, malformedResponse, http2Only, unaskedUpgrade
        // The proxy itself.
        case loop, circle, draining, internalError
    }

    /// Text of a request, an answer or the configuration that a template names as `{asked}`.
    enum Parameter: String, Sendable {
        /// Name of an OAuth client.
        case client
        /// Authority that the request names, and a similar one of the configuration.
        case asked, near
        /// Host and port to which the request would go.
        case destination
        /// Nearest rule, such as `upstreams[2]`, and its paths or methods.
        case rule, listed
        /// What the request has: path without query, method, name of a field, words about that field.
        case path, method, field, had
        /// Words of the resolver as a sentence, with a blank behind it; or empty.
        case resolver
        /// Fault without a full stop, the same without its place, and the bytes that went upstream.
        case fault, short, reach
        /// Fault and its remedy, with a colon between them.
        case advice
    }

    /// One row of Problems.tsv: everything that answers to one condition have in common.
    struct Row: Sendable {
        /// Last part of the `type`, `reason` in the access log, and heading in docs/errors.md. A published word never
        /// changes its meaning.
        let word: String
        let status: Int
        /// Proxy Error Type (RFC 9209, section 2.3).
        let error: String
        /// Status for gRPC callers. 14 (unavailable) tells a client library that the same call may succeed later.
        let grpcStatus: GRPCStatus
        /// Whether the connection closes, because bytes of the same request or for another server may follow.
        let closes: Bool
        let retryAfter: Duration?
        let title: String
        /// Templates of the reason phrase, the longest first.
        let phrases: [String]
        let sentence: String

        /// `type` of the problem document (RFC 9457, section 3.1.1).
        var type: String { "urn:heimdallr-proxy:problem:\(word)" }

        init(_ cells: [String]) {
            word = cells[1]
            status = Int(cells[2]) ?? 500
            error = cells[3]
            grpcStatus = GRPCStatus(UInt16(cells[4]) ?? GRPCStatus.internal.code)
            closes = cells[5] == "close"
            retryAfter = Int(cells[6]).map { .seconds($0) }
            title = cells[7]
            phrases = cells[8].split(separator: " ~ ").map { String($0) }
            sentence = cells[9]
        }
    }

    static let rows: [Condition: Row] = TextTable.rows(PackageResources.Problems_tsv, columns: 10)
        .reduce(into: [:]) { rows, cells in
            if let condition = Condition(rawValue: cells[0]) { rows[condition] = Row(cells) }
        }

    static let maxPhrase = 80

    /// Returns the first phrase that fits into a status line, else the last.
    static func phrase(_ templates: [String], _ values: [Parameter: String]) -> String {
        for template in templates {
            let phrase = fill(template, values)
            if phrase.utf8.count <= maxPhrase, phrase.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) { return phrase }
        }
        return templates.last.map { fill($0, values) } ?? ""
    }

    /// Puts the values into a template. Braces in a value stay as they are.
    static func fill(_ template: String, _ values: [Parameter: String]) -> String {
        guard !values.isEmpty else { return template }
        var text = ""
        var rest = template[...]
        while let start = rest.firstIndex(of: "{"), let end = rest[start...].firstIndex(of: "}") {
            let value = Parameter(rawValue: String(rest[start..<end].dropFirst())).flatMap { values[$0] }
            text += rest[..<start]
            text += value ?? String(rest[start...end])
            rest = rest[end...].dropFirst()
        }
        return text + rest
    }
}
