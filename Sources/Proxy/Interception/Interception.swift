public import Configuration
public import Cryptography
import HTTPMessage
import Synchronization
import TLSServer

/// The certificates of the hosts whose TLS inside CONNECT is opened. Any thread.
public final class Interception: Sendable {
    public let certificates: IssuedCertificates
    /// By listener and host, made on first use.
    private let contexts = Mutex<[String: TLSServerContext]>([:])

    public init(_ certificates: IssuedCertificates) { self.certificates = certificates }

    /// - Returns: `nil` for a host without a certificate, and without memory.
    func context(for host: Authority.Host, listener: Int) -> TLSServerContext? {
        let name = host.inCertificates
        guard let leaf = certificates.leaves[name] else { return nil }
        let key = "\(listener) \(name)"
        return contexts.withLock { contexts in
            if let context = contexts[key] { return context }
            // A session is resumed only under the same authority, by the same listener.
            let session = certificates.roots.flatMap { $0 } + Array(key.utf8)
            let context = try? TLSServerContext(
                certificates: leaf.chain, key: leaf.key, session: session, servesHTTP2: true)
            contexts[key] = context
            return context
        }
    }
}

extension Configuration {
    /// Hosts whose TLS inside CONNECT is opened, as certificates name them.
    public var interceptedHosts: Set<String> {
        Set(upstreams.filter(\.intercepts).map(\.host.host.inCertificates))
    }
}

extension Authority.Host {
    /// Without the brackets of IPv6.
    fileprivate var inCertificates: String {
        let text = description
        return text.hasPrefix("[") ? String(text.dropFirst().dropLast()) : text
    }
}
