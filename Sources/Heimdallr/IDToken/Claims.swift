internal import Cryptography
internal import WireText

/// Claims of a verified id token, and their check: OpenID Connect Core section 3.1.3.7.
struct Claims: Sendable {
    private let payload: JSONValue

    /// Seconds by which two clocks may differ.
    static let leeway: Int64 = 60

    init(_ payload: JSONValue) { self.payload = payload.withoutNulls }

    /// - Parameters:
    ///   - nonce: the nonce that the login sent; `nil`: none.
    ///   - now: seconds since 1970.
    func check(issuer: String, client: String, nonce: String?, now: Int64) throws(IDTokenFault) {
        guard let named = payload["iss"]?.string, named.utf8.elementsEqual(issuer.utf8) else { throw .issuer }
        try checkAudience(client)
        guard let expiry = time("exp"), now < Self.adding(expiry, Self.leeway) else { throw .expired }
        guard let issued = time("iat"), issued <= Self.adding(now, Self.leeway) else { throw .issuedAt }
        if payload["nbf"] != nil {
            guard let begin = time("nbf"), begin <= Self.adding(now, Self.leeway) else { throw .issuedAt }
        }
        if let nonce {
            guard let sent = payload["nonce"]?.string, ConstantTime.isEqual(Array(sent.utf8), Array(nonce.utf8)) else {
                throw .nonce
            }
        }
        guard let subject = payload["sub"]?.string, !subject.isEmpty, subject.utf8.count <= 255 else { throw .subject }
    }

    /// Returns the fault of a time claim with its difference from this machine's clock; any other fault unchanged.
    func explained(_ fault: IDTokenFault, now: Int64) -> IDTokenFault {
        switch fault {
        case .expired: time("exp").map { .late(seconds: now - $0) } ?? fault
        case .issuedAt:
            [time("iat"), time("nbf")].compactMap { $0 }.max().flatMap { $0 > now ? .early(seconds: $0 - now) : nil }
                ?? fault
        default: fault
        }
    }

    /// Checks that this client is the only audience, or one of several audiences and the authorized party (`azp`).
    private func checkAudience(_ client: String) throws(IDTokenFault) {
        let audiences: [String]
        switch payload["aud"] {
        case .string(let one): audiences = [one]
        case .array(let several):
            audiences = several.compactMap(\.string)
            guard audiences.count == several.count else { throw .audience }
        default: throw .audience
        }
        guard audiences.contains(where: { $0.utf8.elementsEqual(client.utf8) }) else { throw .audience }
        let party = payload["azp"]
        guard audiences.count == 1 && party == nil || party?.string?.utf8.elementsEqual(client.utf8) == true else {
            throw .audience
        }
    }

    /// Checks the access token of the same answer against `at_hash`, if the id token has that claim: section 3.1.3.6.
    func check(_ accessToken: Secret, by algorithm: SignatureAlgorithm) throws(IDTokenFault) {
        guard let stated = payload["at_hash"] else { return }
        guard let digest = try? Digest.sha(algorithm.hash, of: accessToken.bytes), let text = stated.string else {
            throw .accessToken
        }
        let half = Base64.encode(Array(digest.prefix(digest.count / 2)), alphabet: .url)
        guard ConstantTime.isEqual(Array(text.utf8), Array(half.utf8)) else { throw .accessToken }
    }

    /// Checks that the person is one of `expected`, if there are any: `HeimdallrConfiguration.expectedPersons`. An address
    /// that the server has not verified proves nothing, because people can choose it themselves.
    func check(isOneOf expected: [String]) throws(IDTokenFault) {
        let isVerified = [.bool(true), .string("true")].contains(payload["email_verified"])
        let address = isVerified ? payload["email"]?.string : nil
        let parts = address?.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false) ?? []
        let domain = parts.count == 2 && parts.allSatisfy { !$0.isEmpty } ? String(parts[1]) : nil
        let domains = [domain, payload["hd"]?.string].compactMap(\.self)
        // Byte for byte, but for the case of ASCII letters in addresses: other text that looks the same is another person.
        let isExpected = expected.contains { person in
            if person.hasPrefix("@") {
                return domains.contains { ASCII.equalIgnoringCase($0, String(person.dropFirst())) }
            }
            guard person.contains("@") else { return subject?.utf8.elementsEqual(person.utf8) == true }
            return domain != nil && ASCII.equalIgnoringCase(address ?? "", person)
        }
        guard expected.isEmpty || isExpected else { throw .person }
    }

    var subject: String? { payload["sub"]?.string }

    /// Name of the signed-in person, for display. Without another name, it is the `sub` claim.
    var name: String? { personalName ?? name(by: ["sub"]) }

    var personalName: String? { name(by: ["email", "preferred_username", "name"]) }

    /// Returns the first of the claims that has text. Skips an e-mail address that the server has not verified.
    private func name(by claims: [String]) -> String? {
        for claim in claims {
            guard let text = payload[claim]?.string, text.contains(where: { !$0.isWhitespace }) else { continue }
            if claim == "email", [.bool(false), .string("false")].contains(payload["email_verified"]) { continue }
            return ForeignText.printable(text)
        }
        return nil
    }

    /// Returns a NumericDate claim: RFC 7519 section 2.
    private func time(_ claim: String) -> Int64? {
        guard case .number(let text) = payload[claim], let seconds = Double(text), seconds >= 0, seconds < 1e15 else {
            return nil
        }
        return Int64(seconds)
    }

    private static func adding(_ time: Int64, _ seconds: Int64) -> Int64 {
        let (sum, overflow) = time.addingReportingOverflow(seconds)
        return overflow ? .max : sum
    }
}
