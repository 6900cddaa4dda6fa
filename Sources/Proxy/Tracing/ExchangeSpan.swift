import CurlTransport
import HTTPMessage
import Reactor

/// The span of one request. It is recorded on the loop and converted off the loop.
struct ExchangeSpan: Sendable {
    private let context: SpanContext
    private let record: RequestRecord

    /// Limits in bytes. Longer values are cut, because spans wait in memory.
    private static let longestPath = 1024
    private static let longestHost = 256
    private static let longestMethod = 64

    init(_ context: SpanContext, _ record: RequestRecord) {
        self.context = context
        var record = record
        record.path = Self.cut(record.path, Self.longestPath)
        record.host = Self.cut(record.host, Self.longestHost)
        record.method = Self.cut(record.method, Self.longestMethod)
        self.record = record
    }

    private static func cut(_ bytes: [UInt8], _ most: Int) -> [UInt8] {
        bytes.count > most ? Array(bytes[..<most]) : bytes
    }

    /// Approximate memory in bytes.
    var size: Int {
        512 + record.path.count + record.host.count + record.method.count + record.requestID.count
    }

    // MARK: The exported span

    /// Follows OpenTelemetry's conventions for HTTP spans. A forwarded request is a `CLIENT` span, because the upstream
    /// receives the span's ID. A request that the proxy answered itself is a `SERVER` span.
    var traceSpan: TraceSpan {
        let method = String(decoding: record.method, as: UTF8.self)
        let isKnown = Self.methods.contains(method)
        let start = record.startedAt.sinceEpoch
        var span = TraceSpan(
            context, isKnown ? method : "HTTP", record.origin == nil ? .server : .client, start: start,
            end: Self.time(start, record.duration))
        span.add("http.request.method", .text(isKnown ? method : "_OTHER"))
        if !isKnown, !method.isEmpty { span.add("http.request.method_original", .text(method)) }
        addDestination(to: &span)
        span.add("http.response.status_code", record.shownStatus > 0 ? .number(Int64(record.shownStatus)) : nil)
        span.add("rpc.grpc.status_code", record.grpcStatus.map { .number(Int64($0)) })
        let version = record.origin == nil ? record.version : record.isHTTP2 ? .http2 : .http11
        span.add("network.protocol.version", .text(version.number))
        addOwn(to: &span)
        if let error = errorType(span.kind) {
            span.add("error.type", .text(error))
            span.isError = true
        }
        addEvents(to: &span)
        return span
    }

    /// Methods that become span names: RFC 9110, section 9.3, and RFC 5789. Unknown methods get one common name.
    private static let methods: Set<String> = [
        "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
    ]

    private func addDestination(to span: inout TraceSpan) {
        let path = String(decoding: record.path, as: UTF8.self)
        if let origin = record.origin {
            let whole = String(decoding: record.pathPrefix, as: UTF8.self) + path
            let scheme = origin.scheme.rawValue
            span.add("url.full", .text("\(scheme)://\(origin.authority)\(whole)"))
            span.add("url.scheme", .text(scheme))
            span.add("url.path", .text(whole))
            return span.addServer(origin.host, origin.port)
        }
        let isConnect = record.method.elementsEqual("CONNECT".utf8)
        if !isConnect {
            span.add("url.scheme", .text("http"))
            if !path.isEmpty { span.add("url.path", .text(path)) }
        }
        // The host of a request that was not forwarded may be any text.
        guard let authority = try? Authority(parsing: record.host.span) else { return }
        span.addServer(authority.host.description, authority.port ?? (isConnect ? nil : 80))
    }

    private func addOwn(to span: inout TraceSpan) {
        span.add("heimdallr.client", record.client.map { .text($0) })
        span.add("heimdallr.upstream", record.upstream.map { .text($0) })
        span.add("heimdallr.reason", record.reason.map { .text($0) })
        span.add("heimdallr.connection_reused", record.isReused.map { .flag($0) })
        span.add("heimdallr.replayed", record.wasReplayed ? .flag(true) : nil)
    }

    /// Returns the error; `nil` for success, a 4xx of a `SERVER` span, and a program that leaves during a good answer.
    private func errorType(_ kind: TraceSpan.Kind) -> String? {
        guard record.shownStatus > 0 else { return record.errorClass ?? "client_left" }
        if let status = record.grpcStatus, record.shownStatus == 200 {
            return status == 0 ? nil : record.errorClass ?? String(status)
        }
        // The answer was cut after its head. `errorClass` is `nil` if the program is the cause.
        if record.status == 0, record.shownStatus < 400 { return record.errorClass }
        guard record.shownStatus >= (kind == .client ? 400 : 500) else { return nil }
        return record.errorClass ?? String(record.shownStatus)
    }

    private func addEvents(to span: inout TraceSpan) {
        func add(_ name: String, at offset: Duration?, took: Duration?) {
            guard let took else { return }
            let time = Self.time(span.start, min(offset ?? record.duration, record.duration))
            let seconds = Double(took.wholeNanoseconds) / 1e9
            span.events.append(
                .init(name: name, time: time, attributes: [.init("heimdallr.duration", .seconds(seconds))]))
        }
        add("token_wait", at: record.tokenCame, took: record.tokenWait)
        add("connect", at: record.connected, took: record.connect)
        add("first_byte", at: record.answered, took: record.firstByte)
        // A second wait for a token may come after the first connection.
        span.events.sort { $0.time < $1.time }
    }

    private static func time(_ start: UInt64, _ offset: Duration) -> UInt64 {
        start &+ UInt64(max(0, offset.wholeNanoseconds))
    }
}

extension WallTime {
    /// Nanoseconds since 1970; 0 for an earlier time.
    var sinceEpoch: UInt64 {
        seconds < 0 ? 0 : UInt64(seconds) &* 1_000_000_000 &+ UInt64(max(0, nanoseconds))
    }
}
