/// Bytes that are read in place, so that no copy of a secret remains.
public protocol LentBytes: Sendable {
    var count: Int { get }
    func withSpan<Result>(_ body: (Span<UInt8>) throws -> Result) rethrows -> Result
}

extension [UInt8]: LentBytes {
    public func withSpan<Result>(_ body: (Span<UInt8>) throws -> Result) rethrows -> Result { try body(span) }
}
