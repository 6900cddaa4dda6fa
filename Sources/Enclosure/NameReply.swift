import WireText

/// The answer to a query of the name system, from the enclosure's own names. RFC 1035.
///
/// A name has one IPv4 address. Other types have no records, but no name is ever said not to exist: a program would
/// then not ask for its address.
struct NameReply {
    private static let headerBytes = 12
    private enum Code: UInt8 { case none = 0, malformed = 1, failed = 2, notImplemented = 4 }
    private enum Record: UInt16 {
        case address = 1, pointer = 12, address6 = 28
    }
    /// Class IN.
    private static let internet: UInt16 = 1
    /// Seconds. The table keeps an address for the whole run.
    private static let life: UInt32 = 60

    /// - Returns: the answer's bytes, at most 512; `nil` for what is no query.
    static func bytes(to query: [UInt8], from names: EnclosedNames) -> [UInt8]? {
        // QR: an answer is not answered.
        guard query.count >= headerBytes, query[2] & 0x80 == 0 else { return nil }
        guard query[2] >> 3 & 15 == 0 else { return answer(query, .notImplemented, question: []) }
        guard let question = Question(query) else { return answer(query, .malformed, question: []) }
        guard question.recordClass == internet, let type = Record(rawValue: question.type) else {
            return answer(query, .none, question: question.bytes)
        }
        switch type {
        case .address:
            guard let address = names.address(of: question.name) else {
                return answer(query, .failed, question: question.bytes)
            }
            return answer(query, .none, question: question.bytes, (type, address.bigEndianBytes))
        case .address6 where EnclosedNames.isLoopback(question.name):
            return answer(query, .none, question: question.bytes, (type, Array(repeating: 0, count: 15) + [1]))
        case .address6:
            return answer(query, .none, question: question.bytes)
        case .pointer:
            guard let name = pointed(by: question.name, names) else {
                return answer(query, .none, question: question.bytes)
            }
            return answer(query, .none, question: question.bytes, (type, name))
        }
    }

    private static func answer(
        _ query: [UInt8], _ code: Code, question: [UInt8], _ record: (type: Record, data: [UInt8])? = nil
    ) -> [UInt8] {
        var bytes = Array(query[..<2])
        // QR, AA, and RD as asked; RA and the code.
        bytes += [0x84 | query[2] & 1, 0x80 | code.rawValue]
        bytes += [0, question.isEmpty ? 0 : 1, 0, record == nil ? 0 : 1, 0, 0, 0, 0] + question
        if let record {
            // The name is that of the question (section 4.1.4).
            bytes += [0xC0, UInt8(headerBytes)] + record.type.rawValue.bigEndianBytes + internet.bigEndianBytes
            bytes += life.bigEndianBytes + UInt16(record.data.count).bigEndianBytes + record.data
        }
        return bytes
    }

    /// Returns the name of an address such as `7.0.18.198.in-addr.arpa`, as a record has it.
    private static func pointed(by name: String, _ names: EnclosedNames) -> [UInt8]? {
        let labels = name.split(separator: ".")
        guard labels.count == 6, labels[4] == "in-addr", labels[5] == "arpa" else { return nil }
        var address: UInt32 = 0
        for label in labels[..<4].reversed() {
            guard let part = UInt8(label) else { return nil }
            address = address << 8 | UInt32(part)
        }
        let found = address == 0x7F00_0001 ? "localhost" : names.name(ofNumber: address)
        return found.map { found in
            found.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
        }
    }
}

/// The question of a query.
private struct Question {
    /// In lower case, without a final dot.
    let name: String
    let type: UInt16
    let recordClass: UInt16
    /// The question as it came: programs compare its case.
    let bytes: [UInt8]

    /// - Returns: `nil` unless the query has one question, with a name that a host may have, or a service.
    init?(_ query: [UInt8]) {
        guard query[4] == 0, query[5] == 1 else { return nil }
        var labels: [String] = []
        var place = 12
        while place < query.count, query[place] != 0 {
            let end = place + 1 + Int(query[place])
            // A label has at most 63 bytes; larger numbers are pointers, which a question needs not.
            guard query[place] < 64, end < query.count, end - 12 <= 254 else { return nil }
            guard query[place + 1..<end].allSatisfy(Self.isOfName) else { return nil }
            labels.append(String(decoding: query[place + 1..<end], as: UTF8.self).lowercased())
            place = end
        }
        guard place + 5 <= query.count, !labels.isEmpty else { return nil }
        name = labels.joined(separator: ".")
        type = UInt16(query[place + 1]) << 8 | UInt16(query[place + 2])
        recordClass = UInt16(query[place + 3]) << 8 | UInt16(query[place + 4])
        bytes = Array(query[12..<place + 5])
    }

    private static func isOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
