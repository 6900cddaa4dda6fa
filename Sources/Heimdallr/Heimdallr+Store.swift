// Store actions of the life cycle.
extension Heimdallr {
    // MARK: Reading

    func read(_ reading: TokenLifeCycle.Reading) async {
        if reading == .start {
            watchStore()
            let record = await stored()
            if case .success(nil) = record, await hasForeignRecord() { apply { life, _ in life.foundForeignRecord() } }
            apply { $0.read(.start, record, $1) }
        } else if let turn = await gate.acquire() {
            defer { gate.release(turn) }
            let record = await stored()
            apply { $0.read(reading, record, $1) }
        }
    }

    /// The record with the key or certificate that its token is bound to.
    func stored() async -> Result<TokenRecord?, TokenStoreError> {
        do {
            guard let record = try await store.load(client: recordName) else { return .success(nil) }
            return .success(await exchange.takingUp(record))
        } catch {
            return .failure(Self.fault(error))
        }
    }

    /// Takes up a later record of another process, before a sign-in or a sign-out.
    func readAhead() async {
        guard case .success(let record?) = await stored() else { return }
        apply { $0.readAhead(record, $1) }
    }

    /// Whether the store has a record of this client for another server or account.
    private func hasForeignRecord() async -> Bool {
        guard let names = try? await store.names(of: name) else { return false }
        return names.contains { $0 != recordName }
    }

    /// Watches the store for changes by other processes, as long as the client lives.
    func watchStore() {
        guard let changes = store.changes(client: recordName) else { return }
        apply { life, _ in life.shareStore() }
        watch(
            Task.detached { [weak self] in
                for await _ in changes {
                    guard let self else { return }
                    await read(.change)
                }
            })
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
            apply { $0.resaved(record, fault: error, $1) }
            if error.kind == .unreachable { throw error }
            return true
        }
    }

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
            guard case .success(let later?) = await stored() else { return .failed(error) }
            return .superseded(by: later)
        } catch {
            return .failed(Self.fault(error))
        }
    }

    func resave(_ record: TokenRecord) async {
        var fault: TokenStoreError?
        if let turn = await gate.acquire() {
            defer { gate.release(turn) }
            // A record that `clear` has forgotten must not come back.
            if unsavedRecord == record {
                switch await save(record) {
                case .done: break
                case .failed(let error): fault = error
                case .superseded(let later): return takeUp(later)
                }
            }
        } else {
            fault = TokenStoreError("saving was cancelled")
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
