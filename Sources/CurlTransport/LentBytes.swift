/// Bytes that are looked at where they are, so that no copy of a secret is left behind.
public protocol LentBytes: Sendable {
    var count: Int { get }
    func withSpan<Result>(_ body: (Span<UInt8>) throws -> Result) rethrows -> Result
}

extension [UInt8]: LentBytes {
    public func withSpan<Result>(_ body: (Span<UInt8>) throws -> Result) rethrows -> Result { try body(span) }
}
