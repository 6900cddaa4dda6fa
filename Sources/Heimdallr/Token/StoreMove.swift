/// Moves all records of some clients to another store.
package struct StoreMove {
    private enum Outcome: String {
        case moved
        case none = "no record"
        case same = "the record is there already"
        case newer = "another record is there, and stays"
    }

    private let source: any MovableTokenStore
    private let target: any MovableTokenStore
    private let clients: [String]

    package init(_ source: any MovableTokenStore, _ target: any MovableTokenStore, clients: [String]) {
        self.source = source
        self.target = target
        self.clients = clients
    }

    /// Moves all records, or none if one of them can't be moved. Writes the note before it moves a record, so
    /// that no proxy starts on the source after an interrupted move. Removes each record from the source after the
    /// target has saved it. Otherwise a later move back could restore a record after a sign-out.
    /// - Parameter say: prints a line.
    package func run(_ say: (String) -> Void) async throws {
        let isResumed = try await source.newLocation() == target.location
        // A note in the target means that the target's records were moved away before, so they are old.
        let isReturn = try await target.newLocation() != nil
        func outcome(_ record: TokenRecord?, _ there: TokenRecord?) -> Outcome {
            guard let record, record.holdsAnything else { return .none }
            guard let there, there.holdsTokens else { return .moved }
            guard record.holdsTokens else { return .none }
            if there.refreshToken == record.refreshToken, there.revision >= record.revision { return .same }
            if isReturn { return .moved }
            return isResumed && there.revision > record.revision ? .same : .newer
        }
        var records: [(client: String, name: String)] = []
        var refused: [String] = []
        for client in clients {
            let names = try await source.names(of: client)
            if names.isEmpty { say("\(client): \(Outcome.none.rawValue)") }
            records += names.map { (client, $0) }
            for name in names {
                let found = outcome(try await source.load(client: name), try await target.load(client: name))
                guard found == .newer else { continue }
                say("\(client): \(Outcome.newer.rawValue)")
                refused.append(client)
            }
        }
        guard refused.isEmpty else {
            throw TokenStoreError(
                "\(target.location) has other records of \(refused.joined(separator: ", ")), and nothing was moved",
                advice: "if those records are not needed, log out there first", kind: .fault)
        }
        try await source.setNewLocation(target.location)
        var moved = 0
        for (client, name) in records {
            let done = try await holding(name) { record, there in
                let outcome = outcome(record, there)
                if outcome == .moved, var record {
                    record.revision = max(record.revision, (there?.revision ?? 0) + 1)
                    if let there { record.spentSeeds.merge(there.spentSeeds) }
                    try await target.save(record, client: name)
                }
                if outcome == .moved || outcome == .same { try await source.remove(client: name) }
                return outcome
            }
            say("\(client): \(done.rawValue)")
            if done == .moved { moved += 1 }
        }
        try await target.setNewLocation(nil)
        say("\(moved) moved")
    }

    /// Runs `body` under the leases of both stores, because a proxy on either store may be refreshing a token.
    private func holding(
        _ name: String, _ body: (TokenRecord?, TokenRecord?) async throws -> Outcome
    ) async throws -> Outcome {
        let leases = [try await source.lease(client: name), try await target.lease(client: name)]
        let outcome: Result<Outcome, any Error>
        do {
            outcome = .success(try await body(source.load(client: name), target.load(client: name)))
        } catch { outcome = .failure(error) }
        for lease in leases { await lease?.release() }
        return try outcome.get()
    }
}
