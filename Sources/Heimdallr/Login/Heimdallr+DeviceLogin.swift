// Logins on another device: RFC 8628.
extension Heimdallr {
    private static let deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

    /// Begins a login on another device (RFC 8628 section 3.1). Show the code, and call `finishDeviceLogin(_:)`.
    /// - Throws: `LoginError`. Nothing has then changed.
    public func beginDeviceLogin() async throws(LoginError) -> DeviceLogin {
        guard loginMethod == .device else { throw .wrongMethod }
        return try await reportingFailure { () async throws(LoginError) in try await askForCodes() }
    }

    private func askForCodes() async throws(LoginError) -> DeviceLogin {
        try checkRunning()
        let endpoint = try await url(.deviceAuthorization)
        let begin = clock.now()
        let response = try await post(
            requests.form(of: .signIn, [], scope: requests.configuration.scope), to: endpoint, .deviceAuthorization)
        guard let answer = DeviceAuthorization(response.body) else { throw .endpoint(.answer(.notAnObject)) }
        return DeviceLogin(
            client: name, userCode: answer.userCode, verificationURI: answer.verificationURI,
            verificationURIComplete: answer.verificationURIComplete, expiresAt: begin + answer.expiresIn,
            interval: answer.interval, deviceCode: answer.deviceCode, record: recordName)
    }

    /// Polls the server until the person has logged in or the codes have expired (RFC 8628 section 3.5). On return the
    /// token is stored and in use. Cancel the task to give up.
    /// - Throws: `LoginError`. Nothing has then been stored.
    public func finishDeviceLogin(_ login: DeviceLogin) async throws(LoginError) {
        guard loginMethod == .device, login.client == name else { throw .wrongMethod }
        try await reportingFailure { () async throws(LoginError) in
            guard login.record == recordName else { throw .reconfigured }
            try await pollUntilDone(login)
        }
    }

    private func pollUntilDone(_ login: DeviceLogin) async throws(LoginError) {
        var polling = DevicePolling(interval: login.interval)
        var pause = login.interval
        let hadNoToken = !hasAccessToken
        while true {
            let due = min(clock.now() + pause, login.expiresAt)
            do { try await clock.sleep(due) } catch { throw .cancelled }
            try checkRunning()
            guard !Task.isCancelled else { throw .cancelled }
            // Another process that polls for the same login has saved the token.
            if hadNoToken, hasAdopted { return }
            guard clock.now() < login.expiresAt else { throw .expired }
            let next: Duration?
            (polling, next) = try await poll(login, polling)
            guard let next else { return }
            pause = next
        }
    }

    /// Whether the current token came from the store.
    private var hasAdopted: Bool { hasAccessToken && look { $0.held?.isStored ?? false } }

    /// Polls once.
    /// - Returns: time until the next poll; `nil`: the token is in use.
    private func poll(
        _ login: DeviceLogin, _ polling: DevicePolling
    ) async throws(LoginError) -> (DevicePolling, pause: Duration?) {
        do throws(LoginError) {
            return try await holdingStore { () async throws(LoginError) in try await self.askForDevice(login, polling) }
        } catch LoginError.endpoint(.store) {
            // Another process holds the lease, or the store is unreachable, so no poll was sent.
            return (polling, polling.interval)
        }
    }

    private func askForDevice(
        _ login: DeviceLogin, _ before: DevicePolling
    ) async throws(LoginError) -> (DevicePolling, pause: Duration?) {
        var polling = before
        let outcome: TokenLifeCycle.Outcome
        let askedAt: ContinuousClock.Instant
        do throws(LoginError) {
            (outcome, askedAt) = try await ask(
                [FormParameter("device_code", login.deviceCode)], grantType: Self.deviceGrant, sendsScope: false,
                to: nil)
        } catch LoginError.discovery {
            // The token endpoint is temporarily unknown.
            return (polling, polling.interval)
        }
        switch polling.next(outcome) {
        case .wait(let pause): return (polling, pause)
        case .fail(let error):
            report(outcome, Self.deviceGrant, since: askedAt)
            throw error
        case .done(let response):
            report(outcome, Self.deviceGrant, since: askedAt)
            try await takeUp(response, askedAt: askedAt)
            return (polling, nil)
        }
    }
}
