import Heimdallr

// Client authentication by keys, assertions and certificates (RFC 7523, RFC 8705), and the rules of all methods.
extension ClientReader {
    mutating func readProof() {
        section.read("certificate_bound", into: &settings.certificateBound, Grammar.boolean)
        readAlgorithm()
        settings.clientKey = section.secret("client_key")
        settings.clientKeyID = section.value("client_key_id", Grammar.printable)
        settings.clientAssertion = section.secret(
            "client_assertion", audience: settings.issuer ?? settings.tokenEndpoint)
        if case .remote(.spiffe) = settings.clientAssertion { settings.clientAssertionType = "jwt-spiffe" }
        section.read("client_assertion_type", into: &settings.clientAssertionType, Self.assertionType)
        section.read("client_assertion_typ", into: &settings.clientAssertionTyp, Self.typ)
        if let certificate = section.section("client_certificate") {
            settings.clientCertificate = certificate.readableFile("file")
            certificate.need("file", saying: "\(certificate.path): write {file: PATH}")
            certificate.finish()
        }
        // Assertions of `client: auto` are for the issuer: the API's documents could name a foreign token endpoint.
        guard !isAuto else { return }
        section.tell("client_assertion_audience", usually: "token_endpoint")
        if let audience = section.value("client_assertion_audience", Grammar.printable) {
            settings.clientAssertionAudience = .init(audience)
        }
    }

    private mutating func readAlgorithm() {
        let words = ["HS256"] + JWTAlgorithm.allCases.map(\.rawValue)
        let word = section.value("token_endpoint_auth_signing_alg") { text throws(BadValue) in
            guard words.contains(text) else { throw Grammar.notAmong(words, text) }
            return text
        }
        settings.authAlgorithm = word.flatMap { JWTAlgorithm(rawValue: $0) }
        namesHS256 = word == words[0]
    }

    /// The default of `token_endpoint_auth_method`.
    var usualMethod: ClientSettings.AuthMethod {
        if section.has("client_key") || section.has("client_assertion") { return .privateKeyJWT }
        return section.has("client_secret") ? .clientSecretBasic : .none
    }

    private static let keyKeys = ["client_key", "client_key_id", "client_certificate"]
    private static let jwtKeys = [
        "client_assertion_audience", "client_assertion_typ", "token_endpoint_auth_signing_alg",
    ]
    private static let assertionTypes = ["jwt-bearer", "jwt-spiffe"]

    private static func assertionType(_ text: String) throws(BadValue) -> String {
        if assertionTypes.contains(text) || Grammar.isAbsoluteURI(text) { return text }
        throw BadValue(
            "write jwt-bearer, jwt-spiffe or a URI; the `typ` of the JWT is `client_assertion_typ`",
            fits: .any([.words(assertionTypes), Grammar.absoluteURIs]))
    }

    /// The `typ` of a client assertion: one word, such as `JWT` or `client-authentication+jwt`.
    static func typ(_ text: String) throws(BadValue) -> String {
        try Grammar.checked(
            text, Grammar.isVisible(text), BadValue("write JWT, client-authentication+jwt or another media type"))
    }

    /// Reports settings that the method needs and that are missing, and settings that the method does not use.
    func checkAuthentication(_ method: ClientSettings.AuthMethod) {
        let location = "token_endpoint_auth_method"
        func need(_ key: String) { section.need(key, for: location, saying: "\(method.rawValue) needs `\(key)`") }
        func refuseSecret() {
            section.refuse(["client_secret"], saying: "\(method.rawValue) sends no secret: leave this out")
        }
        section.refuse(
            "client_assertion_type", without: "client_assertion",
            saying: "this belongs to `client_assertion`, an assertion made elsewhere: write that too, or leave it out")
        var unused = ["client_assertion"] + Self.keyKeys + Self.jwtKeys
        switch method {
        case .clientSecretBasic, .clientSecretPost: need("client_secret")
        case .clientSecretJWT:
            need("client_secret")
            unused.removeLast(Self.jwtKeys.count)
            if settings.clientSecret == .literal("") {
                section.error("client_secret", "client_secret_jwt signs with the secret, which can't be empty then")
            } else if let secret = settings.clientSecret {
                section.note(.shared(secret), at: "client_secret")
            }
            if settings.authAlgorithm != nil {
                section.error("token_endpoint_auth_signing_alg", "client_secret_jwt signs with HS256: write that")
            }
        case .privateKeyJWT:
            checkKey()
            unused = []
            refuseSecret()
        case .tlsClientAuth, .selfSignedTLSClientAuth:
            let advice = "\(method.rawValue) needs `tls: {cert_file: PATH, key_file: PATH}`"
            section.need("tls", for: location, saying: advice)
            if section.has("tls"), !hasTLSCertificate { section.error(location, advice) }
            refuseSecret()
        case .none:
            section.refuse(
                ["client_secret"], for: location,
                saying: "none sends no secret: leave out `client_secret`, or write client_secret_basic")
        }
        section.refuse(
            unused, saying: "\(method.rawValue) does not use this: leave it out, or write another `\(location)`")
        if section.has("certificate_bound"), settings.certificateBound, !hasTLSCertificate {
            section.error(
                "certificate_bound",
                "there is no certificate to bind to: write `tls: {cert_file: PATH, key_file: PATH}`")
        }
        if case .issuer = settings.clientAssertionAudience, !section.has("issuer") {
            section.error("client_assertion_audience", "there is no `issuer`: write one, or the audience itself")
        }
    }

    private func checkKey() {
        section.need(
            "client_key", "client_assertion", for: "token_endpoint_auth_method",
            saying: "private_key_jwt needs `client_key`, or `client_assertion` made elsewhere")
        let assertion = section.has("client_assertion")
        guard assertion || section.has("client_key") else { return }
        for key in Self.keyKeys + Self.jwtKeys where assertion && section.has(key) {
            section.error(key, "`client_assertion` is already signed: leave this key or `client_assertion` out")
        }
        if namesHS256 {
            section.error(
                "token_endpoint_auth_signing_alg", "HS256 is for client_secret_jwt: write the key's algorithm")
        }
        if let key = settings.clientKey {
            let algorithm = settings.authAlgorithm?.rawValue
            section.note(
                .signing(key, algorithm: algorithm, certificate: settings.clientCertificate), at: "client_key")
        }
    }
}

extension JWTAudience {
    init(_ text: String) {
        switch text {
        case "token_endpoint": self = .tokenEndpoint
        case "issuer": self = .issuer
        default: self = .text(text)
        }
    }
}
