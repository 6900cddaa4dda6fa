/// The next proxy on the way to a peer.
public enum NextProxy: Sendable, Equatable {
    case none
    /// The process's variables `https_proxy`, `http_proxy` and `no_proxy`, as libcurl reads them (libcurl-env(3)).
    case environment
    case url(String, NextProxyLogin = .basic)
}

/// The one method by which connections authenticate themselves to a next proxy.
public enum NextProxyLogin: Sendable, Hashable {
    /// With the URL's name and password, if it has them (RFC 7617).
    case basic
    /// With the URL's name and password (RFC 7616).
    case digest, ntlm
    /// With a token of Kerberos for each connection (RFC 4559).
    case negotiate(KerberosIdentity)

    /// Spelling in the configuration, and in lower case in challenges.
    public enum Method: String, Sendable, CaseIterable { case basic, digest, negotiate, ntlm }

    public init(_ method: Method, _ identity: KerberosIdentity = KerberosIdentity()) {
        self =
            switch method {
            case .basic: .basic
            case .digest: .digest
            case .ntlm: .ntlm
            case .negotiate: .negotiate(identity)
            }
    }

    public var method: Method {
        switch self {
        case .basic: .basic
        case .digest: .digest
        case .ntlm: .ntlm
        case .negotiate: .negotiate
        }
    }

    /// Whether the proxy's challenge is needed, so that a connection begins with a CONNECT that may be refused.
    public var answersChallenges: Bool { self == .digest || self == .ntlm }
}

/// A principal of Kerberos and the source of its tickets.
public struct KerberosIdentity: Sendable, Hashable {
    /// Path of the file with the principal's keys; `nil`: the tickets that the user of the process has.
    public var keytab: String?
    /// `nil`: the first one in the keytab, or the owner of the tickets.
    public var principal: String?

    public init(keytab: String? = nil, principal: String? = nil) {
        self.keytab = keytab
        self.principal = principal
    }
}
