internal import Cryptography
internal import WireText

/// The browser's untrusted authorization response, checked against its login: RFC 6749 section 4.1.2, RFC 9207.
package struct AuthorizationResponse: Sendable {
    private var parameters: [String: String] = [:]
    /// Unknown parameters. In the implicit grant they become `TokenResponse.extra`.
    private var foreign: [String: String] = [:]
    /// Whether `iss` is missing, though this server always sends it (RFC 9207). Then `code()` and `token()` throw.
    /// `checkRefusal` accepts the answer, because some servers omit `iss` in errors.
    private var lacksIssuer = false

    static let maxBytes = 64 * 1024
    static let maxParameters = 128

    /// Known parameters: RFC 6749 sections 4.1.2, 4.1.2.1 and 4.2.2, RFC 9207, OpenID Connect Core section 3.2.2.5.
    static func knownNames(_ method: LoginMethod) -> Set<String> {
        let common: Set = ["code", "state", "iss", "error", "error_description", "error_uri"]
        return method == .implicit
            ? common.union(["access_token", "token_type", "expires_in", "scope", "id_token"]) : common
    }

    /// Parses the URL and checks that it belongs to this login. The code, token or error is checked later.
    /// - Throws: `LoginError.foreignRedirect`, `.malformedRedirect`, `.wrongState` or `.wrongIssuer`
    init(
        _ url: String, redirectURI: String, state: String, expecting expectation: LoginAttempt.Expectation
    ) throws(LoginError) {
        guard url.utf8.count <= Self.maxBytes else { throw .malformedRedirect }
        let (query, fragment) = try RedirectURI(redirectURI).answer(in: url)
        let known = Self.knownNames(expectation.method)
        // The code flow ignores fragments, because some servers append one after the code.
        if expectation.method == .implicit, let fragment {
            (parameters, foreign) = try Self.decode(fragment.split(separator: "&"), known)
        }
        // If the fragment has the answer, the query is ignored.
        if parameters.isEmpty { (parameters, foreign) = try Self.decode(query, known) }
        // `state` is checked first, so that nothing else of another login's answer is read.
        guard let sent = parameters["state"], ConstantTime.isEqual(Array(sent.utf8), Array(state.utf8)) else {
            throw .wrongState
        }
        if let issuer = expectation.issuer {
            if let sent = parameters["iss"] {
                guard sent.utf8.elementsEqual(issuer.utf8) else { throw .wrongIssuer }
            } else {
                lacksIssuer = expectation.requiresIssuer
                if lacksIssuer, expectation.enrolment != nil { throw .wrongIssuer }
            }
        }
    }

    /// - Throws: `LoginError.refused` with the server's error, made printable.
    func checkRefusal(hiding secrets: [Secret]) throws(LoginError) {
        if let refusal = Self.refusal(in: parameters, hiding: secrets) { throw .refused(refusal) }
    }

    private static func refusal(in parameters: [String: String], hiding secrets: [Secret]) -> OAuthError? {
        guard let code = parameters["error"] else { return nil }
        return OAuthError(status: 302, code, hiding: secrets) { parameters[$0] }
    }

    /// Returns the error of an answer without `state`, made printable; `nil` with a `state` or without an error. The
    /// sender of such an answer is unknown.
    /// - Parameter answer: a query without `?`, or a fragment without `#`.
    package static func refusalWithoutState(in answer: Substring, hiding secrets: [Secret]) -> OAuthError? {
        guard answer.utf8.count <= maxBytes,
            let (parameters, _) = try? decode(answer.split(separator: "&"), knownNames(.browser)),
            parameters["state"]?.isEmpty ?? true
        else { return nil }
        return refusal(in: parameters, hiding: secrets)
    }

    /// Returns the error's word of an answer to an unknown login, if it is a word of the protocols. Anybody may have
    /// written the answer, so no other text of it is shown.
    package static func refusalWord(in answer: Substring) -> OAuthError.Code? {
        guard answer.utf8.count <= maxBytes,
            let (parameters, _) = try? decode(answer.split(separator: "&"), knownNames(.browser))
        else { return nil }
        return parameters["error"].map { OAuthError.Code(rawValue: $0) }.flatMap {
            OAuthError.Code.known.contains($0) ? $0 : nil
        }
    }

    /// Returns the first known parameter that appears twice in an answer (RFC 6749 section 3.1).
    package static func repeatedName(in answer: Substring, isFragment: Bool) -> String? {
        guard answer.utf8.count <= maxBytes else { return nil }
        let known = knownNames(isFragment ? .implicit : .browser)
        var seen: Set<String> = []
        for pair in answer.split(separator: "&").prefix(maxParameters) {
            guard let name = FormText.pair(pair.utf8).name, known.contains(name) else { continue }
            guard seen.insert(name).inserted else { return name }
        }
        return nil
    }

    /// Returns the code: RFC 6749 section 4.1.2.
    /// - Throws: `LoginError.malformedRedirect` or `.wrongIssuer`
    func code() throws(LoginError) -> Secret {
        guard !lacksIssuer else { throw .wrongIssuer }
        guard let code = parameters["code"], !code.isEmpty, code.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            throw .malformedRedirect
        }
        return Secret(code)
    }

    /// Returns the token of the implicit grant (RFC 6749 section 4.2.2). Old servers omit `token_type`.
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
        response.idToken = rest["id_token"].map { Secret($0) }
        response.extra = foreign.filter { $0.key != "refresh_token" }.mapValues { .string($0) }
        return response
    }

    // MARK: application/x-www-form-urlencoded

    /// Parameters that only people read.
    private static let words: Set = ["error_description", "error_uri"]

    /// Decodes the parameters. Repeated or undecodable parameters are errors if they are known (RFC 6749 section 3.1),
    /// and are ignored otherwise. Words for people are read in any encoding, so that they never hide the error.
    private static func decode(
        _ pairs: [Substring], _ names: Set<String>
    ) throws(LoginError) -> (known: [String: String], foreign: [String: String]) {
        guard pairs.count <= maxParameters else { throw .malformedRedirect }
        var known: [String: String] = [:]
        var foreign: [String: String] = [:]
        var repeated: Set<String> = []
        for pair in pairs {
            var (name, value) = FormText.pair(pair.utf8)
            guard let name else { continue }
            if words.contains(name) { value = FormWords.decode(pair.utf8.drop { $0 != ASCII.equals }.dropFirst()) }
            guard names.contains(name) else {
                if let value, foreign.updateValue(value, forKey: name) == nil { continue }
                repeated.insert(name)
                continue
            }
            guard let value, known.updateValue(value, forKey: name) == nil else { throw .malformedRedirect }
        }
        return (known, foreign.filter { !repeated.contains($0.key) })
    }
}
