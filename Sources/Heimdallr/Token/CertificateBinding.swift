internal import WireText

// Tokens that are bound to the client's certificate: RFC 8705 section 3.
extension TokenExchange {
    /// A record as it goes to the store: with what its access token is bound to.
    func completed(_ record: TokenRecord) -> TokenRecord {
        var record = binding?.completed(record) ?? record
        record.enrolment = enroller?.noting(record.enrolment) ?? record.enrolment
        guard let certificate = record.certificate else { return record }
        record.keyThumbprint = Self.thumbprint(of: certificate, and: record.keyThumbprint)
        return record
    }

    /// A record as it came from the store. An access token that is bound to something else is of no use.
    func takingUp(_ stored: TokenRecord) async -> TokenRecord {
        var record = stored
        if enroller != nil, stored.enrolment.flatMap({ Enrolment(stored: $0) }) == nil {
            // Nobody knows which server issued its tokens.
            (record.accessToken, record.refreshToken, record.refreshTokenLife) = (nil, nil, nil)
        }
        if !grant.usesRefreshToken { (record.refreshToken, record.refreshTokenLife) = (nil, nil) }
        if let certificate = configuration.certificate?() {
            let prefix = Self.thumbprint(of: certificate, and: nil)
            if let label = record.keyThumbprint, label.hasPrefix(prefix) {
                record.certificate = certificate
                let rest = label.dropFirst(prefix.count)
                record.keyThumbprint = rest.isEmpty ? nil : String(rest)
            } else {
                record.accessToken = nil
            }
        }
        if let binding { return await binding.takingUp(record) }
        // Bound to a key, it is no Bearer token.
        if record.keyThumbprint != nil { record.accessToken = nil }
        return record
    }

    /// No thumbprint of RFC 7638 has a colon.
    private static func thumbprint(of certificate: UInt64, and key: String?) -> String {
        "certificate:\(certificate):" + (key ?? "")
    }
}

extension Heimdallr {
    /// Drops a token that is bound to another certificate than the one that new connections show.
    func checkCertificate() {
        guard let certificate = certificate?() else { return }
        guard look({ $0.token.map { $0.certificate != certificate } ?? false }) else { return }
        apply { $0.drop(notBoundTo: certificate, $1) }
    }
}
