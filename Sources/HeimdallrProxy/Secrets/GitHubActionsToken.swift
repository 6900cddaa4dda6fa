import Configuration
import Cryptography
import HTTPMessage
import Heimdallr
import WireText

/// The ID token of a job of GitHub Actions with `permissions: id-token: write`, made anew for each use.
struct GitHubActionsToken: Sendable {
    let audience: String
    let server: RemoteServer
    var environment: @Sendable (String) -> String? = { ProcessEnvironment.value(of: $0) }

    func secret() async throws(SecretProviderError) -> Secret {
        guard let text = environment(RemoteSecret.githubURL), let token = environment(RemoteSecret.githubToken),
            !token.isEmpty, let url = try? WebURL(text)
        else {
            throw server.fault(
                "\(RemoteSecret.githubURL) and \(RemoteSecret.githubToken) are not set: give the job "
                    + "`permissions: id-token: write`")
        }
        let separator = url.query == nil ? "?" : "&"
        let answer = try await server.answer(
            "\(text)\(separator)audience=\(PercentEncoding.uri.encode(audience))",
            [
                .init(name: "Authorization", secret: Secret("bearer \(token)")),
                .init(name: "Accept", value: "application/json"),
            ])
        guard answer.status == 200 else {
            throw server.fault("the request for an ID token was answered \(answer.status)")
        }
        guard let value = answer.content.member(["value"]) else { throw server.fault("the answer has no text `value`") }
        return value
    }
}

extension Secret {
    /// The text of a member of nested objects of this JSON document; `nil` if it is absent, empty or no text.
    func member(_ path: [String]) -> Secret? {
        withSpan { bytes in
            guard let members = try? JSONParser.members(bytes), let member = members[path[0]] else { return nil }
            guard path.count == 1 else {
                guard case .other(let range) = member.value else { return nil }
                return Secret(bytes.extracting(range)).member(Array(path.dropFirst()))
            }
            guard let text = member.secretBytes(in: bytes), text.count > 0 else { return nil }
            return text.withSpan { Secret($0) }
        }
    }
}
