import Heimdallr

/// A database outside this process with one row for each client, such as PostgreSQL. A driver for another database
/// conforms to this protocol; `MarkedTokenStore` makes a token store of it.
///
/// Each call is one atomic step, durable when it returns. A call that throws `TokenStoreError.Kind.unreachable` may
/// have been carried out. A call takes seconds at most, and changes nothing later.
package protocol SharedRecordEngine: Sendable {
    /// Returns the client's row; for a missing row, an empty one of revision 0.
    func read(client: String) async throws -> SharedRow

    /// Marks the row for `owner`, if its revision is `revision` (`nil`: any) and no other owner's mark is valid. A mark
    /// is valid for `time` by the engine's clock, also after a crash of the engine.
    ///
    /// A mark that has ended is contested, not taken: this call announces a takeover in the row. A later call marks the
    /// row, after announcements that succeeded for some seconds without a gap. In this time the former owner can save,
    /// because each outage that stops its saves stops the announcements, too. Any process may continue the
    /// announcements of another. Only the row decides, not the memory of a process.
    /// - Returns: the row after the call. `SharedRow.mark` says whether the row is marked for `owner`.
    func mark(client: String, revision: UInt64?, owner: String, for time: Duration) async throws -> SharedRow

    /// Does the same for the owner of a mark that is in use. Contests no mark. On a server that lacks the mark, this call
    /// comes before those of `mark` by other processes, which leave a new server alone for a moment.
    func renew(client: String, revision: UInt64, owner: String, for time: Duration) async throws -> SharedRow

    /// Removes the owner's mark and notifies all processes. Does nothing if the owner has no mark.
    func unmark(client: String, owner: String) async throws

    /// If the row has `revision`, replaces its content by `record` (`nil` empties it), removes any mark and notifies
    /// all processes. The new revision is the next number, or `TokenRecord.revision` if that is higher. A record
    /// without tokens empties the row, too. `TokenRecord.moments` says when the record was made, if it was not now.
    /// - Returns: the new revision; `nil`: the row had another revision, and nothing has changed.
    func swap(client: String, revision: UInt64, for record: TokenRecord?) async throws -> UInt64?

    /// Returns a stream that tells each time another process may have changed the client's row or removed its mark.
    func changes(client: String) -> AsyncStream<Void>?
}

extension SharedRecordEngine {
    /// Calls `mark`, which is right for an engine that has one server only.
    package func renew(
        client: String, revision: UInt64, owner: String, for time: Duration
    ) async throws -> SharedRow { try await mark(client: client, revision: revision, owner: owner, for: time) }
}

/// A client's row at the time of reading.
package struct SharedRow: Sendable {
    package enum Mark: Sendable, Equatable {
        case none
        case ours
        /// Another owner's mark, which ends after this time unless its owner removes it earlier. Zero or less: the mark
        /// has ended, and is contested.
        case others(for: Duration)
    }

    /// Number that grows with each change of the record.
    package var revision: UInt64
    /// The record; `nil` if there never was any. After a removal, a record without tokens.
    package var record: Result<TokenRecord?, TokenStoreError>
    package var mark: Mark
    /// Time since the record was made, by the engine's clock; `nil`: unknown. A process that writes the record again
    /// does not change it.
    package var age: Duration?

    package init(
        revision: UInt64, record: Result<TokenRecord?, TokenStoreError>, mark: Mark, age: Duration? = nil
    ) {
        self.revision = revision
        self.record = record
        self.mark = mark
        self.age = age
    }
}
