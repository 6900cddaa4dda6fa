/// What requests are counted for: an upstream, or one of the groups that have none.
enum TrafficName: Equatable {
    case upstream
    case unmatched
    case none
    case tunnels

    /// - Parameter name: as metrics have it.
    init(_ name: String) {
        switch name {
        case "(unmatched)": self = .unmatched
        case "(none)": self = .none
        case "(tunnels)": self = .tunnels
        default: self = .upstream
        }
    }

    /// To stand at the beginning of a line; empty for an upstream, which has a name.
    var inWords: String {
        switch self {
        case .upstream: ""
        case .unmatched: "hosts that no upstream names, forwarded without a token"
        case .none: "requests that no upstream is for"
        case .tunnels: "tunnels (CONNECT), without a token"
        }
    }
}
