/// An operation with its duration, as exported to a collector (OpenTelemetry's span).
struct TraceSpan: Sendable, Equatable {
    /// Kind of a span. Raw values are those of `SpanKind` in opentelemetry/proto/trace/v1/trace.proto.
    enum Kind: UInt64, Sendable {
        /// A request received by the proxy.
        case server = 2
        /// A request sent by the proxy.
        case client = 3
    }

    enum Value: Sendable, Equatable {
        case text(String)
        case number(Int64)
        case seconds(Double)
        case flag(Bool)
    }

    struct Attribute: Sendable, Equatable {
        var name: String
        var value: Value

        init(_ name: String, _ value: Value) {
            self.name = name
            self.value = value
        }
    }

    struct Event: Sendable, Equatable {
        var name: String
        /// Nanoseconds since 1970.
        var time: UInt64
        var attributes: [Attribute]
    }

    var context: SpanContext
    var name: String
    var kind: Kind
    /// Nanoseconds since 1970.
    var start: UInt64
    var end: UInt64
    var attributes: [Attribute] = []
    var events: [Event] = []
    var isError = false

    init(_ context: SpanContext, _ name: String, _ kind: Kind, start: UInt64, end: UInt64) {
        self.context = context
        self.name = name
        self.kind = kind
        self.start = start
        self.end = max(start, end)
    }

    /// Adds an attribute, unless its value is `nil`.
    mutating func add(_ name: String, _ value: Value?) {
        if let value { attributes.append(Attribute(name, value)) }
    }

    mutating func addServer(_ host: String, _ port: UInt16?) {
        // The brackets of an IPv6 address belong to URLs only.
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        add("server.address", .text(isBracketed ? String(host.dropFirst().dropLast()) : host))
        add("server.port", port.map { .number(Int64($0)) })
    }
}
