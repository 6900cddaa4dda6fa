import Configuration
import CurlTransport
import HTTPMessage
import Heimdallr
import HeimdallrCurl
import Reactor

/// Reads the secrets that a server beside the proxy hands out. Any thread.
struct RemoteSecretReader: Sendable {
    /// File of the configuration with further trust anchors.
    let trustAnchorsFile: String?
    /// Returns a client of the configuration.
    let client: @Sendable (String) -> Heimdallr?

    /// Shared by all readers; without such a secret no thread is started.
    private static let loop = Result { () throws(SystemError) in try EventLoop.start(name: "secrets") }

    /// Returns the reading of a secret.
    /// - Parameter nested: returns a secret with which the server is asked.
    func reading(
        _ source: RemoteSecret, nested: (SecretSource) -> LiveSecret
    ) -> @Sendable () async throws -> Secret {
        switch source {
        case .vault(let settings):
            let vault = VaultSecret(
                settings: settings, identity: identity(settings.login, nested),
                server: server("Vault", caFile: settings.caFile))
            return { try await vault.secret() }
        case .spiffe(let settings):
            let agent = WorkloadAPI(settings: settings, server: server("the SPIFFE agent", socket: settings.socket))
            return { try await agent.secret() }
        case .githubActions(let audience):
            let job = GitHubActionsToken(audience: audience, server: server("GitHub"))
            return { try await job.secret() }
        }
    }

    private func identity(
        _ login: VaultSettings.Login, _ nested: (SecretSource) -> LiveSecret
    ) -> any SecretProvider {
        switch login {
        case .token(let source), .role(_, _, .secret(let source)): return nested(source)
        case .role(_, _, .client(let name)):
            return SecretClosureProvider { [client] in
                guard let client = client(name) else {
                    throw SecretProviderError("the token of client \(name) is known only to the running proxy")
                }
                do { return try await client.accessToken(waiting: RemoteServer.timeout).value } catch {
                    throw SecretProviderError("client \(name) has no token: \(error)")
                }
            }
        }
    }

    private func server(_ name: String, caFile: String? = nil, socket: String? = nil) -> RemoteServer {
        var tls = TLSSettings()
        tls.caFile = caFile
        var options = PoolOptions(
            connectTimeout: RemoteServer.timeout, maxConnections: 4, tls, anchors: trustAnchorsFile)
        options.unixSocket = socket
        options.http2 = socket == nil ? .offered : .known
        return RemoteServer(name: name) { [options] in
            CurlHTTPClient(BufferedClient(options: options, loop: try Self.loop.get()))
        }
    }
}

/// A server that hands out secrets. Any thread.
struct RemoteServer: Sendable {
    /// In messages.
    let name: String
    let connect: @Sendable () throws -> any HeimdallrHTTPClient

    /// Time limit of one request, and of a wait for a client's token.
    static let timeout = Duration.seconds(10)
    private static let longestAnswer = 256 * 1024

    /// Sends one request. Follows no redirect.
    /// - Throws: `SecretProviderError`.
    func answer(
        _ url: String, _ fields: [HeimdallrHTTPField], method: String = "GET", body: Secret = Secret("")
    ) async throws(SecretProviderError) -> HeimdallrHTTPResponse {
        let request = HeimdallrHTTPRequest(
            method: method, url: url, headers: fields, content: body, timeout: Self.timeout,
            maxBodyBytes: Self.longestAnswer)
        do { return try await connect().send(request) } catch {
            throw fault((error as? HeimdallrHTTPClientError)?.description ?? "\(error)")
        }
    }

    func fault(_ text: String) -> SecretProviderError { SecretProviderError("\(name): \(text)") }
}
