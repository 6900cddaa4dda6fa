public struct HeadLimits: Sendable, Equatable {
    /// Limit of a head's size in bytes, blank line included.
    public var maxBytes: Int
    public var maxFields: Int

    /// - Parameters:
    ///   - maxBytes: at most 1 GiB, so that offsets fit a `ByteRange`.
    ///   - maxFields: at least 0.
    public init(maxBytes: Int, maxFields: Int) {
        self.maxBytes = min(max(maxBytes, 0), 1 << 30)
        self.maxFields = max(maxFields, 0)
    }

    public static let `default` = HeadLimits(maxBytes: 64 << 10, maxFields: 128)

    /// Limits of the head of an upstream's answer.
    static let response = HeadLimits(maxBytes: 256 << 10, maxFields: 256)

    /// Limit of options in one message's Connection fields: each is compared with every field.
    static let maxConnectionOptions = 32

    /// Limit of a method name in bytes.
    static let maxMethodBytes = 32
}
