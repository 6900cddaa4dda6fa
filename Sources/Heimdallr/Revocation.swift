/// Report of a logout. Contains no secret.
public struct LogoutReport: Sendable, Equatable {
    /// Outcome of a logout.
    public enum Result: Sendable, Equatable {
        /// There was no token.
        case nothingHeld
        /// The tokens were forgotten here. The server was not asked to revoke them.
        case forgotten
        /// The server has no revocation endpoint. Nothing was changed. `logOut(locally: true)` forgets the tokens here.
        case noEndpoint
        /// The server was asked to revoke the tokens (RFC 7009), first the refresh token.
        case asked(refreshToken: TokenOutcome, accessToken: TokenOutcome)
    }

    /// Outcome for one token.
    public enum TokenOutcome: Sendable, Equatable {
        /// There was no such token.
        case notHeld
        /// The server has revoked the token, or no longer knew it: RFC 7009 section 2.2.
        case revoked
        /// The refresh token could not be revoked, so the access token stays.
        case notAsked
        /// The server can't revoke this token (RFC 7009 section 2.2.1). `expiresIn`: time until it expires, if known.
        case unsupported(expiresIn: Duration?)
        /// The request failed. The token stays.
        case failed(TokenEndpointFault)
    }

    /// Outcome for all tokens.
    public var result: Result
    /// Whether the client's tokens were removed from memory.
    public var isForgotten: Bool
    /// Reason why the client's record could not be removed from the store; `nil`: no fault.
    public var storeFault: String?

    /// Whether the client is logged out. Its tokens are forgotten and, unless the logout was local, revoked.
    public var isComplete: Bool {
        guard isForgotten, storeFault == nil else { return false }
        guard case .asked(let refreshToken, let accessToken) = result else { return true }
        return [refreshToken, accessToken].allSatisfy { outcome in
            switch outcome {
            case .notHeld, .revoked: true
            // The refresh token is revoked, and the access token will expire.
            case .unsupported: refreshToken == .revoked
            case .notAsked, .failed: false
            }
        }
    }
}

// Revocation, RFC 7009.
extension Heimdallr {
    /// Revokes the refresh token, then the access token (RFC 7009), and the former one if it is still at hand. Then forgets both, in memory and in the store. If
    /// no token was revoked, keeps both for another try. Waits for a token request under way, and ignores cancellation
    /// of the task. A client without a login gets a new token at the next request.
    /// - Parameter locally: whether to forget the tokens without revoking them.
    public func logOut(locally: Bool = false) async -> LogoutReport {
        // A cancellation must not stop this halfway, because a revoked token would stay in use.
        await Task { [self] in
            guard let turn = await turns.acquire() else {
                return LogoutReport(result: .forgotten, isForgotten: false, storeFault: "the logout was cancelled")
            }
            defer { turns.release(turn) }
            let lease: (any TokenStoreLease)?
            do {
                lease = try await store.lease(client: recordName)
            } catch let error as TokenStoreError where error.kind == .busy {
                // Another process may be using the refresh token that would be revoked.
                return LogoutReport(
                    result: .asked(refreshToken: .failed(.store(error)), accessToken: .notAsked), isForgotten: false)
            } catch {
                lease = nil
            }
            let report = await logOutHoldingStore(locally: locally)
            await lease?.release()
            return report
        }.value
    }

    private func logOutHoldingStore(locally: Bool) async -> LogoutReport {
        // Another process may have moved to another server. `readAhead` takes that server together with its tokens.
        if enrols { await readAhead() }
        let held = await heldTokens()
        if locally { return await forget(.forgotten) }
        guard held.refreshToken != nil || held.accessToken != nil else { return await forget(.nothingHeld) }
        let endpoint: Result<String, DiscoveryFault>
        do throws(DiscoveryFault) { endpoint = .success(try await requests.directory.url(.revocation)) } catch {
            endpoint = .failure(error)
        }
        if case .failure(.missing) = endpoint { return LogoutReport(result: .noEndpoint, isForgotten: false) }
        let secrets = [held.refreshToken, held.accessToken].compactMap { $0 }
        let refreshToken = await revoke(
            held.refreshToken, "refresh_token", at: endpoint, expiresIn: nil, hiding: secrets)
        var accessToken: LogoutReport.TokenOutcome = held.accessToken == nil ? .notHeld : .notAsked
        if refreshToken == .notHeld || refreshToken == .revoked {
            accessToken = await revoke(
                held.accessToken, "access_token", at: endpoint, expiresIn: held.expiresIn, hiding: secrets)
        }
        guard refreshToken == .revoked || accessToken == .revoked else {
            return LogoutReport(
                result: .asked(refreshToken: refreshToken, accessToken: accessToken), isForgotten: false)
        }
        // The former token may still work, too.
        if accessToken == .revoked, let former = look({ $0.suspicions.former?.token }) {
            accessToken = await revoke(
                former.value, "access_token", at: endpoint, expiresIn: clock.now().duration(to: former.expiresAt),
                hiding: secrets + [former.value])
        }
        return await forget(.asked(refreshToken: refreshToken, accessToken: accessToken))
    }

    private func forget(_ result: LogoutReport.Result) async -> LogoutReport {
        var report = LogoutReport(result: result, isForgotten: true)
        do {
            try await forgetHoldingGate()
        } catch { report.storeFault = (error as? TokenStoreError)?.description ?? "the token store failed" }
        return report
    }

    /// Returns the tokens in memory, or those of a later record by another process.
    private func heldTokens() async -> (refreshToken: Secret?, accessToken: Secret?, expiresIn: Duration?) {
        let held = tokensInMemory()
        if !enrols, let record = try? await store.load(client: recordName), record.revision > held.revision {
            return (record.refreshToken, record.accessToken, nil)
        }
        return (held.refreshToken, held.accessToken, held.expiresIn)
    }

    /// Sends one revocation request (RFC 7009 section 2.1), with the client's usual authentication.
    private func revoke(
        _ token: Secret?, _ hint: String, at endpoint: Result<String, DiscoveryFault>, expiresIn: Duration?,
        hiding secrets: [Secret]
    ) async -> LogoutReport.TokenOutcome {
        guard let token else { return .notHeld }
        do throws(TokenEndpointFault) {
            let url: String
            do throws(DiscoveryFault) { url = try endpoint.get() } catch { throw .discovery(error) }
            let request = try await requests.authenticated(
                [FormParameter("token", token), FormParameter("token_type_hint", hint)])
            _ = try await requests.answer(to: request, at: url, hiding: secrets)
            return .revoked
        } catch {
            guard case .refused(let refusal) = error, refusal.code.rawValue == "unsupported_token_type" else {
                return .failed(error)
            }
            return .unsupported(expiresIn: expiresIn)
        }
    }
}
