import Foundation

/// A process of the built `heimdallr-proxy`, with a configuration from the test.
///
/// Set `proxy.listen` (and an upstream's `listen`) to `127.0.0.1:0`. The real ports are read from the log.
public final class RunningProxy: Sendable {
    /// A `listening` line of the log.
    public struct Listener: Sendable {
        public var address: String
        public var port: UInt16 { UInt16(address.split(separator: ":").last ?? "") ?? 0 }
    }

    public let directory: TemporaryDirectory
    public let process: ChildProcess
    /// Listeners of `proxy.listen`, then those of the upstreams, in the order of the configuration.
    public let listeners: [Listener]

    /// Token endpoint, if the proxy was made by `init(to:)`.
    public let tokenEndpoint: TokenEndpoint?
    /// Port of the first `proxy.listen`.
    public var port: UInt16 { listeners[0].port }
    /// Port of the first upstream with its own listener, if `proxy.listen` is one address.
    public var upstreamPort: UInt16 { listeners[1].port }
    /// `http://127.0.0.1:PORT`, for `http_proxy`.
    public var url: String { "http://127.0.0.1:\(port)" }
    /// The proxy's standard error so far.
    public var log: String { process.errors }

    /// Starts a proxy with one client, `api`, a token endpoint for it, and the upstream `http://api.test/`.
    /// - Parameters:
    ///   - url: URL of the upstream.
    ///   - client: further lines of the client. `proxy`: of the section. `upstream`: of the upstream.
    ///   - admin: further lines of the section; `nil` for no section.
    ///   - tokenEndpoint: used in place of `TokenEndpoint.plain`.
    ///   - more: further sections.
    public convenience init(
        to url: String, host: String = "api.test", client: String = "", proxy: String = "", upstream lines: String = "",
        admin: String? = nil, tokenEndpoint: TokenEndpoint? = nil, more: String = "", files: [String: String] = [:],
        environment: [String: String?] = [:], listeners: Int = 1, under wrapper: [String] = []
    ) async throws {
        let endpoint = try tokenEndpoint ?? .plain()
        let configuration = ProxyConfiguration(
            tokenEndpoint: endpoint.url, client: client, proxy: proxy, admin: admin,
            upstreams: ProxyConfiguration.upstream(host, url: url, lines), more: more, files: files)
        try await self.init(
            configuration.text, files: configuration.files, environment: environment, listeners: listeners,
            under: wrapper, tokenEndpoint: endpoint)
    }

    /// Starts the same, with `origin` as the upstream.
    /// - Parameter path: appended to the origin's URL.
    public convenience init(
        to origin: RecordingOrigin, path: String = "", host: String = "api.test", client: String = "",
        proxy: String = "", upstream lines: String = "", admin: String? = nil, tokenEndpoint: TokenEndpoint? = nil,
        more: String = "", files: [String: String] = [:], environment: [String: String?] = [:], listeners: Int = 1,
        under wrapper: [String] = []
    ) async throws {
        try await self.init(
            to: origin.url + path, host: host, client: client, proxy: proxy, upstream: lines, admin: admin,
            tokenEndpoint: tokenEndpoint, more: more, files: files, environment: environment, listeners: listeners,
            under: wrapper)
    }

    public convenience init(
        _ configuration: ProxyConfiguration, environment: [String: String?] = [:], listeners: Int = 1,
        under wrapper: [String] = []
    ) async throws {
        try await self.init(
            configuration.text, files: configuration.files, environment: environment, listeners: listeners,
            under: wrapper)
    }

