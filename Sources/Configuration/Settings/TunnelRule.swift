import HTTPMessage

/// A target of CONNECT tunnels.
public enum TunnelRule: Sendable, Hashable, CustomStringConvertible {
    /// `*`: any public address.
    case any
    /// This host and port.
    case authority(Authority)

    /// The rule in the configuration's notation.
    public var description: String {
        switch self {
        case .any: "*"
        case .authority(let authority): authority.description
        }
    }
}
