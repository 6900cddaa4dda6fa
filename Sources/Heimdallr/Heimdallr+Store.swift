// Store actions of the life cycle.
extension Heimdallr {
    // MARK: Reading

    func load() async {
        var record: TokenRecord?
        var fault: TokenStoreError?
        watchStore()
        do {
            record = try await stored()
        } catch {
            fault = Self.fault(error)
        }
        if record == nil, fault == nil, await hasForeignRecord() {
            apply { life, _ in life.saving.noteForeignRecord() }
        }
        if look({ $0.ignoresStoredToken }) { record?.accessToken = nil }
        apply { $0.loaded(record, fault: fault, $1) }
        guard fault != nil else { return }
        Task.detached { [weak self, clock] in
            var attempt = 1
            repeat {
                let pause = Backoff.transient.delay(attempt: attempt, random: clock.random())
                do { try await clock.sleep(clock.now() + .seconds(1) + pause) } catch { return }
                attempt += 1
            } while await self?.loadAgain() == false
        }
    }

    /// The record with the key or certificate that its token is bound to.
    private func stored() async throws -> TokenRecord? {
        guard let record = try await store.load(client: recordName) else { return nil }
        return await exchange.takingUp(record)
    }

    /// Whether the store has a record of this client for another server or account.
    private func hasForeignRecord() async -> Bool {
        guard let names = try? await store.names(of: name) else { return false }
        return names.contains { $0 != recordName }
    }

    /// Reads the store again: a repaired store needs no restart.
    /// - Returns: whether further tries are useless.
    private func loadAgain() async -> Bool {
        guard look({ $0.awaitsStore }) else { return true }
        guard let turn = await gate.acquire() else { return true }
        defer { gate.release(turn) }
        do {
            let record = try await stored()
            apply { $0.reloaded(record, $1) }
            return true
        } catch {
            return false
        }
    }

    /// Looks for a login at another process.
    func lookAgain() async {
        guard let turn = await gate.acquire() else { return }
        defer { gate.release(turn) }
        guard let record = try? await stored() else { return }
        apply { $0.looked(record, $1) }
    }

    /// Watches the store for changes by other processes, as long as the client lives.
    func watchStore() {
        guard let changes = store.changes(client: recordName) else { return }
        apply { life, _ in life.saving.share() }
        let watch = Task.detached { [weak self] in
            for await _ in changes {
                guard let self else { return }
                await noticeChange()
            }
        }
        keep(storeWatch: watch)
    }

    /// Reads the record after a change by another process. Repeats a failed read: no second notice may come.
    func noticeChange() async {
        for attempt in 1...Self.readings {
            guard let turn = await gate.acquire() else { return }
            let record: Result<TokenRecord?, any Error>
            do { record = .success(try await stored()) } catch { record = .failure(error) }
            gate.release(turn)
            switch record {
            case .success(let record):
                apply { $0.noticed(record, $1) }
                return
            case .failure(let error):
                let fault = Self.fault(error)
                apply { life, _ in life.storeIsAway(fault) }
                let pause = Backoff.transient.delay(attempt: attempt, random: clock.random())
                do { try await clock.sleep(clock.now() + .milliseconds(200) + pause) } catch { return }
            }
        }
    }

    private static let readings = 5

    /// The record of another process.
    enum Stored {
        case newer(TokenRecord)
        case nothingNew
        /// It can't be read now, and a request without it could do harm.
        case unknown(TokenStoreError)
    }

    /// Reads the store under the lease.
    func whatIsStored(_ kind: TokenLifeCycle.FetchKind) async -> Stored {
        let (revision, ours) = look { ($0.revision, $0.refreshToken) }
        do {
            guard let record = try await stored() else { return .nothingNew }
            // Two processes that could not see each other may have used one revision.
            let isOther = isShared && record.revision == revision && record.refreshToken != ours
            return record.revision > revision || isOther ? .newer(record) : .nothingNew
        } catch let error as TokenStoreError
            where spends(kind) && (error.kind == .unreachable || error.kind == .unreadable && isShared)
        {
            // Other processes may be able to read this record and may have replaced it.
            return .unknown(error)
        } catch let error as TokenStoreError
            where error.kind != .unreadable && revision == 0 && kind == .grant && exchange.grant.needs == .freshSeed
        {
            // The configured refresh token was probably spent for the record's one. A second use may revoke both.
            return .unknown(error)
        } catch {
            return .nothingNew
        }
    }

    /// Saves the unsaved record, or drops it, before a request that depends on it.
    /// - Returns: `false`: another process has saved a later record.
    /// - Throws: `TokenStoreError` of the kind `.unreachable`: no request may depend on it yet.
    func settleUnsaved() async throws(TokenStoreError) -> Bool {
        guard let record = unsavedRecord else { return true }
        switch await save(record) {
        case .done:
            apply { $0.resaved(record, fault: nil, $1) }
            return true
        case .superseded(let later):
            takeUp(later)
            return false
        case .failed(let error):
            apply { $0.resaved(record, fault: error.description, $1) }
            if error.kind == .unreachable { throw error }
            return true
        }
    }

    /// Whether a token request sends a one-time credential.
    func spends(_ kind: TokenLifeCycle.FetchKind) -> Bool {
        kind != .grant || exchange.grant.needs == .freshSeed
    }

    /// Kind of the request that is allowed while other processes' records are unknown.
    func kindWithoutStore() -> TokenLifeCycle.FetchKind? { exchange.grant.needs == .nobody ? .grant : nil }

    // MARK: Writing

    /// The record that the store has not taken yet.
    var unsavedRecord: TokenRecord? { look { $0.unsaved } }

    enum Saved {
        case done
        case failed(TokenStoreError)
        /// Another process has saved a later record.
        case superseded(by: TokenRecord)
    }

    func save(_ record: TokenRecord) async -> Saved {
        do {
            try await store.save(exchange.completed(record), client: recordName)
            return .done
        } catch let error as TokenStoreError where error.kind == .superseded {
            guard let later = try? await stored() else { return .failed(error) }
            return .superseded(by: later)
        } catch {
            return .failed(Self.fault(error))
        }
    }

    func resave(_ record: TokenRecord) async {
        var fault: String?
        if let turn = await gate.acquire() {
            defer { gate.release(turn) }
            // A record that `clear` has forgotten must not come back.
            if unsavedRecord == record {
                switch await save(record) {
                case .done: break
                case .failed(let error): fault = error.description
                case .superseded(let later): return takeUp(later)
                }
            }
        } else {
            fault = "saving was cancelled"
        }
        apply { $0.resaved(record, fault: fault, $1) }
    }

    /// Uses the later record of another process.
    func takeUp(_ later: TokenRecord) {
        apply { $0.superseded(by: later, $1) }
    }

    private static func fault(_ error: any Error) -> TokenStoreError {
        error as? TokenStoreError ?? TokenStoreError("the token store failed")
    }
}
