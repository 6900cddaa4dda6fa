import Configuration
import CurlTransport
import FileSystem
import HTTPMessage
import Heimdallr
import SigV4
import WireText

/// AWS credentials from the endpoint that ECS and EKS Pod Identity offer to containers.
/// <https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html>
struct ContainerCredentials: Sendable {
    private let origin: Origin
    private let target: String
    private let authorization: (any SecretProvider)?
    private let client: BufferedClient

    init(
        _ settings: SigV4Settings.Container, authorization: (any SecretProvider)?, client: BufferedClient
    ) {
        origin = Origin(settings.url.scheme, settings.url.authority)
        target = settings.url.target
        self.authorization = authorization
        self.client = client
    }

    /// Seconds from the next fetch to the credentials' expiry. If at most twice as many are left, the next fetch comes
    /// after half of the time left.
    private static let margin = 300
    /// Longest time between two fetches, in seconds.
    private static let maxPause = 3600
    /// Time limit for one request, from connecting to the last byte.
    private static let timeout = Duration.seconds(5)

    /// Fetches the credentials.
    /// - Throws: `SecretProviderError`
    func read() async throws -> FreshValue<SigningKeys>.Reading {
        var request = BufferedClient.Request(origin: origin)
        request.target = target
        request.fields = [("Accept", "application/json")]
        request.timeout = Self.timeout
        request.maxBodyBytes = 64 * 1024
        request.decodesAnswer = true
        if let authorization {
            let token = try await authorization.secret()
            if let fault = InjectedValue.fieldValue(token.revealedBytes) {
                throw SecretProviderError(
                    "the authorization token of the container credentials can't be sent: \(fault)")
            }
            request.secretFields = [("Authorization", LentSecret(secret: token))]
        }
        let answer: BufferedClient.Answer<Secret>
        do throws(BufferedClient.Failure) {
            answer = try await client.send(request) { Secret($0) }
        } catch {
            throw SecretProviderError("the container credentials' endpoint does not answer")
        }
        guard answer.status == 200 else {
            throw SecretProviderError("the container credentials' endpoint answered \(answer.status)")
        }
        return try Self.reading(answer.body, now: RequestSigner.now())
    }

    /// Limits in bytes of access key ID and session token. Each request carries both.
    private static let longestID = 128
    private static let longestToken = 8192

    /// Parses the endpoint's answer. `now` is in seconds since 1970.
    static func reading(_ body: Secret, now: Int) throws -> FreshValue<SigningKeys>.Reading {
        guard let json = try? body.withSpan({ try JSONParser.parse($0) }) else {
            throw SecretProviderError("the container credentials' endpoint sent an answer that is not JSON")
        }
        guard let id = json["AccessKeyId"]?.string, let secret = json["SecretAccessKey"]?.string, !id.isEmpty,
            !secret.isEmpty, ASCII.isToken(id), id.utf8.count <= Self.longestID
        else {
            throw SecretProviderError("the container credentials lack a valid AccessKeyId and SecretAccessKey")
        }
        let token = json["Token"]?.string ?? ""
        guard token.utf8.count <= Self.longestToken, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw SecretProviderError("the container credentials' Token is too long or not visible ASCII")
        }
        let keys = SigningKeys(
            accessKeyID: Array(id.utf8), secret: Array(secret.utf8).span, token: Array(token.utf8).span)
        let expiration = json["Expiration"] ?? .null
        guard expiration != .null else { return .init(keys, again: .seconds(Self.maxPause)) }
        guard let end = expiration.string.flatMap({ RFC3339.seconds($0) }) else {
            throw SecretProviderError("the container credentials' Expiration is not a time as in RFC 3339")
        }
        let left = end - now
        guard left > 0 else { throw SecretProviderError("the container credentials have expired already") }
        let again = left > 2 * Self.margin ? left - Self.margin : left / 2
        return .init(
            keys, ends: ContinuousClock.now + .seconds(left), again: .seconds(max(1, min(again, Self.maxPause))))
    }
}

private struct LentSecret: LentBytes {
    let secret: Secret

    var count: Int { secret.count }

    func withSpan<Result>(_ body: (Span<UInt8>) throws -> Result) rethrows -> Result { try secret.withSpan(body) }
}
