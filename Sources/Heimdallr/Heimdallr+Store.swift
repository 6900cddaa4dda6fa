// Performs the life cycle's actions on the store.
extension Heimdallr {
    // MARK: Reading

    func read(_ reading: TokenLifeCycle.Reading) async {
        if reading == .start {
            watchStore()
            await awaitSubject()
            let record = await stored()
            if case .success(nil) = record, await hasForeignRecord() { apply { life, _ in life.foundForeignRecord() } }
            apply { $0.read(.start, record, $1) }
        } else if let turn = await turns.acquire() {
            defer { turns.release(turn) }
            let record = await stored()
            apply { $0.read(reading, record, $1) }
        }
    }

    /// Returns the store's record. Its access token is dropped if it is bound to another key or certificate.
    func stored() async -> Result<TokenRecord?, TokenStoreError> {
        do {
            guard let record = try await store.load(client: recordName) else { return .success(nil) }
            return .success(fitting(await requests.takingUp(record)))
        } catch {
            return .failure(Self.fault(error))
        }
    }

    /// Reads the store before a sign-in or a sign-out, and uses the record if another process has saved a later one.
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

    /// Saves the unsaved record, if any, before a token request.
    /// - Returns: `false` if another process has saved a later record, which is now used.
    /// - Throws: `TokenStoreError` of the kind `.unreachable`. No token request may be sent then.
    func settleUnsaved() async throws(TokenStoreError) -> Bool {
        guard let record = unsavedRecord else { return true }
        let saved = await save(record)
        guard !saved.isSuperseded else { return false }
        apply { $0.resaved(record, fault: saved.fault, $1) }
        if let fault = saved.fault, fault.kind == .unreachable { throw fault }
        return true
    }

    // MARK: Writing

    var unsavedRecord: TokenRecord? { look { $0.unsaved } }

    /// Saves a record. If another process has saved a later record, uses that record instead (`isSuperseded`).
    func save(_ record: TokenRecord) async -> (isSuperseded: Bool, fault: TokenStoreError?) {
        do {
            try await store.save(requests.completed(record), client: recordName)
            return (false, nil)
        } catch {
            let fault = Self.fault(error)
            guard fault.kind == .superseded, case .success(let later?) = await stored() else { return (false, fault) }
            apply { $0.superseded(by: later, $1) }
            return (true, fault)
        }
    }

    func resave(_ record: TokenRecord) async {
        var fault: TokenStoreError? = TokenStoreError("saving was cancelled")
        if let turn = await turns.acquire() {
            defer { turns.release(turn) }
            // `clear` may have dropped this record meanwhile. It must then not be saved again.
            let saved = unsavedRecord == record ? await save(record) : (isSuperseded: false, fault: nil)
            guard !saved.isSuperseded else { return }
            fault = saved.fault
        }
        apply { $0.resaved(record, fault: fault, $1) }
    }

    private static func fault(_ error: any Error) -> TokenStoreError {
        error as? TokenStoreError ?? TokenStoreError("the token store failed")
    }
}
