/// Group in which requests are counted: an upstream, or requests without one.
enum TrafficName: Equatable {
    case upstream
    case unmatched
    case none
    case tunnels

    /// - Parameter name: label of the metrics.
    init(_ name: String) {
        switch name {
        case "(unmatched)": self = .unmatched
        case "(none)": self = .none
        case "(tunnels)": self = .tunnels
        default: self = .upstream
        }
    }

    /// Begins a line; empty for an upstream, which has a name.
    var inWords: String {
        switch self {
        case .upstream: ""
        case .unmatched: "hosts that no upstream names, forwarded without a token"
        case .none: "requests for no upstream"
        case .tunnels: "tunnels (CONNECT), without a token"
        }
    }
}
