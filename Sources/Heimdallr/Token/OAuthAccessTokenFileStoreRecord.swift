internal import Cryptography

/// A record as it lies on disk: what the life cycle keeps, and when it was written down.
struct StoredRecord: Sendable {
    var record: TokenRecord
    var stamp: TimeStamp

    init(_ record: TokenRecord, _ stamp: TimeStamp) {
        self.record = record
        self.stamp = stamp
    }

    /// Of the layout below. Whoever changes the layout counts on.
    static let format: UInt8 = 3
    /// Earlier layouts, which are still read: before there were bound tokens, and before there were logins.
    private static let earlierFormats: [UInt8] = [2, 1]

    /// What a record belongs to. Sealed for one client, it can't be passed off as another's.
    private static func context(_ client: String) -> [UInt8] {
        Array("heimdallr-proxy token record of ".utf8) + Array(client.utf8)
    }

    // MARK: Bytes

    /// - Throws: `CryptographyError.libcrypto`
    func seal(client: String, key: SealingKey) throws(CryptographyError) -> [UInt8] {
        var writer = RecordWriter(capacity: size)
        writer.integer(record.revision)
        writer.integer(UInt64(bitPattern: record.issuedAt))
        writer.integer(UInt64(bitPattern: record.expiresAt))
        writer.optional(record.accessToken) { $0.secret($1) }
        writer.optional(record.refreshToken) { $0.secret($1) }
        writer.list(record.scope) { $0.text($1) }
        writer.value(.object(record.extra))
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
        return try SealedBytes.seal(writer.finish(), format: Self.format, context: Self.context(client), key: key)
    }

    /// - Throws: `CryptographyError.seal`
    init(sealed: [UInt8], client: String, key: SealingKey) throws(CryptographyError) {
        var format = Self.format
        let plain: SecretBytes
        do throws(CryptographyError) {
            plain = try SealedBytes.open(sealed, format: format, context: Self.context(client), key: key)
        } catch CryptographyError.seal(.format(let found, _)) where Self.earlierFormats.contains(found) {
            format = found
            plain = try SealedBytes.open(sealed, format: format, context: Self.context(client), key: key)
        }
        let stored = plain.withSpan { span -> StoredRecord? in
            var reader = RecordReader(count: span.count)
            return try? reader.record(span, format: format)
        }
        // It was sealed with this key for this client, so only a fault of ours can have made it.
        guard let stored else { throw .seal(.damaged) }
        self = stored
    }

