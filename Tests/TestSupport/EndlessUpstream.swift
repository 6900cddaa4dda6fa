/// An upstream whose answers never end, in many ways (`Fixtures/endless_upstream.py`).
public final class EndlessUpstream: Sendable {
    /// Ways over HTTP/1.1. Each is the last segment of a request's path.
    public static let plain = [
        "chunks", "body", "close", "trailers", "trailer", "extension", "extensions", "interim", "interims", "fields",
        "field", "reason", "blank", "refused",
    ]
    /// Ways over HTTP/2, each at its own port, in the order of the ports.
    private static let frames = [
        "continuation", "data", "early-ping", "early-priority", "early-window", "empty-data", "interim", "large-data",
        "padding", "ping", "priority", "settings", "trailers", "unknown", "window", "window-of-stream",
    ]

    /// Port for HTTP/1.1, without TLS.
    public let port: UInt16
    private let framePorts: [String]
    private let process: ChildProcess
    /// Kept because the proxy reads its files.
    private let authority: PrivateCA

    public init() async throws {
        authority = try await PrivateCA()
        let certificate = try await authority.server()
        let process = try ChildProcess([
            "/usr/bin/python3", Repository.fixture("endless_upstream.py"), certificate.certificateFile,
            certificate.keyFile,
        ])
        let ports = try await eventually("the upstream says its ports") {
            process.output.hasSuffix("\n")
                ? process.output.split(whereSeparator: \.isWhitespace).map(String.init) : nil
        }
        guard let port = ports.first.flatMap({ UInt16($0) }), ports.count == 1 + Self.frames.count else {
            throw TestFailure("these are not its ports: \(ports)")
        }
        self.process = process
        self.port = port
        framePorts = Array(ports.dropFirst())
    }

    /// URLs for all ways, which the entries of `upstreams` route to this upstream.
    /// - Parameter plain: ways over HTTP/1.1 to include.
    public func urls(plain: [String] = plain) -> [String] {
        plain.map { "http://plain.test/\($0)" } + Self.frames.map { "http://\($0).h2.test/" }
    }

    /// Entries of a configuration's list of upstreams, with the client `api`.
    /// - Parameter indent: number of spaces before each line.
    public func upstreams(indent: Int = 0) -> String {
        let margin = String(repeating: " ", count: indent)
        var text =
            margin + "- {host: plain.test, url: \"http://127.0.0.1:\(port)\", client: api, allow_plaintext: true}\n"
        for (name, port) in zip(Self.frames, framePorts) {
            text += margin + "- {host: \(name).h2.test, url: \"https://localhost:\(port)\", client: api, http2: true, "
            text += "tls: {ca_file: \(authority.certificateFile)}}\n"
        }
        return text
    }

    public func stop() async throws { try await process.stop() }
}
