import HTTPMessage

/// Where a CONNECT tunnel may lead.
public enum TunnelRule: Sendable, Hashable, CustomStringConvertible {
    /// `*`: any public address.
    case any
    /// This host, which has a port.
    case place(Authority)

    /// As the configuration writes it.
    public var description: String {
        switch self {
        case .any: "*"
        case .place(let authority): authority.description
        }
    }
}
