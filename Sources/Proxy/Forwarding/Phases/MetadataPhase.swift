import Configuration
import Cryptography
import HTTPMessage
import HTTPServer
import Heimdallr
import WireText

/// Answers as a platform's metadata service, where the rule is one of `metadata`. Nothing is forwarded. A question for a
/// token passes the phase *token* first, which waits for one.
enum MetadataPhase {
    /// Of this process: AWS's programs fetch it by a method that no page in a browser may send.
    private static let session = (try? RandomBytes.identifier()) ?? ""

    /// - Returns: `.next` for a rule of another kind, and for a question that needs a token.
    static func run(_ context: inout Context) -> Action {
        guard let rule = context.admitted.rule, rule.answersHere, let settings = rule.settings.metadata else {
            return .next
        }
        switch question(settings, rule, context) {
        case .known(var answer):
            answer.marked(as: settings.kind)
            return .answer(answer)
        case .token: return .next
        case .refused(let refusal): return .answer(OwnAnswer(refusal, of: settings.kind))
        }
    }

    /// Returns the answer with the token.
    static func answer(_ settings: MetadataSettings, _ context: inout Context) -> Action {
        guard let rule = context.admitted.rule, case .token(let form) = question(settings, rule, context),
            let format = TokenFormat.named(form)
        else { return .fail(Problem(.internalError)) }
        do throws(ExportFault) {
            guard let token = try context.oauthClient?.exportedTokenNow(margin: .zero) else {
                return .fail(Problem(.noCredential))
            }
            let body = Array(try format.text(token, for: TokenAsked()).utf8)
            var answer = OwnAnswer(body: body)
            answer.marked(as: settings.kind)
            context.admitted.exported = true
            return .answer(answer)
        } catch {
            let refusal = MetadataRefusal(status: 404, code: "not_found", sentence: error.sentence)
            return .answer(OwnAnswer(refusal, of: settings.kind))
        }
    }

    /// Returns a problem in the service's form. Programs repeat a request after 5xx, and show these.
    static func answer(_ problem: Problem, _ kind: MetadataSettings.Kind) -> OwnAnswer {
        let status = problem.status < 500 ? problem.status : kind == .google ? 404 : 400
        return OwnAnswer(
            MetadataRefusal(status: status, code: "no_token", sentence: problem.message), of: kind)
    }

    private static func question(
        _ settings: MetadataSettings, _ rule: UpstreamRule, _ context: borrowing Context
    ) -> MetadataQuestion {
        let request = context.stream.request.with { head, bytes in
            MetadataRequest(head, bytes, context.admitted.target)
        }
        return MetadataQuestion(request, settings, session: session) { text in
            let values = rule.index.map { context.installed.plan.fixed[$0] } ?? []
            return values.last??.current()?.isText(text) ?? false
        }
    }
}

extension MetadataRequest {
    init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ target: TargetForm) {
        var parts: [Substring] = []
        if case .path(let path) = target {
            parts = bytes[path].text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        }
        let path = parts.first.map(String.init) ?? ""
        self.init(
            method: bytes[head.method].text,
            path: path.isEmpty ? "/" : PercentEncoding.uri.decode(path.utf8) ?? path)
        if parts.count > 1 { parameters = FormText.fields(Array(parts[1].utf8)) ?? [:] }
        for field in head.fields {
            fields[bytes[field.name].text.lowercased(), default: []].append(bytes[field.value].text)
        }
    }
}
