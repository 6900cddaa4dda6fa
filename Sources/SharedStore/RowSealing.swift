import Cryptography
import Heimdallr
import WireText

/// Seals rows by AES-256-GCM, with the row's space, client and revision as associated data. So a sealed row can't be
/// moved to another client or space, or put back under a newer revision. The database never sees a token.
package struct RowSealing: Sendable {
    private let space: String
    /// Keys of the store. The first seals rows; each of them opens rows.
    package let keys: [SealingKey]

    package init(space: String, keys: [SealingKey]) {
        self.space = space
        self.keys = keys
    }

    /// Version of the layouts below. Each change of a layout increments the version.
    private static let format: UInt8 = 1

    // MARK: Records

    package func seal(_ record: TokenRecord, client: String, clock: HeimdallrClock) throws(TokenStoreError) -> [UInt8] {
        let wall = clock.wallClock()
        let (life, age) = Self.times(of: record, now: clock.now(), wall: wall)
        let stored = StoredRecord(record, TimeStamp(wall: wall))
        let plain = stored.plain()
        var writer = SecretWriter(capacity: plain.count + 17)
        for byte in life.bigEndianBytes + age.bigEndianBytes { writer.append(byte) }
        writer.append(stored.format)
        writer.append(plain)
        return try sealing(writer.finish(), context("token", Array(client.utf8), record.revision))
    }

    /// - Returns: the record, the lifetime of its access token, and the age of this token when the record was sealed.
    ///   Both times are in milliseconds.
    /// - Throws: `TokenStoreError` of the kind `.unreadable`
    func open(
        _ sealed: [UInt8], client: String, revision: UInt64
    ) throws(TokenStoreError) -> (stored: StoredRecord, life: Int64, age: Int64) {
        let plain = try opening(
            sealed, context("token", Array(client.utf8), revision),
            "the record of \(RecordName.owner(of: client)) in space \(space)")
        let opened = plain.withSpan { span -> (stored: StoredRecord, life: Int64, age: Int64)? in
            guard span.count > 17 else { return nil }
            func number(_ bytes: Range<Int>) -> Int64 { bytes.reduce(0) { $0 << 8 | Int64(span[$1]) } }
            guard let stored = StoredRecord(plain: span.extracting(17..<span.count), format: span[16]),
                stored.record.revision == revision
            else { return nil }
            return (stored, number(0..<8), number(8..<16))
        }
        guard let opened else {
            throw TokenStoreError(
                "the record of \(RecordName.owner(of: client)) in space \(space) was written by another version: run that version, or "
                    + "`heimdallr-proxy logout --local` to start afresh", kind: .unreadable)
        }
        return opened
    }

    /// Returns the lifetime and the age of the access token in milliseconds, by this process's clocks.
    private static func times(
        of record: TokenRecord, now: ContinuousClock.Instant, wall: Int64
    ) -> (life: Int64, age: Int64) {
        let longest =
            record.endsBy == .open ? HeimdallrConfiguration.endless.microseconds / 1000 : 366 * 86_400_000
        // Without an access token, too: this is the age of the record, which decides between two branches of records.
        if let moments = record.moments {
            return (
                min(longest, max(0, moments.issuedAt.duration(to: moments.expiresAt).microseconds / 1000)),
                min(longest, max(0, moments.issuedAt.duration(to: now).microseconds / 1000 + 1))
            )
        }
        guard record.accessToken != nil else { return (0, 0) }
        // These times are whole seconds. The age is rounded up, so that no token seems younger than it is.
        let (life, tooLong) = record.expiresAt.subtractingReportingOverflow(record.issuedAt)
        let (age, tooOld) = wall.subtractingReportingOverflow(record.issuedAt)
        guard !tooLong, !tooOld, life > 0, age >= 0 else { return (0, longest) }
        return (min(longest / 1000, life) * 1000, (min(longest / 1000, age) + 1) * 1000)
    }

    // MARK: Other content

    package func seal(_ content: Secret, for purpose: String, _ name: [UInt8]) throws(TokenStoreError) -> [UInt8] {
        try sealing(content.withSpan { SecretBytes($0) }, context(purpose, name, 0))
    }

    /// - Throws: `TokenStoreError` of the kind `.unreadable`
    package func open(_ sealed: [UInt8], for purpose: String, _ name: [UInt8]) throws(TokenStoreError) -> Secret {
        try opening(sealed, context(purpose, name, 0), "the pending login").withSpan { Secret($0) }
    }

    // MARK: Details

    /// Returns the associated data. The length precedes each word, so that no two rows have the same data.
    private func context(_ purpose: String, _ name: [UInt8], _ revision: UInt64) -> [UInt8] {
        var bytes = Array("heimdallr-proxy shared store".utf8)
        for word in [Array(purpose.utf8), Array(space.utf8), name] { bytes += UInt64(word.count).bigEndianBytes + word }
        return bytes + revision.bigEndianBytes
    }

    private func sealing(_ plain: SecretBytes, _ context: [UInt8]) throws(TokenStoreError) -> [UInt8] {
        guard let key = keys.first else { throw TokenStoreError("the token store has no key", kind: .misconfigured) }
        do throws(CryptographyError) {
            return try SealedBytes.seal(plain, format: Self.format, context: context, key: key)
        } catch { throw TokenStoreError("the token store: \(error)") }
    }

    private func opening(
        _ sealed: [UInt8], _ context: [UInt8], _ what: String
    ) throws(TokenStoreError) -> SecretBytes {
        var fault = SealFault.key
        for key in keys {
            do throws(CryptographyError) {
                return try SealedBytes.open(sealed, format: Self.format, context: context, key: key)
            } catch CryptographyError.seal(.key) {
                continue
            } catch CryptographyError.seal(let other) {
                fault = other
                break
            } catch {
                throw TokenStoreError("the token store: \(error)")
            }
        }
        let advice =
            switch fault {
            case .key: "write that key into `store.keys`, after the new key"
            case .format: "run a version that reads it"
            case .foreign, .damaged: "restore the row; it was changed, or moved from another client or space"
            }
        throw TokenStoreError("\(what) \(fault): \(advice), or empty the row to start afresh", kind: .unreadable)
    }
}
