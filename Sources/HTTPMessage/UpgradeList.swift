import WireText

/// The protocols in a message's Upgrade fields (RFC 9110 7.8): the client's offer, or the server's choice with 101.
public struct UpgradeList: Sendable, Equatable {
    /// Protocols as written: each a name, with an optional slash and version.
    public private(set) var protocols: [[UInt8]] = []

    private static let maxProtocols = 16

    private init() {}

    /// - Returns: `nil` for a malformed or very long list.
    public init?(_ fields: [Field], in bytes: Span<UInt8>) {
        for field in fields where field.known == .upgrade {
            var index = Int(field.value.start)
            let line = bytes.extracting(first: Int(field.value.end))
            while index < line.count {
                while index < line.count, ASCII.isBlank(line[index]) || line[index] == ASCII.comma { index += 1 }
                guard index < line.count else { break }
                let start = index
                index = ASCII.endOfToken(line, index)
                guard index > start else { return nil }
                if index < line.count, line[index] == ASCII.slash {
                    let version = index + 1
                    index = ASCII.endOfToken(line, version)
                    guard index > version else { return nil }
                }
                let end = index
                while index < line.count, ASCII.isBlank(line[index]) { index += 1 }
                guard index == line.count || line[index] == ASCII.comma else { return nil }
                guard protocols.count < Self.maxProtocols else { return nil }
                protocols.append((start..<end).map { line[$0] })
            }
        }
    }

    public var isEmpty: Bool { protocols.isEmpty }

    /// The list without other forms of HTTP: other versions, TLS (RFC 2817), and `h2c`, which some programs offer on
    /// every request (RFC 7540 3.2; removed by RFC 9113). An agreement on these holds for one hop only, and later
    /// requests on the connection would bypass routing.
    public var withoutHTTP: UpgradeList {
        var rest = UpgradeList()
        rest.protocols = protocols.filter { !Self.http.contains(Self.folded($0.prefix { $0 != ASCII.slash })) }
        return rest
    }

    /// Whether `offer` has each of these protocols; `false` for none. A server may only switch to offered protocols.
    public func isCovered(by offer: UpgradeList) -> Bool {
        let offered = offer.protocols.map(Self.folded)
        return !isEmpty && protocols.allSatisfy { offered.contains(Self.folded($0)) }
    }

    public var value: [UInt8] { Array(protocols.joined(separator: [ASCII.comma, ASCII.space])) }

    private static func folded(_ name: some Sequence<UInt8>) -> [UInt8] { name.map(ASCII.lowercased) }
    private static let http = ["h2c", "http", "tls"].map { Array($0.utf8) }
}