    /// Starts the proxy and waits until all listeners are open.
    /// - Parameters:
    ///   - configuration: YAML. `FOLDER` becomes the folder of `files`.
    ///   - files: further files by name, for secrets and certificates.
    ///   - count: number of `listening` lines to wait for, at least 1.
    ///   - wrapper: a command that starts its arguments, such as `prlimit --nofile=100`.
    /// - Throws: `TestFailure` with the log when the start fails.
    public init(
        _ configuration: String, files: [String: String] = [:], environment: [String: String?] = [:],
        listeners count: Int = 1, under wrapper: [String] = [], tokenEndpoint: TokenEndpoint? = nil
    ) async throws {
        self.tokenEndpoint = tokenEndpoint
        let directory = try TemporaryDirectory()
        self.directory = directory
        for (name, text) in files { try directory.write(text, to: name) }
        let configuration = Evidence.prepared(configuration, files: files, environment: environment)
        let file = try directory.write(configuration.replacing("FOLDER", with: directory.path), to: "config.yaml")
        let process = try ChildProcess(
            wrapper + [try Repository.executable(), "serve", "--config", file],
            environment: environment.merging(["http_proxy": nil, "https_proxy": nil, "no_proxy": nil]) { mine, _ in mine
            },
            directory: directory.path)
        self.process = process
        listeners = try await eventually("the proxy listens", within: .seconds(30)) {
            if process.ending != nil { throw TestFailure(process.transcript) }
            let found = RunningProxy.listeners(in: process.errors)
            return found.count >= count ? found : nil
        }
    }

    deinit {
        process.kill()
        if let trustFolder { try? FileManager.default.removeItem(atPath: trustFolder) }
    }

    /// Folder of the files that make programs trust the proxy, once these files are written.
    public var trustFolder: String? {
        log.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            .first { $0.contains(" info TLS of programs is opened ") }.flatMap { Self.metadata("trust", in: $0) }
    }

    /// Number of token requests that `tokenEndpoint` has received.
    public var tokenRequests: Int { tokenEndpoint?.requests.count ?? 0 }

    /// The admin port and socket, once they are open.
    public func administration() async throws -> (address: String, port: UInt16, socket: String) {
        try await eventually("the administration listens", within: .seconds(30)) {
            if process.ending != nil { throw TestFailure(process.transcript) }
            // The last line may be cut.
            for line in log.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            where line.contains(" info administration ") {
                let address = Self.metadata("address", in: line) ?? ""
                let port = address.split(separator: ":").last.flatMap { UInt16($0) }
                guard let port, let socket = Self.metadata("socket", in: line) else { return nil }
                return (address, port, socket)
            }
            return nil
        }
    }

    /// Sends SIGTERM, and returns how the process ended.
    public func terminate(within limit: Duration = .seconds(30)) async throws -> ChildProcess.Ending {
        process.signal(SIGTERM)
        return try await process.ended(within: limit)
    }

    /// Sends a GET request with an absolute-form target, on a new connection.
    /// - Parameter url: `http://host[:port]/path`.
    public func get(_ url: String, fields: [(String, String)] = []) async throws -> RawResponse {
        try await send("GET", url, fields: fields)
    }

    /// Sends a request with an absolute-form target, on a new connection.
    public func send(
        _ method: String, _ url: String, fields: [(String, String)] = [], body: String? = nil
    ) async throws -> RawResponse {
        let host = url.dropFirst("http://".count).prefix { $0 != "/" && $0 != "?" }
        var head = "\(method) \(url) HTTP/1.1\r\nHost: \(host)\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        if let body { head += "Content-Length: \(body.utf8.count)\r\n" }
        return try await RawClient.exchange(port: port, "\(head)\r\n\(body ?? "")", method: method)
    }

    /// Runs another command of the executable to its end.
    public static func run(
        _ arguments: [String], environment: [String: String?] = [:], directory: String? = nil
    ) async throws -> ChildProcess {
        try await ChildProcess.run(
            [try Repository.executable()] + arguments, environment: environment, directory: directory)
    }

    private static func listeners(in log: String) -> [Listener] {
        // The last line may be cut.
        log.split(separator: "\n", omittingEmptySubsequences: false).dropLast().compactMap { line in
            guard line.contains("listening"), let address = metadata("address", in: line) else { return nil }
            return Listener(address: address)
        }
    }

    private static func metadata(_ name: String, in line: Substring) -> String? {
        for word in line.split(separator: " ") where word.hasPrefix("\(name)=") {
            return String(word.dropFirst(name.count + 1))
        }
        return nil
    }
}
