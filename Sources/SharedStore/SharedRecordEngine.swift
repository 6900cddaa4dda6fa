import Heimdallr

/// A database outside this process with one row for each client, such as PostgreSQL. A driver for another database conforms
/// to this protocol; `MarkedTokenStore` makes a token store of it.
///
/// Each call is one atomic step, durable when it returns. A call that throws `TokenStoreError.Kind.unreachable` may have been
/// carried out. A call takes seconds at most.
package protocol SharedRecordEngine: Sendable {
    /// The client's row; revision 0 where there is none.
    func read(client: String) async throws -> SharedRow

    /// Marks the row for `owner`, if its revision is `revision` (`nil`: any) and no other owner's mark stands. A mark stands
    /// for `time` by the engine's own clock, through crashes of the engine. A mark that ended
    /// while the engine was away stands for some seconds more, so that its owner can save.
    /// - Returns: the row after the call. `SharedRow.mark` says whether it is marked for `owner`.
    func mark(client: String, revision: UInt64?, owner: String, for time: Duration) async throws -> SharedRow

    /// Removes the owner's mark and notifies all processes. Does nothing if the mark has ended.
    func unmark(client: String, owner: String) async throws

    /// Replaces the row of `revision` by `record`, removes any mark and notifies all processes. `nil` empties the row. The new
    /// revision is `TokenRecord.revision` if that is higher.
    /// - Returns: the new revision; `nil`: the row had another revision, and nothing has changed.
    func swap(client: String, revision: UInt64, for record: TokenRecord?) async throws -> UInt64?

    /// Returns a stream with an element each time another process may have changed the client's row or removed its mark.
    func changes(client: String) -> AsyncStream<Void>?
}

/// A client's row at the time of reading.
package struct SharedRow: Sendable {
    package enum Mark: Sendable, Equatable {
        case none
        case ours
        /// Another owner's mark, which ends after this time unless its owner removes it earlier.
        case others(for: Duration)
    }

    /// Grows with every change.
    package var revision: UInt64
    /// `nil`: there never was a record. A record without tokens: it was removed.
    package var record: Result<TokenRecord?, TokenStoreError>
    package var mark: Mark

    package init(revision: UInt64, record: Result<TokenRecord?, TokenStoreError>, mark: Mark) {
        self.revision = revision
        self.record = record
        self.mark = mark
    }
}
