import CurlTransport
import HTTPMessage
import Reactor
public import Tracing

/// What a span says of one request: made on the loop from what is there anyway, and spelled out elsewhere.
///
/// No query, no field of the request or the answer, and no credential is in it: what the access log shows, and no more.
public struct ExchangeSpan: Sendable {
    let mark: TraceMark
    let record: AccessRecord
    /// Where it went; `nil`: nowhere.
    var origin: Origin?
    /// What stands in front of the path there.
    var pathPrefix: [UInt8] = []
    /// As the client saw it, of an answer that was cut, too; 0: there was none.
    var status = 0
    /// The upstream spoke HTTP/2.
    var isHTTP2 = false
    /// The program did not even speak HTTP/1.1.
    var isHTTP10 = false
    /// Since the start.
    var tokenCame: Duration?
    var connected: Duration?
    var answered: Duration?

    /// Longer ones are cut: a span waits in memory.
    private static let longestPath = 1024
    private static let longestHost = 256
    private static let longestMethod = 64

    init(_ mark: TraceMark, _ record: AccessRecord) {
        self.mark = mark
        var record = record
        record.path = Self.cut(record.path, Self.longestPath)
        record.host = Self.cut(record.host, Self.longestHost)
        record.method = Self.cut(record.method, Self.longestMethod)
        self.record = record
    }

    private static func cut(_ bytes: [UInt8], _ most: Int) -> [UInt8] {
        bytes.count > most ? Array(bytes[..<most]) : bytes
    }

    /// What it takes of memory, more or less.
    public var size: Int {
        512 + record.path.count + record.host.count + record.method.count + record.requestID.count
    }

    // MARK: As a collector is told

    /// By the conventions of OpenTelemetry for HTTP spans. What was sent on is a `CLIENT` span, since its ID is what the
    /// upstream gets; what the proxy answered by itself is a `SERVER` span.
    public var traceSpan: TraceSpan {
        let method = String(decoding: record.method, as: UTF8.self)
        let isKnown = Self.methods.contains(method)
        let start = record.startedAt.sinceEpoch
        var span = TraceSpan(
            mark, isKnown ? method : "HTTP", origin == nil ? .server : .client, start: start,
            end: Self.time(start, record.duration))
        span.attributes.append(.init("http.request.method", .text(isKnown ? method : "_OTHER")))
        if !isKnown, !method.isEmpty { span.attributes.append(.init("http.request.method_original", .text(method))) }
        addDestination(to: &span)
        if status > 0 { span.attributes.append(.init("http.response.status_code", .number(Int64(status)))) }
        let version = isHTTP2 ? "2" : origin == nil && isHTTP10 ? "1.0" : "1.1"
        span.attributes.append(.init("network.protocol.version", .text(version)))
        addOwn(to: &span)
        if let error = errorType(span.kind) {
            span.attributes.append(.init("error.type", .text(error)))
            span.isError = true
        }
        addEvents(to: &span)
        return span
    }

    /// Those whose names make no number of names: RFC 9110, section 9.3, and RFC 5789.
    private static let methods: Set<String> = [
        "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
    ]

    private func addDestination(to span: inout TraceSpan) {
        let path = String(decoding: record.path, as: UTF8.self)
        if let origin {
            let whole = String(decoding: pathPrefix, as: UTF8.self) + path
            let scheme = origin.scheme.rawValue
            span.attributes.append(.init("url.full", .text("\(scheme)://\(origin.authority)\(whole)")))
            span.attributes.append(.init("url.scheme", .text(scheme)))
            span.attributes.append(.init("url.path", .text(whole)))
            span.attributes.append(.init("server.address", .text(Self.bare(origin.host))))
            span.attributes.append(.init("server.port", .number(Int64(origin.port))))
            return
        }
        let isConnect = record.method.elementsEqual("CONNECT".utf8)
        if !isConnect {
            span.attributes.append(.init("url.scheme", .text("http")))
            if !path.isEmpty { span.attributes.append(.init("url.path", .text(path))) }
        }
        // What was asked for is anybody's text.
        guard let authority = try? Authority(parsing: record.host.span) else { return }
        span.attributes.append(.init("server.address", .text(Self.bare(authority.host.description))))
        if let port = authority.port ?? (isConnect ? nil : 80) {
            span.attributes.append(.init("server.port", .number(Int64(port))))
        }
    }

    /// An IPv6 address has brackets in URLs only.
    private static func bare(_ host: String) -> String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }

    private func addOwn(to span: inout TraceSpan) {
        if let client = record.client { span.attributes.append(.init("heimdallr.client", .text(client))) }
        if let upstream = record.upstream { span.attributes.append(.init("heimdallr.upstream", .text(upstream))) }
        if let reason = record.reason { span.attributes.append(.init("heimdallr.reason", .text(reason))) }
        if let isReused = record.isReused {
            span.attributes.append(.init("heimdallr.connection_reused", .flag(isReused)))
        }
        if record.wasReplayed { span.attributes.append(.init("heimdallr.replayed", .flag(true))) }
    }

    /// The client's own mistakes are no errors of a server. Who leaves within an answer may have had enough of it.
    private func errorType(_ kind: TraceSpan.Kind) -> String? {
        guard status > 0 else { return record.errorClass ?? "client_left" }
        // What became of an answer whose head was good.
        if record.status == 0, status < 400 { return record.errorClass }
        guard status >= (kind == .client ? 400 : 500) else { return nil }
        return record.errorClass ?? String(status)
    }

    private func addEvents(to span: inout TraceSpan) {
        func add(_ name: String, at offset: Duration?, took: Duration?) {
            guard let took else { return }
            let time = Self.time(span.start, min(offset ?? record.duration, record.duration))
            let seconds = Double(took.wholeNanoseconds) / 1e9
            span.events.append(.init(name, time: time, [.init("heimdallr.duration", .seconds(seconds))]))
        }
        add("token_wait", at: tokenCame, took: record.tokenWait)
        add("connect", at: connected, took: record.connect)
        add("first_byte", at: answered, took: record.firstByte)
        // A wait for another token may have come behind a first connection.
        span.events.sort { $0.time < $1.time }
    }

    private static func time(_ start: UInt64, _ offset: Duration) -> UInt64 {
        start &+ UInt64(max(0, offset.wholeNanoseconds))
    }
}

extension WallTime {
    /// Nanoseconds since 1970; of a time before that, none.
    public var sinceEpoch: UInt64 {
        seconds < 0 ? 0 : UInt64(seconds) &* 1_000_000_000 &+ UInt64(max(0, nanoseconds))
    }
}
