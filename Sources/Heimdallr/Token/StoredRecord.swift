package import Cryptography

/// A record as the file store and shared stores keep it: the life cycle's record and the time of saving.
package struct StoredRecord: Sendable {
    package var record: TokenRecord
    package var stamp: TimeStamp

    package init(_ record: TokenRecord, _ stamp: TimeStamp) {
        self.record = record
        self.stamp = stamp
    }

    /// Number of the newest layout.
    private static let newest: UInt8 = 4
    /// Earlier layouts, which are still read. 3 has no enrolment, 2 also no bound tokens, 1 also no logins.
    private static let earlier: [UInt8] = [3, 2, 1]
    /// Layout of this record. Records without an enrolment keep layout 3, so that earlier versions can read them.
    package var format: UInt8 { record.enrolment == nil ? 3 : Self.newest }

    /// Name of the member of `extra` with the source of the token's end. Earlier versions ignore it.
    static let endMember = "heimdallr-proxy: end"
    /// Name of the member of `extra` with `TokenRecord.subject`.
    static let subjectMember = "heimdallr-proxy: subject"
    /// Name of the member of `extra` with `TokenRecord.spentSeeds`.
    static let seedsMember = "heimdallr-proxy: spent seeds"

    /// Returns the additional data of the seal, so that one client's record can't be used as another client's.
    private static func context(_ client: String) -> [UInt8] {
        Array("heimdallr-proxy token record of ".utf8) + Array(client.utf8)
    }

    // MARK: Sealed for one client

    /// - Throws: `CryptographyError.libcrypto`
    func seal(client: String, key: SealingKey) throws(CryptographyError) -> [UInt8] {
        try SealedBytes.seal(plain(), format: format, context: Self.context(client), key: key)
    }

    /// - Throws: `CryptographyError.seal`
    init(sealed: [UInt8], client: String, key: SealingKey) throws(CryptographyError) {
        var format = Self.newest
        let plain: SecretBytes
        do throws(CryptographyError) {
            plain = try SealedBytes.open(sealed, format: format, context: Self.context(client), key: key)
        } catch CryptographyError.seal(.format(let found, _)) where Self.earlier.contains(found) {
            format = found
            plain = try SealedBytes.open(sealed, format: format, context: Self.context(client), key: key)
        }
        let stored = plain.withSpan { StoredRecord(plain: $0, format: format) }
        // The seal is valid, so only a bug of this program can have written these bytes.
        guard let stored else { throw .seal(.damaged) }
        self = stored
    }

    // MARK: Bytes

    /// Returns the record's bytes in the layout `format`.
    package func plain() -> SecretBytes {
        var writer = RecordWriter(capacity: size)
        writer.integer(record.revision)
        writer.integer(UInt64(bitPattern: record.issuedAt))
        writer.integer(UInt64(bitPattern: record.expiresAt))
        writer.optional(record.accessToken) { $0.secret($1) }
        writer.optional(record.refreshToken) { $0.secret($1) }
        writer.list(record.scope) { $0.text($1) }
        var extra = record.extra
        extra[Self.endMember] = record.endsBy == .stated ? nil : .string(record.endsBy.rawValue)
        if let subject = record.subject { extra[Self.subjectMember] = .number("\(subject)") }
        if !record.spentSeeds.isEmpty { extra[Self.seedsMember] = .string(record.spentSeeds.text) }
        writer.value(.object(extra))
        writer.integer(UInt64(bitPattern: stamp.wall))
        writer.integer(UInt64(bitPattern: stamp.sinceBoot))
        writer.optional(stamp.boot) { $0.list($1) { $0.byte($1) } }
        writer.byte(stamp.isSynchronized ? 1 : 0)
        writer.optional(record.signIn) {
            $0.optional($1.idToken) { $0.secret($1) }
            $0.optional($1.name) { $0.text($1) }
        }
        writer.optional(record.refreshTokenLife) {
            $0.integer(UInt64(bitPattern: $1.issuedAt))
            $0.integer(UInt64(bitPattern: $1.expiresAt))
        }
        writer.optional(record.dpopKey) { $0.secret($1) }
        writer.optional(record.keyThumbprint) { $0.text($1) }
        if let enrolment = record.enrolment { writer.secret(enrolment) }
        return writer.finish()
    }

    /// Reads a record from bytes; `nil` if they are no record of this format.
    package init?(plain span: Span<UInt8>, format: UInt8) {
        var reader = RecordReader(count: span.count)
        guard (1...Self.newest).contains(format), let stored = try? reader.record(span, format: format) else {
            return nil
        }
        self = stored
    }

    /// Upper bound of the record's size in bytes, so that the writer's buffer is never reallocated.
    private var size: Int {
        416 + record.spentSeeds.text.utf8.count + (record.accessToken?.count ?? 0) + (record.refreshToken?.count ?? 0)
            + record.scope.reduce(0) { $0 + 8 + $1.utf8.count } + Self.size(of: .object(record.extra))
            + (stamp.boot?.count ?? 0) + (record.signIn?.idToken?.count ?? 0)
            + (record.signIn?.name?.utf8.count ?? 0) + (record.dpopKey?.count ?? 0)
            + (record.keyThumbprint?.utf8.count ?? 0) + (record.enrolment?.count ?? 0)
    }

    private static func size(of value: JSONValue) -> Int {
        switch value {
        case .null, .bool: 1
        case .number(let text), .string(let text): 9 + text.utf8.count
        case .array(let elements): elements.reduce(9) { $0 + size(of: $1) }
        case .object(let members): members.reduce(9) { $0 + 8 + $1.key.utf8.count + size(of: $1.value) }
        }
    }
}
