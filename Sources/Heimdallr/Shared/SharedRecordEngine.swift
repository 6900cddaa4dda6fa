/// A place outside this process that keeps one row for each client: PostgreSQL, say. A driver for another database is a type
/// that keeps this contract; `MarkedTokenStore` makes a token store of it.
///
/// Each call is one atomic step, durable when it returns. A call that throws `TokenStoreError.Kind.unreachable` may have been
/// carried out. A call takes seconds at most.
package protocol SharedRecordEngine: Sendable {
    /// The client's row; revision 0 where there is none.
    func read(client: String) async throws -> SharedRow

    /// Marks the row for `holder`, if its revision is `revision` (`nil`: any) and no other holder's mark stands. A mark stands
    /// for `time` by the engine's own clock, through crashes of the engine. When the engine was away, a mark that ended
    /// meanwhile stands some seconds more, for its holder to save.
    /// - Returns: the row after it. `SharedRow.mark` says whether it is marked for `holder`.
    func mark(client: String, revision: UInt64?, holder: String, for time: Duration) async throws -> SharedRow

    /// Removes the holder's mark, and tells everybody, if it stands.
    func unmark(client: String, holder: String) async throws

    /// Replaces the row of `revision` by `record` under a higher revision, `TokenRecord.revision` where that is one, removes any
    /// mark, and tells everybody. `nil` empties the row.
    /// - Returns: the new revision; `nil`: the row had another one, and nothing has changed.
    func swap(client: String, revision: UInt64, for record: TokenRecord?) async throws -> UInt64?

    /// Has something each time another process may have changed the client's row or taken its mark away.
    func changes(client: String) -> AsyncStream<Void>?
}

/// A client's row as it was read.
package struct SharedRow: Sendable {
    package enum Mark: Sendable, Equatable {
        case none
        case ours
        /// Ends after this time, unless its holder takes it away before.
        case others(for: Duration)
    }

    /// Grows with every change.
    package var revision: UInt64
    /// `nil`: there never was one. One without tokens: it was removed.
    package var record: Result<TokenRecord?, TokenStoreError>
    package var mark: Mark

    package init(revision: UInt64, record: Result<TokenRecord?, TokenStoreError>, mark: Mark) {
        self.revision = revision
        self.record = record
        self.mark = mark
    }
}
