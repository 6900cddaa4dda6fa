import Configuration
import HTTPMessage

enum TargetForm: Equatable {
    /// Path and query. Needs a `/` in front when empty or beginning with `?`.
    case path(ByteRange)
    case asterisk
}

/// Result of admission so far. The log of a refused request uses it.
struct Admitted {
    var caller = Caller()
    /// Rules of the request's upstream; `nil`: none, or not known yet.
    var rules: UpstreamRules?
    var destination: Destination?
    /// Address that the program used.
    var asked: AskedAddress?
    var target = TargetForm.path(.empty)
    var maxForwards: UInt64?
    /// Protocols of the Upgrade field that may be passed on.
    var upgrade: UpgradeList?
    /// Whether the connection takes no further request: other bytes than HTTP may follow.
    var isLast = false
    var credential = Credential.none

    enum Credential: Equatable {
        /// Nothing is injected: the upstream has no entries, the method is TRACE, or the placeholder is missing.
        case none
        case put(EntrySet)
        /// The program's own credential stays.
        case kept
    }

    @inline(__always) var entries: EntrySet { if case .put(let entries) = credential { entries } else { [] } }

    /// Rewriting of the upstream's addresses for the program; `nil`: none.
    var addressMap: AddressMap? {
        guard let rules, rules.settings.rewrite, let asked, let destination else { return nil }
        return rules.map(asked, destination)
    }
}

/// Next step for a request that was not refused.
enum Admission: Equatable {
    case forward
    case tunnel(Authority)
    /// CONNECT to a listed host, or to an address that may be one's. The client's first bytes decide: HTTP is served.
    case connect(Authority, tls: TLSInside)
    /// Max-Forwards is 0: the proxy answers.
    case reply
}

/// What becomes of TLS inside CONNECT.
enum TLSInside: Equatable {
    case refused
    case tunnelled
    /// Opened, and its requests are served.
    case intercepted
}
