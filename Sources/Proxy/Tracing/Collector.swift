import Heimdallr
import Reactor

/// Sends batches of spans to a collector by OTLP/HTTP. Follows no redirects.
package struct Collector: Sendable {
    struct Answer: Sendable {
        var outcome: ExportRetry.Outcome
        /// Number of rejected spans of the batch.
        var rejected = 0
        /// Description of the fault for the log, printable and without secrets.
        var reason = ""
    }

    let endpoint: String
    private let headers: [(name: String, secret: LiveSecret)]
    private let client: any HeimdallrHTTPClient

    /// Time limit for one batch, from connecting to the answer's last byte.
    private static let timeout = Duration.seconds(10)
    /// Limit of an answer in bytes. An answer has only a number and a sentence.
    private static let longestAnswer = 64 * 1024

    package init(
        endpoint: String, headers: [(name: String, secret: LiveSecret)], client: any HeimdallrHTTPClient
    ) {
        self.endpoint = endpoint
        self.headers = headers
        self.client = client
    }

    func send(_ body: [UInt8]) async -> Answer {
        var fields = [HeimdallrHTTPField(name: "Content-Type", value: "application/x-protobuf")]
        var shown: [Secret] = []
        do {
            for (name, secret) in headers {
                let value = try await secret.secret()
                shown.append(value)
                fields.append(HeimdallrHTTPField(name: name, secret: value))
            }
        } catch {
            let reason = (error as? SecretProviderError)?.description ?? "a secret of `headers` is unavailable"
            return Answer(outcome: .unreachable, reason: reason)
        }
        let request = HeimdallrHTTPRequest(
            method: "POST", url: endpoint, headers: fields, body: body, timeout: Self.timeout,
            maxBodyBytes: Self.longestAnswer)
        do {
            return Self.read(try await client.send(request), hiding: shown)
        } catch {
            let failure = error as? HeimdallrHTTPClientError ?? .other
            return Answer(
                outcome: failure == .bodyTooLarge ? .unusable : .unreachable, reason: failure.description)
        }
    }

    private static func read(_ response: HeimdallrHTTPResponse, hiding secrets: [Secret]) -> Answer {
        let wait = RetryAfter.duration(in: response, wallClock: Int64(WallTime.now.seconds))
        var answer = Answer(outcome: .answered(status: response.status, retryAfter: wait))
        guard (200..<300).contains(response.status) else {
            answer.reason = "the collector answered \(response.status)"
            return answer
        }
        // The status says that the batch was accepted, even if the body is unreadable.
        guard let told = TracesAnswer(response.body) else { return answer }
        answer.rejected = Int(clamping: max(0, told.rejected))
        answer.reason = ServerText.sanitize(told.message, hiding: secrets)
        return answer
    }
}
