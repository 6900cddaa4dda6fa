import HTTPMessage
import HTTPServer

/// Calls `Gate.admit`, which admits or refuses the request by its head and finds its upstream.
enum AdmitPhase {
    static func run(_ context: inout Context) -> Action {
        guard let role = context.role else { return .fail(Problem(.draining)) }
        let (installed, stream) = (context.installed, context.stream)
        let situation = Gate.Situation(
            role: role, listenerScheme: context.grant.tls == nil ? .http : .https,
            hasBytesAfterHead: stream.hasInput(reading: false) == true,
            inside: context.sender.inside, dialled: context.sender.dialled)
        let admission: Admission
        do throws(Problem) {
            admission = try stream.request.with { head, bytes throws(Problem) in
                try installed.gate.admit(head, bytes, situation, &context.admitted)
            }
        } catch {
            context.upstream = context.admitted.rule.flatMap { installed.upstream(for: $0) }
            return .fail(error)
        }
        switch admission {
        case .forward: break
        case .tunnel(let authority): return .openTunnel(authority)
        case .connect(let authority, let tls): return .connect(authority, tls: tls)
        case .reply: return .answerAsLastRecipient
        }
        guard let upstream = context.admitted.rule.flatMap({ installed.upstream(for: $0) }) else {
            return .fail(Problem(.internalError))
        }
        context.upstream = upstream
        context.exchange.forward(context.admitted)
        return .next
    }
}
