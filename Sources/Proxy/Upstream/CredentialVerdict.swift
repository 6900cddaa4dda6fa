import Reactor
import Reports

/// What an upstream's answer says of the credential that the proxy put on the request.
enum CredentialVerdict {
    /// Nothing: there was no credential, or an error may have come before its check.
    case none
    case accepted
    /// 401, or what counts like it.
    case unauthorized
    /// 403, or what counts like it: the credential is known, and not allowed to do this.
    case forbidden

    /// - Parameters:
    ///   - status: of the upstream's answer.
    ///   - call: status of a gRPC call; `nil` for other requests, and for a call without one.
    init(status: Int, call: GRPCStatus?) {
        self =
            switch (status, call) {
            case (401, _), (200, .unauthenticated?): .unauthorized
            case (403, _), (200, .permissionDenied?): .forbidden
            case (200, let call?): call.code == 0 ? .accepted : .none
            case (101, nil), (200..<400, nil): .accepted
            default: .none
            }
    }
}

/// The last verdicts on the credential of one upstream on one loop.
struct CredentialRecord {
    private(set) var refusals: UInt64 = 0
    private var last: (status: Int, at: LoopTime)?
    private var acceptedAt: LoopTime?

    @inline(__always) mutating func accepted(at now: LoopTime) {
        refusals = 0
        acceptedAt = now
    }

    mutating func refused(_ status: Int, at now: LoopTime) {
        refusals &+= 1
        last = (status, now)
    }

    /// `nil`: no answer has said anything yet.
    func report(at now: LoopTime) -> CredentialRefusals? {
        guard last != nil || acceptedAt != nil else { return nil }
        var report = CredentialRefusals()
        report.inARow = refusals
        report.last = last.map { ($0.status, now.since($0.at)) }
        report.sinceAccepted = acceptedAt.map { now.since($0) }
        return report
    }
}
