import HTTPMessage

/// What the upstream is asked for.
enum TargetForm: Equatable {
    /// Path and query; empty or beginning with `?` wants a `/` in front.
    case path(ByteRange)
    case asterisk
}

/// What admission has found out about a request, as far as it got: a refusal is logged with it, too.
struct Admitted {
    /// Whose request it is.
    var caller: Caller
    /// Which rules are for it; `nil`: none, or not known yet.
    var rules: UpstreamRules?
    var destination: Destination?
    /// The address that the program used.
    var asked: AskedAddress?
    var target = TargetForm.path(.empty)
    /// What Max-Forwards says from here on.
    var maxForwards: UInt64?
    /// Protocols that it asks to change to, and that may be passed on.
    var upgrade: UpgradeList?
    /// What stands behind it may be no HTTP: nothing more is read as a request.
    var isLast = false
    /// What is to be done about its credential.
    var credential = Credential.none

    enum Credential: Equatable {
        /// It goes as it is: its upstream injects nothing, it is a TRACE, or it lacks the placeholder.
        case none
        /// These are put on.
        case put(EntrySet)
        /// The program's own stays.
        case kept
    }

    /// What is put on.
    @inline(__always) var entries: EntrySet { if case .put(let entries) = credential { entries } else { [] } }

    init(_ caller: Caller = Caller()) { self.caller = caller }

    /// How the upstream's addresses look to the program; `nil`: as they are.
    var addressMap: AddressMap? {
        guard let rules, let asked, let destination else { return nil }
        return rules.addressMap(asked, destination)
    }
}

/// What happens to a request that was not refused.
enum Admission: Equatable {
    /// To where `Admitted` says.
    case forward
    /// CONNECT.
    case tunnel(Authority)
    /// Max-Forwards has run out: answered here.
    case reply
    /// The secrets of the users have to be read again; then it is asked once more.
    case readUsers(BasicCredentials)
    /// 407; with those credentials, if there were any.
    case refuseUser(BasicCredentials?)
}
