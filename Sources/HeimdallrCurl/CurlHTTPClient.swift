import CurlTransport
import HTTPMessage
import Heimdallr
import WireText

/// Sends requests with libcurl, on an event loop. Never follows redirects, and always checks certificates. Uses the
/// environment's proxies only if the settings say so. Safe on any thread. The first client removes `SSLKEYLOGFILE` from
/// the environment, because libcurl would write TLS keys to that file.
public final class CurlHTTPClient: HeimdallrHTTPClient {
    /// Names of the removed environment variables, which would make libcurl write secrets to files. The first access
    /// or the first client removes them. No thread may read the environment at that time: see unsetenv(3).
    public static var removedEnvironmentVariables: [String] { LibcurlGlobal.removedVariables }

    private let client: BufferedClient
    private let failed: @Sendable (TransportError) -> Void

    /// Makes a client for a program that has an event loop.
    /// - Parameters:
    ///   - client: has the event loop for libcurl and the settings of its connections.
    ///   - failed: called with libcurl's message when a connection or an exchange fails, for a log.
    package init(_ client: BufferedClient, failed: @escaping @Sendable (TransportError) -> Void = { _ in }) {
        self.client = client
        self.failed = failed
    }

    /// Makes a client with a separate event loop and thread.
    /// - Parameter settings: certificates, proxy, and time limit to connect.
    /// - Throws: an error with the reason, if the kernel provides no thread or file descriptor.
    public convenience init(settings: CurlHTTPClientSettings = CurlHTTPClientSettings()) throws {
        _ = Self.removedEnvironmentVariables
        self.init(try BufferedClient(options: settings.options))
    }

    public func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse {
        guard let url = try? WebURL(request.url, allowing: .fragment) else { throw HeimdallrHTTPClientError.other }
        var exchange = BufferedClient.Request(origin: Origin(url.scheme, url.authority))
        exchange.method = request.method
        exchange.target = url.target
        for field in request.headers {
            if let secret = field.secret {
                exchange.secretFields.append((field.name, secret))
            } else {
                exchange.fields.append((field.name, field.value))
            }
        }
        exchange.decodesAnswer = true
        exchange.body = request.content.isEmpty ? nil : request.content
        if request.content.isEmpty, request.method == "POST" { exchange.fields.append(("Content-Length", "0")) }
        exchange.timeout = request.timeout
        exchange.maxBodyBytes = request.maxBodyBytes
        do throws(BufferedClient.Failure) {
            let answer = try await client.send(exchange) { Secret($0) }
            return HeimdallrHTTPResponse(
                status: answer.status,
                headers: answer.fields.map { HeimdallrHTTPField(name: $0.name, value: $0.value) },
                content: answer.body)
        } catch {
            if case .transport(let error) = error { failed(error) }
            throw HeimdallrHTTPClientError(error)
        }
    }
}

extension Secret: LentBytes {}

extension HeimdallrHTTPClientError {
    fileprivate init(_ failure: BufferedClient.Failure) {
        switch failure {
        case .timeout: self = .timeout
        case .bodyTooLarge: self = .bodyTooLarge
        case .invalidRequest: self = .other
        case .transport(let error): self.init(error)
        }
    }

    package init(_ error: TransportError) {
        switch error.kind {
        case .nameNotResolved, .nameTimedOut: self = .dns
        case .shortage(let shortage): self = .shortage(fault: shortage.fault, remedy: shortage.remedy)
        case .connectionTimedOut, .connectionLimit, .withheld: self = .timeout
        case .tlsHandshake, .tlsCertificate, .tlsConfiguration: self = .tls(error.message)
        case .proxy: self = .nextProxy(error.nextProxyStatus)
        case .connectionRefused, .connectionFailed, .loop, .addressDenied: self = .connect
        case .connectionLost, .responseTruncated: self = .cut
        case .http2Only(let isSecure): self = .http2Only(isSecure: isSecure)
        case .responseMalformed, .aborted, .http2Missing, .internal: self = .other
        }
    }
}
