import Heimdallr

// Grants of people at browsers and devices, and of callers that bring tokens.
extension Authority {
    /// A code that stands for one person's consent (RFC 6749 section 4.1.2, RFC 8628 section 3.2).
    struct Code {
        var client: String
        var redirectURI: String?
        var isAllowed = false
        /// The sign-in that used it.
        var family: Family?
    }

    /// A person allows what the browser was sent for.
    /// - Returns: the address that the browser goes to.
    func allow(_ url: String) -> String? {
        guard url.hasPrefix("\(address)/authorize?") else { return nil }
        let query = SimulatedHTTPClient.form(String(url.drop { $0 != "?" }.dropFirst()))
        guard let state = query["state"], let client = query["client_id"], let redirectURI = query["redirect_uri"]
        else { return nil }
        let code = "B-\(name)-\(codes.count)"
        codes[code] = Code(client: client, redirectURI: redirectURI, isAllowed: true)
        return "\(redirectURI)?code=\(code)&state=\(state)"
    }

    func redeem(_ text: String, _ client: String, _ process: Process) -> Answer {
        guard let code = codes[text], code.client == client else {
            world.fail("a code that \(name) gave out to nobody, or for another client, came from \(process): \(text)")
            return Self.refusal("invalid_grant")
        }
        if let family = code.family {
            world.fail("\(text) was presented twice, the second time by \(process)")
            family.isRevoked = true
            return Self.refusal("invalid_grant")
        }
        let (body, family) = signIn(client, process)
        codes[text]?.family = family
        return (200, body, nil)
    }

    /// The device authorization endpoint.
    func device(_ client: String) -> Answer {
        let code = "D-\(name)-\(codes.count)"
        codes[code] = Code(client: client)
        Scheduler.shared.after(.milliseconds(Scheduler.shared.chance.within(500...9000))) { [self] in
            codes[code]?.isAllowed = true
        }
        return (
            200,
            "{\"device_code\":\"\(code)\",\"user_code\":\"\(code)\",\"verification_uri\":\"\(address)/device\","
                + "\"expires_in\":60,\"interval\":1}", nil
        )
    }

    func poll(_ text: String, _ client: String, _ process: Process) -> Answer {
        guard let code = codes[text], code.client == client else {
            world.fail("a code that \(name) gave out to nobody, or for another client, came from \(process): \(text)")
            return Self.refusal("invalid_grant")
        }
        guard code.isAllowed else { return Self.refusal("authorization_pending") }
        // Another replica asks, too, or the first answer was lost.
        guard code.family == nil else { return Self.refusal("invalid_grant") }
        let (body, family) = signIn(client, process)
        codes[text]?.family = family
        return (200, body, nil)
    }

    func exchange(_ token: String, _ client: String, _ process: Process) -> Answer {
        guard token.hasPrefix("C-\(name)-\(client)-") else {
            world.fail("a caller's token for somebody else came to \(name) for \(client) from \(process): \(token)")
            return Self.refusal("invalid_grant")
        }
        return (200, body(client, caller: token), nil)
    }
}