    /// An upper bound of its size in bytes, so that the writer's buffer never moves.
    private var size: Int {
        208 + (record.accessToken?.count ?? 0) + (record.refreshToken?.count ?? 0)
            + record.scope.reduce(0) { $0 + 8 + $1.utf8.count } + Self.size(of: .object(record.extra))
            + (stamp.boot?.count ?? 0) + (record.signIn?.idToken?.count ?? 0)
            + (record.signIn?.name?.utf8.count ?? 0) + (record.dpopKey?.count ?? 0)
            + (record.keyThumbprint?.utf8.count ?? 0)
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

/// Numbers big-endian; text, lists and objects with their count in front; something optional with 0 or 1.
private struct RecordWriter {
    private var bytes: [UInt8] = []
    private let capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
        bytes.reserveCapacity(capacity)
    }

    /// Wipes what was written, but for what it returns.
    mutating func finish() -> SecretBytes {
        assert(bytes.count <= capacity, "a buffer that has moved leaves a copy that is not wiped")
        let secret = SecretBytes(bytes)
        SecretBytes.wipe(&bytes)
        return secret
    }

    mutating func byte(_ byte: UInt8) { bytes.append(byte) }

    mutating func integer(_ value: UInt64) {
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }

    mutating func secret(_ secret: Secret) {
        integer(UInt64(secret.count))
        secret.withSpan { span in
            for index in span.indices { bytes.append(span[index]) }
        }
    }

    mutating func text(_ text: String) {
        integer(UInt64(text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }

    mutating func optional<Value>(_ value: Value?, _ write: (inout RecordWriter, Value) -> Void) {
        byte(value == nil ? 0 : 1)
        if let value { write(&self, value) }
    }

    mutating func list<Element>(_ elements: [Element], _ write: (inout RecordWriter, Element) -> Void) {
        integer(UInt64(elements.count))
        for element in elements { write(&self, element) }
    }

    mutating func value(_ value: JSONValue) {
        switch value {
        case .null: byte(0)
        case .bool(let flag): byte(flag ? 2 : 1)
        case .number(let text):
            byte(3)
            self.text(text)
        case .string(let text):
            byte(4)
            self.text(text)
        case .array(let elements):
            byte(5)
            list(elements) { $0.value($1) }
        case .object(let members):
            byte(6)
            list(Array(members)) {
                $0.text($1.key)
                $0.value($1.value)
            }
        }
    }
}

/// Reads what `RecordWriter` has written, and never more than there is.
private struct RecordReader {
    struct Unreadable: Error {}

    private var position = 0
    private let count: Int

    init(count: Int) { self.count = count }

    mutating func record(_ span: Span<UInt8>, format: UInt8) throws(Unreadable) -> StoredRecord {
        var record = TokenRecord(
            revision: try integer(span), accessToken: nil, issuedAt: 0, expiresAt: 0, refreshToken: nil)
        record.issuedAt = Int64(bitPattern: try integer(span))
        record.expiresAt = Int64(bitPattern: try integer(span))
        if try flag(span) { record.accessToken = try secret(span) }
        if try flag(span) { record.refreshToken = try secret(span) }
        for _ in 0..<(try size(span)) { record.scope.append(try text(span)) }
        guard case .object(let extra) = try value(span, depth: 0) else { throw Unreadable() }
        record.extra = extra
        var stamp = TimeStamp(
            wall: Int64(bitPattern: try integer(span)), sinceBoot: 0, boot: nil, isSynchronized: false)
        stamp.sinceBoot = Int64(bitPattern: try integer(span))
        if try flag(span) {
            var boot: [UInt8] = []
            for _ in 0..<(try size(span)) { boot.append(try byte(span)) }
            stamp.boot = boot
        }
        stamp.isSynchronized = try flag(span)
        if format >= 2 {
            if try flag(span) {
                var signIn = SignIn()
                if try flag(span) { signIn.idToken = try secret(span) }
                if try flag(span) { signIn.name = try text(span) }
                record.signIn = signIn
            }
            if try flag(span) {
                let issuedAt = Int64(bitPattern: try integer(span))
                record.refreshTokenLife = TokenRecord.RefreshTokenLife(
                    issuedAt: issuedAt, expiresAt: Int64(bitPattern: try integer(span)))
            }
        }
        if format >= 3 {
            if try flag(span) { record.dpopKey = try secret(span) }
            if try flag(span) { record.keyThumbprint = try text(span) }
        }
        guard position == count else { throw Unreadable() }
        return StoredRecord(record, stamp)
    }

    private mutating func byte(_ span: Span<UInt8>) throws(Unreadable) -> UInt8 {
        guard position < count else { throw Unreadable() }
        defer { position += 1 }
        return span[position]
    }

    private mutating func flag(_ span: Span<UInt8>) throws(Unreadable) -> Bool {
        switch try byte(span) {
        case 0: false
        case 1: true
        default: throw Unreadable()
        }
    }

    private mutating func integer(_ span: Span<UInt8>) throws(Unreadable) -> UInt64 {
        var value: UInt64 = 0
        for _ in 0..<8 { value = value << 8 | UInt64(try byte(span)) }
        return value
    }

    /// Of something that takes at least one byte for each.
    private mutating func size(_ span: Span<UInt8>) throws(Unreadable) -> Int {
        let size = try integer(span)
        guard size <= UInt64(count - position) else { throw Unreadable() }
        return Int(size)
    }

    private mutating func secret(_ span: Span<UInt8>) throws(Unreadable) -> Secret {
        var bytes = try octets(span)
        defer { SecretBytes.wipe(&bytes) }
        return Secret(bytes)
    }

    private mutating func text(_ span: Span<UInt8>) throws(Unreadable) -> String {
        guard let text = String(validating: try octets(span), as: UTF8.self) else { throw Unreadable() }
        return text
    }

    private mutating func octets(_ span: Span<UInt8>) throws(Unreadable) -> [UInt8] {
        let size = try size(span)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size)
        for index in position..<(position + size) { bytes.append(span[index]) }
        position += size
        return bytes
    }

    private mutating func value(_ span: Span<UInt8>, depth: Int) throws(Unreadable) -> JSONValue {
        guard depth <= 64 else { throw Unreadable() }
        switch try byte(span) {
        case 0: return .null
        case 1: return .bool(false)
        case 2: return .bool(true)
        case 3: return .number(try text(span))
        case 4: return .string(try text(span))
        case 5:
            var elements: [JSONValue] = []
            for _ in 0..<(try size(span)) { elements.append(try value(span, depth: depth + 1)) }
            return .array(elements)
        case 6:
            var members: [String: JSONValue] = [:]
            for _ in 0..<(try size(span)) {
                let name = try text(span)
                members[name] = try value(span, depth: depth + 1)
            }
            return .object(members)
        default: throw Unreadable()
        }
    }
}
