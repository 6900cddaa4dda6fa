internal import WireText

// Records with tokens that are bound to the client's certificate (RFC 8705 section 3), a key or an enrolment.
extension TokenRequests {
    /// Returns the record for the store, with the key and certificate of its access token. If the server has refused
    /// the record's client, the returned record says so.
    func completed(_ record: TokenRecord) -> TokenRecord {
        var record = binding?.completed(record) ?? record
        record.enrolment = enroller?.noting(record.enrolment) ?? record.enrolment
        guard let certificate = record.certificate else { return record }
        record.keyThumbprint = Self.thumbprint(of: certificate, and: record.keyThumbprint)
        return record
    }

    /// Returns a record from the store for use. Drops tokens that this client can't use, such as an access token that
    /// is bound to another certificate or key.
    func takingUp(_ stored: TokenRecord) async -> TokenRecord {
        var record = stored
        if enroller != nil, stored.enrolment.flatMap({ Enrolment(stored: $0) }) == nil {
            // It is unknown which server issued these tokens.
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
        // An access token that is bound to a key can't be used as a Bearer token.
        if record.keyThumbprint != nil { record.accessToken = nil }
        return record
    }

    /// Joins the two thumbprints with colons, because no thumbprint of RFC 7638 contains a colon.
    private static func thumbprint(of certificate: UInt64, and key: String?) -> String {
        "certificate:\(certificate):" + (key ?? "")
    }
}

extension Heimdallr {
    /// Drops a token that is not bound to the certificate of new connections.
    func checkCertificate() {
        guard let certificate = certificate?() else { return }
        guard look({ $0.token.map { $0.certificate != certificate } ?? false }) else { return }
        apply { $0.drop(notBoundTo: certificate, $1) }
    }
}
