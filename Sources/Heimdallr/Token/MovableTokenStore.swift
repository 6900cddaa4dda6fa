internal import WireText

/// A store whose records can be moved to another store. After a move, the source holds a note with the new location.
package protocol MovableTokenStore: OAuthAccessTokenStore {
    /// Description for people, without secrets, such as `the files in DIRECTORY`.
    var location: String { get }

    /// Prepares this store as the source or the target of a move. From now on, the note of an earlier move is ignored.
    /// - Parameter alone: whether to keep proxies out until this object is released.
    /// - Throws: `TokenStoreError` of the kind `.busy` if `alone` is true and a proxy uses the store.
    func prepareMove(alone: Bool) async throws

    /// Returns the location to which the records were moved; `nil`: they were not moved.
    func newLocation() async throws -> String?

    /// Writes the note durably. `nil` removes the note.
    func setNewLocation(_ location: String?) async throws
}

/// Errors about moved stores.
package enum MovedStore {
    /// Largest size of a note, in bytes. The rest is cut off.
    package static let longestNote = 1024

    /// Returns the error for a proxy that starts. Any program with access to the store may have written `location`, so
    /// it is made printable.
    package static func refusal(_ own: String, movedTo location: String) -> TokenStoreError {
        TokenStoreError(
            "the token store, \(own), was moved to \(ForeignText.printable(location))",
            advice: "name that store in `store`, or bring the records back with "
                + "`heimdallr-proxy store move --config THAT --to THIS`", kind: .misconfigured)
    }

    /// Returns the error for a refresh by a proxy that was already running.
    package static func late(_ own: String, movedTo location: String) -> TokenStoreError {
        var error = refusal(own, movedTo: location)
        error.kind = .busy
        return error
    }

    /// Returns the error for `store move` while a proxy uses the store.
    package static func inUse(_ own: String) -> TokenStoreError {
        TokenStoreError("a proxy runs on \(own)", advice: "stop it first, then move the records", kind: .busy)
    }
}
