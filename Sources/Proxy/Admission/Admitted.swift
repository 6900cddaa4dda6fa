import Configuration
import HTTPMessage

enum TargetForm: Equatable {
    /// Path and query. If the path is empty, `/` has to be written in front.
    case path(ByteRange)
    case asterisk
}

/// Result of admission so far, also for the log of a refused request.
struct Admitted {
    var caller = Caller()
    /// Rules of the request's upstream; `nil` without an upstream, and before it is chosen.
    var rule: UpstreamRule?
    var destination: Destination?
    /// Address that the program used for the API.
    var named: ProgramAddress?
    var target = TargetForm.path(.empty)
    var maxForwards: UInt64?
    /// Protocols of the Upgrade field that the upstream is offered.
    var upgrade: UpgradeList?
    /// Whether this is the connection's last request: the program wants an upgrade, or a reload ended the interception.
    var isLast = false
    /// Whether the connection nevertheless stays if the upstream ignores the offer of an upgrade.
    var staysIfIgnored = false
    var credential = Credential.none
    /// Client of the placeholder in the answer to a token request; `nil` for other requests.
    var issued: String?
    /// Whether the program got a token (`metadata`).
    var exported = false

    enum Credential: Equatable {
        /// No credential is injected: the upstream has no entries, the method is TRACE, or the placeholder is missing.
        case none
        /// These entries of `inject` are put on the request.
        case put(EntrySet)
        /// The program's own credential stays.
        case kept
    }

    @inline(__always) var entries: EntrySet { if case .put(let entries) = credential { entries } else { [] } }

    /// Rewriting of the upstream's addresses for the program; `nil` if the upstream does not rewrite.
    var addressMap: AddressMap? {
        guard let rule, rule.settings.rewrite, let named, let destination else { return nil }
        return rule.map(named, destination)
    }
}

/// Next step for a request that was not refused.
enum Admission: Equatable {
    case forward
    case tunnel(Authority)
    /// CONNECT to a host of `upstreams`, or to an address that may be such a host's. The proxy serves HTTP inside it.
    case connect(Authority, tls: TLSInside)
    /// The proxy answers, because Max-Forwards is 0.
    case reply
}

/// Handling of TLS inside CONNECT.
enum TLSInside: Equatable {
    case refused
    case tunnelled
    /// The proxy ends the TLS and serves its requests.
    case intercepted
}
