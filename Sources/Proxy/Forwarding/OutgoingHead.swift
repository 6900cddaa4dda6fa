import HTTPMessage

/// A request's head as it is sent: lines of HTTP/1.1, without the blank line. Proofs, signatures and HTTP/2 read it from
/// the written text, so they always match it. Well-formed, because the proxy wrote it.
struct OutgoingHead: ~Escapable {
    let method: Span<UInt8>
    let target: Span<UInt8>
    private let fields: Span<UInt8>

    @_lifetime(copy text)
    init(_ text: Span<UInt8>) {
        let method = Self.position(of: UInt8(ascii: " "), in: text, from: 0)
        let target = Self.position(of: UInt8(ascii: " "), in: text, from: method + 1)
        let end = Self.position(of: UInt8(ascii: "\n"), in: text, from: target)
        self.method = text.extracting(0..<method)
        self.target = text.extracting((method + 1)..<target)
        fields = text.extracting((end + 1)...)
    }

    func forEachField(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void) {
        var start = 0
        while start < fields.count {
            let end = Self.position(of: UInt8(ascii: "\r"), in: fields, from: start)
            let colon = Self.position(of: UInt8(ascii: ":"), in: fields, from: start)
            body(fields.extracting(start..<colon), fields.extracting(min(colon + 2, end)..<end))
            start = end + 2
        }
    }

    private static func position(of byte: UInt8, in line: Span<UInt8>, from start: Int) -> Int {
        var index = start
        while index < line.count, line[index] != byte { index += 1 }
        return index
    }
}
