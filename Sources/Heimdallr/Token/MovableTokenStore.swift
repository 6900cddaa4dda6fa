internal import WireText

/// A store whose records can be moved to another one. It then has a note of the new location, and its records are not used.
package protocol MovableTokenStore: OAuthAccessTokenStore {
    /// A name for people, without secrets: `the files in DIRECTORY`.
    var location: String { get }

    /// Makes it ready to be moved from or to: a note of an earlier move is ignored from now on.
    /// - Parameter alone: keeps proxies out until this object goes.
    /// - Throws: `TokenStoreError` of the kind `.busy` when a proxy uses it and `alone` is true.
    func prepareMove(alone: Bool) async throws

    /// Where its records went; `nil`: nowhere.
    func newLocation() async throws -> String?

    /// Writes the note, durably; `nil` takes it away.
    func setNewLocation(_ location: String?) async throws
}

/// The sentences about moves.
package enum MovedStore {
    /// The most of a note that is written and read, in bytes.
    package static let longestNote = 1024

    /// Refuses a start. Whoever can write into the store may have written `location`.
    package static func refusal(_ own: String, movedTo location: String) -> TokenStoreError {
        TokenStoreError(
            "the token store, \(own), was moved to \(ForeignText.printable(location))",
            advice: "name that one in `store`, or bring the records back with "
                + "`heimdallr-proxy store move --config THAT --to THIS`", kind: .misconfigured)
    }

    /// At a refresh of a proxy that was running.
    package static func late(_ own: String, movedTo location: String) -> TokenStoreError {
        var error = refusal(own, movedTo: location)
        error.kind = .busy
        return error
    }

    /// To `store move`.
    package static func inUse(_ own: String) -> TokenStoreError {
        TokenStoreError("a proxy runs on \(own)", advice: "stop it first, and move then", kind: .busy)
    }
}
