import Configuration
import Heimdallr
import Synchronization
import WireText

/// A field of a secret in Vault or OpenBao. Logs in by a role if it is to, and uses that token until its end. Any
/// thread.
final class VaultSecret: Sendable {
    private let settings: VaultSettings
    /// Vault's token, or the JWT of a login.
    private let identity: any SecretProvider
    private let server: RemoteServer
    private let login = Mutex<(token: Secret, end: ContinuousClock.Instant)?>(nil)

    init(settings: VaultSettings, identity: any SecretProvider, server: RemoteServer) {
        self.settings = settings
        self.identity = identity
        self.server = server
    }

    /// - Throws: `SecretProviderError`.
    func secret() async throws -> Secret {
        let url = "\(settings.url)/v1/\(settings.mount)/data/\(settings.path)"
        var answer = try await server.answer(url, try await fields())
        // A login may be revoked before its end. A token of the operator is what it is.
        if answer.status == 403, login.withLock({ $0.take() }) != nil {
            answer = try await server.answer(url, try await fields())
        }
        let place = "\(settings.mount)/\(settings.path)"
        switch answer.status {
        case 200: break
        case 403:
            throw server.fault(
                "the token may not read \(place): grant `read` for \(settings.mount)/data/\(settings.path)")
        case 404: throw server.fault("there is no \(place), or `mount` is no engine of the kind KV, version 2")
        case 503: throw server.fault("it is sealed")
        default: throw server.fault("the request for \(place) was answered \(answer.status)")
        }
        guard let secret = answer.content.member(["data", "data", settings.field]) else {
            throw server.fault("\(place) has no text `\(settings.field)`")
        }
        return secret
    }

    private func fields() async throws -> [HeimdallrHTTPField] {
        // Agents refuse requests without this field, which no page in a browser can send.
        var fields: [HeimdallrHTTPField] = [.init(name: "X-Vault-Request", value: "true")]
        if let namespace = settings.namespace { fields.append(.init(name: "X-Vault-Namespace", value: namespace)) }
        guard case .role(let role, let method, _) = settings.login else {
            return fields + [.init(name: "X-Vault-Token", secret: try await identity.secret())]
        }
        return fields + [.init(name: "X-Vault-Token", secret: try await token(role, method, fields))]
    }

    private func token(_ role: String, _ method: String, _ fields: [HeimdallrHTTPField]) async throws -> Secret {
        if let login = login.withLock({ $0 }), login.end > .now { return login.token }
        let jwt = try await identity.secret()
        let body = jwt.withSpan { jwt in
            Secret(
                JSON.object([
                    .init("role", .string(role)),
                    .init("jwt", .string(String(decoding: [UInt8](copying: jwt), as: UTF8.self))),
                ]).line)
        }
        let answer = try await server.answer(
            "\(settings.url)/v1/auth/\(method)/login",
            fields + [.init(name: "Content-Type", value: "application/json")],
            method: "POST", body: body)
        guard answer.status == 200, let token = answer.content.member(["auth", "client_token"]) else {
            throw server.fault(
                "the login of role \(role) at auth/\(method) was answered \(answer.status): compare `role`, `auth` and the "
                    + "JWT's issuer, audience and claims with the role's bounds")
        }
        login.withLock { $0 = (token, .now + Self.life(answer.content)) }
        return token
    }

    /// Two thirds of the token's life, so that it does not end on the way; for an unknown one, the login is for one use.
    private static func life(_ answer: Secret) -> Duration {
        answer.withSpan { bytes in
            guard case .other(let range)? = (try? JSONParser.members(bytes))??["auth"]?.value,
                case .number(let text)? = (try? JSONParser.members(bytes.extracting(range)))??["lease_duration"]?.value,
                let seconds = Int(text), (0...10_000_000).contains(seconds)
            else { return .zero }
            return .seconds(seconds) * 2 / 3
        }
    }
}
