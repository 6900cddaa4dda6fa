/// An operation with its duration, as exported to a collector (OpenTelemetry's span).
public struct TraceSpan: Sendable, Equatable {
    /// The numbers of `SpanKind` in opentelemetry/proto/trace/v1/trace.proto.
    public enum Kind: UInt64, Sendable {
        /// A request received by the proxy.
        case server = 2
        /// A request sent by the proxy.
        case client = 3
    }

    public enum Value: Sendable, Equatable {
        case text(String)
        case number(Int64)
        case seconds(Double)
        case flag(Bool)
    }

    public struct Attribute: Sendable, Equatable {
        public var name: String
        public var value: Value

        public init(_ name: String, _ value: Value) {
            self.name = name
            self.value = value
        }
    }

    /// An event within the span.
    public struct Event: Sendable, Equatable {
        public var name: String
        /// Nanoseconds since 1970.
        public var time: UInt64
        public var attributes: [Attribute]

        public init(_ name: String, time: UInt64, _ attributes: [Attribute] = []) {
            self.name = name
            self.time = time
            self.attributes = attributes
        }
    }

    public var mark: TraceMark
    public var name: String
    public var kind: Kind
    /// Nanoseconds since 1970.
    public var start: UInt64
    public var end: UInt64
    public var attributes: [Attribute] = []
    public var events: [Event] = []
    public var isError = false

    public init(_ mark: TraceMark, _ name: String, _ kind: Kind, start: UInt64, end: UInt64) {
        self.mark = mark
        self.name = name
        self.kind = kind
        self.start = start
        self.end = max(start, end)
    }
}
