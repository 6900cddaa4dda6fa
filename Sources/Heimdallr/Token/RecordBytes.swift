internal import Cryptography
internal import WireText

/// Writes a record as bytes. Numbers are big-endian. A count precedes each text, list and object. A byte, 0 or 1,
/// precedes each optional value.
struct RecordWriter {
    private var bytes: [UInt8] = []
    private let capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
        bytes.reserveCapacity(capacity)
    }

    /// Returns the written bytes, and wipes the writer's own copy.
    mutating func finish() -> SecretBytes {
        assert(bytes.count <= capacity, "a reallocated buffer leaves a copy that is not wiped")
        let secret = SecretBytes(bytes)
        SecretBytes.wipe(&bytes)
        return secret
    }

    mutating func byte(_ byte: UInt8) { bytes.append(byte) }

    mutating func integer(_ value: UInt64) { bytes += value.bigEndianBytes }

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

/// Reads the bytes of a `RecordWriter`. Throws if the bytes are no record.
struct RecordReader {
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
        guard case .object(var extra) = try value(span, depth: 0) else { throw Unreadable() }
        let end = extra.removeValue(forKey: StoredRecord.endMember)?.string
        record.endsBy = end.flatMap { TokenEnd(rawValue: $0) } ?? .stated
        if case .number(let text) = extra.removeValue(forKey: StoredRecord.subjectMember) {
            record.subject = UInt64(text)
        }
        record.spentSeeds = SpentSeeds(text: extra.removeValue(forKey: StoredRecord.seedsMember)?.string ?? "")
        record.extra = extra
        var stamp = TimeStamp(wall: Int64(bitPattern: try integer(span)))
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
        if format >= 4 { record.enrolment = try secret(span) }
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

    /// Reads a count of elements. Each takes at least one byte, so a count above the number of bytes left is an error.
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
