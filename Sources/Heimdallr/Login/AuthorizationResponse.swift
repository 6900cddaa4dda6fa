internal import Cryptography

/// What the browser brought back, checked against the login that it must belong to: RFC 6749 sections 4.1.2 and 4.2.2,
/// RFC 9207. Every byte of it may come from an attacker.
struct AuthorizationResponse: Sendable {
    private var parameters: [String: String] = [:]
    /// RFC 9207: it does not say whose answer it is, though this server always does. Real servers leave that out of
    /// errors, which bring nothing that could go to the wrong place.
    private var lacksIssuer = false

    static let maxBytes = 64 * 1024
    static let maxParameters = 128

    /// Takes the URL apart and checks that it answers this login; what it says comes after that.
    /// - Throws: `LoginError.foreignRedirect`, `.malformedRedirect`, `.wrongState` or `.wrongIssuer`
    init(
        _ url: String, redirectURI: String, state: String, expecting expectation: LoginAttempt.Expectation
    ) throws(LoginError) {
        guard url.utf8.count <= Self.maxBytes else { throw .malformedRedirect }
        let (query, fragment) = try RedirectURI(redirectURI).answer(in: url)
        if expectation.method == .implicit, let fragment, !fragment.isEmpty {
            guard query.isEmpty else { throw .malformedRedirect }
            parameters = try Self.decode(fragment.split(separator: "&"))
        } else {
            // A fragment that some servers put behind a code means nothing.
            parameters = try Self.decode(query)
        }
        // First of all: what belongs to another login is not even read.
        guard let sent = parameters["state"], ConstantTime.isEqual(Array(sent.utf8), Array(state.utf8)) else {
            throw .wrongState
        }
        if let issuer = expectation.issuer {
            if let sent = parameters["iss"] {
                guard sent.utf8.elementsEqual(issuer.utf8) else { throw .wrongIssuer }
            } else {
                lacksIssuer = expectation.requiresIssuer
            }
        }
    }

    /// - Throws: `LoginError.refused` with what the server said, made printable.
    func checkRefusal(hiding secrets: [Secret]) throws(LoginError) {
        guard let code = parameters["error"] else { return }
        func shown(_ name: String) -> String? {
            parameters[name].map { ServerText.sanitize($0, hiding: secrets) }
        }
        throw .refused(
            OAuthError(
                status: 302, code: OAuthError.Code(rawValue: ServerText.sanitize(code, hiding: secrets)),
                detail: shown("error_description"), uri: shown("error_uri")))
    }

    /// The code of RFC 6749 section 4.1.2.
    /// - Throws: `LoginError.malformedRedirect` or `.wrongIssuer`
    func code() throws(LoginError) -> Secret {
        guard !lacksIssuer else { throw .wrongIssuer }
        guard let code = parameters["code"], !code.isEmpty, code.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            throw .malformedRedirect
        }
        return Secret(code)
    }

    /// The token of RFC 6749 section 4.2.2, and whatever came with it. There is no refresh token in this grant, and an id
    /// token that was not asked for says nothing. Old servers leave the type out.
    /// - Throws: `LoginError.malformedRedirect` or `.wrongIssuer`
    func token() throws(LoginError) -> TokenResponse {
        guard !lacksIssuer else { throw .wrongIssuer }
        var rest = parameters
        guard let token = rest.removeValue(forKey: "access_token"), !token.isEmpty else { throw .malformedRedirect }
        var response = TokenResponse(
            accessToken: Secret(token), tokenType: rest.removeValue(forKey: "token_type") ?? "Bearer")
        response.expiresIn = rest.removeValue(forKey: "expires_in").flatMap {
            OAuthAccessTokenDefaultParser.seconds(.string($0))
        }
        response.scope = rest.removeValue(forKey: "scope").map { $0.split(separator: " ").map(String.init) }
        for name in ["state", "iss", "refresh_token", "id_token", "code"] { rest[name] = nil }
        response.extra = rest.mapValues { .string($0) }
        return response
    }

    // MARK: application/x-www-form-urlencoded

    /// Split at the first `=`, each part decoded once. A name that comes twice is nobody's to choose from (RFC 6749
    /// section 3.1).
    private static func decode(_ pairs: [Substring]) throws(LoginError) -> [String: String] {
        guard pairs.count <= maxParameters else { throw .malformedRedirect }
        var parameters: [String: String] = [:]
        for pair in pairs {
            let cut = pair.firstIndex(of: "=") ?? pair.endIndex
            guard let name = text(pair[..<cut]), let value = text(pair[cut...].dropFirst()),
                parameters.updateValue(value, forKey: name) == nil
            else { throw .malformedRedirect }
        }
        return parameters
    }

    private static func text(_ encoded: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = encoded.utf8
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
                    return nil
                }
                bytes.append(high << 4 | low)
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
