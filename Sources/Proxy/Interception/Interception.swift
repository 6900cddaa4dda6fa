public import Configuration
public import Cryptography
import HTTPMessage
import Synchronization
import TLSServer
public import WireText

/// Certificates for the hosts whose TLS inside CONNECT is intercepted. Any thread.
public final class Interception: Sendable {
    /// Certificates of exact hosts. The key that signed them no longer exists.
    public let certificates: IssuedCertificates
    /// Intermediate authority that signs for hosts of domains; `nil` without intercepted domains.
    public let intermediate: SigningIntermediate?
    /// Contexts of exact hosts, by listener and host, made on first use.
    private let contexts = Mutex<[String: TLSServerContext]>([:])
    private let signing: SigningQueue?

    public init(_ certificates: IssuedCertificates, intermediate: SigningIntermediate? = nil) {
        self.certificates = certificates
        self.intermediate = intermediate
        signing = intermediate.map { SigningQueue($0) }
    }

    /// Root certificates that programs have to trust, as DER.
    public var roots: [[UInt8]] { certificates.roots + [intermediate?.root].compactMap(\.self) }

    /// Root certificates as PEM; empty if each intercepted upstream has a certificate in the configuration.
    public var rootsPEM: String { certificates.rootsPEM + (intermediate?.rootPEM ?? "") }

    /// - Parameter host: host that the routes intercept.
    func choice(for host: Authority.Host, listener: Int) -> ContextChoice {
        let name = host.bare
        if let leaf = certificates.leaves[name] { return ContextChoice(context(leaf, name, listener)) }
        guard let signing, let intermediate, intermediate.domains.covers(name) else { return .refuse }
        return signing.choice(for: name, listener: listener)
    }

    /// - Returns: `nil` if memory is lacking.
    private func context(_ leaf: ServerCertificate, _ name: String, _ listener: Int) -> TLSServerContext? {
        let key = "\(listener) \(name)"
        return contexts.withLock { contexts in
            if let context = contexts[key] { return context }
            let context = try? TLSServerContext(leaf, below: certificates.roots, key)
            contexts[key] = context
            return context
        }
    }
}

extension TLSServerContext {
    /// Makes a context. Its TLS sessions resume only under the same roots, and for the same listener and host: `use`
    /// names these two.
    convenience init(
        _ certificate: ServerCertificate, below roots: [[UInt8]], _ use: String
    ) throws(CryptographyError) {
        try self.init(
            certificates: certificate.chain, key: certificate.key,
            session: roots.flatMap { $0 } + Array(use.utf8))
    }
}

/// The names for which the proxy makes certificates.
public struct InterceptedNames: Sendable, Equatable {
    /// Exact hosts outside of the domains, as certificates name them. Their certificates are made at start.
    public var hosts: Set<String> = []
    /// Domains. Certificates of their hosts are signed on first use.
    public var domains = DomainSet([])

    public var isEmpty: Bool { hosts.isEmpty && domains.isEmpty }
}

extension Configuration {
    /// Whether TLS inside CONNECT is intercepted for any host.
    public var opensTLS: Bool { upstreams.contains(where: \.intercepts) }

    public var interceptedNames: InterceptedNames {
        let patterns = upstreams.filter { $0.intercepts && $0.serverCertificate == nil }.map(\.host)
        guard !patterns.isEmpty else { return InterceptedNames() }
        let (wildcards, exact) = (patterns.filter(\.wildcard), patterns.filter { !$0.wildcard })
        let domains = DomainSet((interception?.permit ?? []) + wildcards.map(\.host.bare))
        return InterceptedNames(
            hosts: Set(exact.map(\.host.bare).filter { !domains.covers($0) }), domains: domains)
    }
}
