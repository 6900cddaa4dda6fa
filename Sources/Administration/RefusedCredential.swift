import Reports
import WireText

/// A credential that an API keeps refusing, told the same by status, page, log and doctor.
public struct RefusedCredential: Sendable {
    /// Index of the rule in the configuration's `upstreams`.
    let rule: Int
    let refusals: CredentialRefusals
    let client: String?
    /// Kinds and names of the rule's injected values.
    let injection: String

    var sentence: String {
        let ago = refusals.last.map { ", the last \(StatusPage.words($0.ago)) ago" } ?? ""
        return "upstreams[\(rule)]: the API refuses \(Self.words(client)): \(refusals.last?.status ?? 401), "
            + "\(refusals.inARow) times in a row\(ago)"
    }

    var advice: String {
        Self.advice(status: refusals.last?.status ?? 401, client: client, injection: injection)
    }

    var json: JSON {
        .object([
            .init("rule", .string("upstreams[\(rule)]")), .init("message", .string(sentence)),
            .init("advice", .string(Sentence.plain(advice))),
            .init("status", refusals.last.map { .number($0.status) } ?? .null),
            .init("in_a_row", .number(Int(clamping: refusals.inARow))),
            .init("seconds_ago", JSON(refusals.last?.ago)),
        ])
    }

    private static func words(_ client: String?) -> String {
        client.map { "the token of client \($0)" } ?? "the key under inject"
    }

    /// - Parameter injection: `UpstreamSettings.injectionText`.
    public static func advice(status: Int, client: String?, injection: String) -> String {
        // AWS answers 403 to a wrong signature, too.
        if client == nil, injection.contains("AWS4-HMAC-SHA256") {
            return "check the access key, its secret and session token, `region` and `service`, this machine's clock, "
                + "and the key's rights"
        }
        if status == 403 {
            let what = client.map { "the scope of client \($0), and its rights" } ?? "the rights of this key"
            return "check \(what) at the API, and that the requests are those that it may send"
        }
        return client == nil
            ? "check the secret under the upstream's `inject`, and the field that the API reads; "
                + "`heimdallr-proxy doctor --try-keys` sends a HEAD with it"
            : "compare this client's audience, resource and scope with the API's requirements, and `inject` with the "
                + "field that the API reads"
    }
}

extension StatusPage {
    func refusedCredentials(of upstream: UpstreamTraffic) -> [RefusedCredential] {
        upstream.lastingRefusals.map { rule, refusals in
            RefusedCredential(
                rule: rule, refusals: refusals, client: upstream.client,
                injection: injections(of: upstream).joined(separator: "; "))
        }
    }
}
