// How a client shows who it is without sending a secret: RFC 7523, RFC 8705.
extension ClientReader {
    mutating func readProof() {
        section.read("certificate_bound", into: &settings.certificateBound, Grammar.boolean)
        settings.authAlgorithm = section.value("token_endpoint_auth_signing_alg") { text throws(Misfit) in
            try Grammar.word(text)
        }
        settings.clientKey = section.secret("client_key")
        settings.clientKeyID = section.value("client_key_id", Grammar.printable)
        settings.clientAssertion = section.secret("client_assertion")
        if let certificate = section.section("client_certificate") {
            settings.clientCertificate = certificate.readableFile("file")
            if !certificate.has("file") { section.error("client_certificate", "write {file: PATH}") }
            certificate.finish()
        }
        if let audience = section.value("client_assertion_audience", Grammar.printable) {
            settings.clientAssertionAudience = .init(audience)
        }
    }

    /// What `token_endpoint_auth_method` is when nobody says so.
    var usualMethod: ClientSettings.AuthMethod {
        if section.has("client_key") || section.has("client_assertion") { return .privateKeyJWT }
        return section.has("client_secret") ? .clientSecretBasic : .none
    }

    /// Each method has what it needs, and each key a method that uses it.
    func checkAuthentication() {
        let method = settings.authMethod
        let place = "token_endpoint_auth_method"
        func need(_ key: String) {
            guard !section.has(key) else { return }
            section.error(place, "\(method.rawValue) needs `\(key)`")
        }
        var unused = [
            "client_key", "client_assertion", "client_key_id", "client_certificate", "client_assertion_audience",
            "token_endpoint_auth_signing_alg",
        ]
        switch method {
        case .clientSecretBasic, .clientSecretPost: need("client_secret")
        case .clientSecretJWT:
            need("client_secret")
            unused.removeLast(2)
            if let secret = settings.clientSecret { section.note(.shared(secret), at: "client_secret") }
            if let algorithm = settings.authAlgorithm, algorithm != .hs256 {
                section.error("token_endpoint_auth_signing_alg", "client_secret_jwt signs with HS256: write that")
            }
        case .privateKeyJWT:
            checkKey()
            unused = []
            if section.has("client_secret") {
                section.error("client_secret", "private_key_jwt sends no secret: leave this out")
            }
        case .tlsClientAuth, .selfSignedTLSClientAuth:
            if !showsCertificate {
                section.error(place, "\(method.rawValue) needs `tls: {cert_file: PATH, key_file: PATH}`")
            }
            if section.has("client_secret") {
                section.error("client_secret", "\(method.rawValue) sends no secret: leave this out")
            }
        case .none:
            if section.has("client_secret") {
                section.error(place, "none sends no secret: leave out `client_secret`, or write client_secret_basic")
            }
        }
        for key in unused where section.has(key) {
            section.error(key, "\(method.rawValue) does not use this: leave it out, or write another `\(place)`")
        }
        if section.has("certificate_bound"), settings.certificateBound, !showsCertificate {
            section.error(
                "certificate_bound",
                "there is no certificate to bind to: write `tls: {cert_file: PATH, key_file: PATH}`")
        }
        if case .issuer = settings.clientAssertionAudience, !section.has("issuer") {
            section.error("client_assertion_audience", "there is no `issuer`: write one, or the audience itself")
        }
    }

    private func checkKey() {
        let assertion = section.has("client_assertion")
        guard assertion || section.has("client_key") else {
            section.error(
                "token_endpoint_auth_method", "private_key_jwt needs `client_key`, or `client_assertion` made elsewhere"
            )
            return
        }
        if assertion {
            let ours = [
                "client_key", "client_key_id", "client_certificate", "client_assertion_audience",
                "token_endpoint_auth_signing_alg",
            ]
            for key in ours where section.has(key) {
                section.error(key, "`client_assertion` is signed elsewhere: leave this out, or that")
            }
        }
        if settings.authAlgorithm == .hs256 {
            section.error(
                "token_endpoint_auth_signing_alg", "HS256 is for client_secret_jwt: write the key's algorithm")
        }
        if let key = settings.clientKey {
            section.note(
                .signing(
                    key, algorithm: settings.authAlgorithm?.rawValue, certificate: settings.clientCertificate),
                at: "client_key")
        }
    }
}

extension ClientSettings.AssertionAudience {
    init(_ text: String) {
        switch text {
        case "token_endpoint": self = .tokenEndpoint
        case "issuer": self = .issuer
        default: self = .text(text)
        }
    }
}
