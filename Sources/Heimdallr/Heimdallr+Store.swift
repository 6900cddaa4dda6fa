// What the life cycle wants of the store, done.
extension Heimdallr {
    // MARK: Reading

    func load() async {
        var record: TokenRecord?
        var fault: String?
        do {
            record = try await stored()
        } catch {
            fault = Self.sentence(for: error)
        }
        let wallClock = clock.wallClock()
        apply { $0.loaded(record, fault: fault, now: $1, wallClock: wallClock, random: clock.random) }
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

    /// The record with the key that its token is bound to.
    private func stored() async throws -> TokenRecord? {
        guard var record = try await store.load(client: name) else { return nil }
        if let binding = exchange.binding { return await binding.takingUp(record) }
        // Bound to a key, it is no Bearer token.
        if record.keyThumbprint != nil { record.accessToken = nil }
        return record
    }

    /// A disk that comes back, or a file that somebody has mended, must not need a restart.
    /// - Returns: whether there is no sense in trying again.
    private func loadAgain() async -> Bool {
        guard look({ $0.awaitsStore }) else { return true }
        guard (try? await gate.acquire()) != nil else { return true }
        defer { gate.release() }
        do {
            let record = try await stored()
            let wallClock = clock.wallClock()
            apply { $0.reloaded(record, now: $1, wallClock: wallClock, random: clock.random) }
            return true
        } catch {
            return false
        }
    }

    /// Somebody may have logged in at another process.
    func lookAgain() async {
        guard (try? await gate.acquire()) != nil else { return }
        defer { gate.release() }
        guard let record = try? await stored() else { return }
        let wallClock = clock.wallClock()
        apply { $0.looked(record, now: $1, wallClock: wallClock, random: clock.random) }
    }

    /// What another process has made of the record since.
    enum Stored {
        case newer(TokenRecord)
        case nothingNew
        /// It can't be read just now, and to go on as if there were none could do harm.
        case unknown(TokenStoreError)
    }

    /// To be asked under the lease.
    func whatIsStored(_ kind: TokenLifeCycle.FetchKind) async -> Stored {
        let revision = look { $0.revision }
        do {
            guard let record = try await stored(), record.revision > revision else {
                return .nothingNew
            }
            return .newer(record)
        } catch let error as TokenStoreError
            where error.kind != .unreadable && revision == 0 && kind == .grant && exchange.grant.needs == .freshSeed
        {
            // The refresh token that was handed in has been spent for the one in the record, most likely, and a server
            // that sees it again may kill them both.
            return .unknown(error)
        } catch {
            return .nothingNew
        }
    }

    // MARK: Writing

    /// What the store could not take yet.
    var unsavedRecord: TokenRecord? { look { $0.unsaved } }

    /// - Returns: what went wrong.
    func save(_ record: TokenRecord) async -> String? {
        do {
            try await store.save(exchange.binding?.completed(record) ?? record, client: name)
            return nil
        } catch {
            return Self.sentence(for: error)
        }
    }

    func resave(_ record: TokenRecord) async {
        var fault: String?
        do {
            try await gate.acquire()
            defer { gate.release() }
            // What was forgotten while it stood in line must not come back.
            if unsavedRecord == record { fault = await save(record) }
        } catch {
            fault = "saving was cancelled"
        }
        apply { $0.resaved(record, fault: fault, now: $1, random: clock.random) }
    }

    private static func sentence(for error: any Error) -> String {
        (error as? TokenStoreError)?.description ?? "the token store failed"
    }
}
