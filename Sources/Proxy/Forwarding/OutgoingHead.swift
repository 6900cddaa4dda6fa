import WireText

/// A request's head as it is sent: lines of HTTP/1.1, without the blank line. DPoP proofs, signatures and
/// HTTP/2's fields are made from this text, so they always match it. The text is well-formed, because the proxy wrote
/// it.
struct OutgoingHead: ~Escapable {
    let method: Span<UInt8>
    let target: Span<UInt8>
    private let fields: Span<UInt8>

    @_lifetime(copy text)
    init(_ text: Span<UInt8>) {
        let method = text.position(of: UInt8(ascii: " "), from: 0)
        let target = text.position(of: UInt8(ascii: " "), from: method + 1)
        let end = text.position(of: UInt8(ascii: "\n"), from: target)
        self.method = text.extracting(0..<method)
        self.target = text.extracting((method + 1)..<target)
        fields = text.extracting((end + 1)...)
    }

    func forEachField(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void) {
        var start = 0
        while start < fields.count {
            let end = fields.position(of: UInt8(ascii: "\r"), from: start)
            let colon = fields.position(of: UInt8(ascii: ":"), from: start)
            body(fields.extracting(start..<colon), fields.extracting(min(colon + 2, end)..<end))
            start = end + 2
        }
    }
}
