internal import Cryptography
internal import WireText

/// A login in progress that another process with the same configuration can finish. Contains state, PKCE verifier and
/// nonce, or the device code. Prints as `<redacted>`.
package struct PortableLogin: Sendable, Redacted {
    package enum Kind: Sendable {
        case browser(LoginAttempt)
        case device(DeviceLogin)
    }

    package let kind: Kind

    /// Whether `client` still uses the token record for which the login began.
    package func belongs(to client: Heimdallr) -> Bool {
        switch kind {
        case .browser(let attempt): attempt.expectation.record == client.recordName
        case .device(let login): login.record == client.recordName
        }
    }

    package init(_ attempt: LoginAttempt) { kind = .browser(attempt) }

    package init(_ login: DeviceLogin) { kind = .device(login) }

    // MARK: Key in the store

    /// Returns the key of a login at a browser. Only the browser that began the login has both cookie and state.
    package static func key(state: String, cookie: Secret) -> String? { key("browser", state, cookie.revealed) }

    /// - Parameter ticket: part of the address of the page that shows the code.
    package static func key(ticket: String) -> String? { key("device", ticket) }

    /// Returns a digest, so that the store does not see the parts; `nil`: libcrypto has no memory left.
    private static func key(_ parts: String...) -> String? {
        (try? Digest.sha256(Array(parts.joined(separator: "\n").utf8))).map { Base64.encode($0, alphabet: .url) }
    }

    // MARK: As bytes

    package var content: Secret {
        let members: [JSON.Member] =
            switch kind {
            case .browser(let attempt):
                [
                    .init("kind", .string("browser")), .init("client", .string(attempt.client)),
                    .init("url", .string(attempt.url)), .init("state", .string(attempt.state)),
                    .init("redirect_uri", .string(attempt.redirectURI)),
                    .init("method", .string(attempt.expectation.method.rawValue)),
                    .init("issuer", JSON(attempt.expectation.issuer)),
                    .init("requires_issuer", .bool(attempt.expectation.requiresIssuer)),
                    .init("enrolment", JSON(attempt.expectation.enrolment)),
                    .init("verifier", JSON(attempt.expectation.verifier?.revealed)),
                    .init("nonce", JSON(attempt.expectation.nonce)),
                    .init("token_endpoint", .string(attempt.expectation.tokenEndpoint)),
                    .init("record", .string(attempt.expectation.record)),
                ]
            case .device(let login):
                [
                    .init("kind", .string("device")), .init("client", .string(login.client)),
                    .init("user_code", .string(login.userCode)),
                    .init("verification_uri", .string(login.verificationURI)),
                    .init("verification_uri_complete", JSON(login.verificationURIComplete)),
                    .init("interval", .number(Int(login.interval.components.seconds))),
                    .init("device_code", .string(login.deviceCode.revealed)),
                    .init("record", .string(login.record)),
                ]
            }
        return Secret(json: .object(members))
    }

    /// - Parameter end: expiry by this process's clock. The store has checked the expiry by the store's clock.
    /// - Returns: `nil` for other content.
    package init?(_ content: Secret, until end: ContinuousClock.Instant) {
        guard let value = content.withSpan({ try? JSONParser.parse($0) }), let client = value["client"]?.string,
            let record = value["record"]?.string
        else { return nil }
        switch value["kind"]?.string {
        case "browser":
            guard let url = value["url"]?.string, let state = value["state"]?.string,
                let redirectURI = value["redirect_uri"]?.string, let tokenEndpoint = value["token_endpoint"]?.string,
                let method = value["method"]?.string.flatMap({ LoginMethod(rawValue: $0) })
            else { return nil }
            let expectation = LoginAttempt.Expectation(
                method: method, issuer: value["issuer"]?.string,
                requiresIssuer: value["requires_issuer"] != .bool(false), enrolment: value["enrolment"]?.string,
                verifier: value["verifier"]?.string.map { Secret($0) }, nonce: value["nonce"]?.string, record: record,
                tokenEndpoint: tokenEndpoint)
            kind = .browser(
                LoginAttempt(
                    client: client, url: url, state: state, redirectURI: redirectURI, expiresAt: end,
                    expectation: expectation))
        case "device":
            guard let userCode = value["user_code"]?.string, let address = value["verification_uri"]?.string,
                let deviceCode = value["device_code"]?.string, case .number(let text)? = value["interval"],
                let interval = Int(text)
            else { return nil }
            kind = .device(
                DeviceLogin(
                    client: client, userCode: userCode, verificationURI: address,
                    verificationURIComplete: value["verification_uri_complete"]?.string, expiresAt: end,
                    interval: .seconds(min(max(1, interval), 3600)), deviceCode: Secret(deviceCode), record: record))
        default: return nil
        }
    }
}
