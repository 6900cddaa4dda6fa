import Glibc
import HTTPMessage
import Reactor
import WireText

/// The route to an origin: direct, or through a next proxy.
struct NextHop: Equatable {
    /// Value for CURLOPT_PROXY(3); empty for a direct connection.
    private(set) var proxy = ""
    /// Parts of `proxy`; `nil` for a direct connection.
    private(set) var address: NextProxyAddress?
    /// Whether requests need a target in absolute form, because a proxy reads them (RFC 9112, section 3.2.2).
    private(set) var needsAbsoluteForm = false
    /// Value of Proxy-Authorization if the proxy reads requests. For CONNECT, libcurl sends this field itself.
    private(set) var authorization: [UInt8] = []
    /// Whether the connection to the proxy uses TLS.
    private(set) var isSecure = false
    private(set) var login = NextProxyLogin.basic
    /// Whether each connection has its own value in place of `authorization`.
    private(set) var takesToken = false

    static let direct = NextHop()

    /// - Parameters:
    ///   - tunnels: whether a next proxy has to tunnel the bytes instead of reading them.
    ///   - environment: returns the value of an environment variable.
    init(
        _ setting: NextProxy, to origin: Origin, tunnels: Bool,
        environment: (String) -> String? = Self.variable
    ) throws(TransportError) {
        switch setting {
        case .none: return
        case .url(let url, let login): (proxy, self.login) = (url, login)
        case .environment: proxy = Self.proxy(for: origin, environment) ?? ""
        }
        guard !proxy.isEmpty else { return }
        let parts = try NextProxyAddress(proxy)
        address = parts
        isSecure = parts.scheme == "https"
        takesToken = negotiation != nil
        guard parts.scheme == "http" || isSecure, origin.scheme == .http, !tunnels, !login.answersChallenges else {
            return
        }
        needsAbsoluteForm = true
        guard let user = parts.user, login == .basic else { return }
        authorization = Array("Basic ".utf8) + Base64.encode(user + [ASCII.colon] + parts.password).utf8
    }

    private init() {}

    /// Returns the hosts whose addresses a connection needs. The first host is dialled.
    func hosts(to origin: Origin) -> [DialledHost] {
        let target = DialledHost(name: origin.host, port: origin.port, isDialled: address == nil, isProxy: false)
        guard let address else { return [target] }
        let first = DialledHost(name: address.host, port: address.port, isDialled: true, isProxy: true)
        return address.wantsAddresses ? [first, target] : [first]
    }

    /// The identity that makes a token for each connection, and the host of its service; `nil` for other methods.
    var negotiation: (identity: KerberosIdentity, host: String)? {
        guard case .negotiate(let identity) = login, let address else { return nil }
        return (identity, address.host)
    }

    /// Notes the proxy's answer in place of a tunnel or of the origin's answer.
    func noteRefusal(_ status: Int?) {
        if status == 407, let negotiation { NegotiateTokens.of(negotiation.identity).refused() }
    }

    static func variable(_ name: String) -> String? { unsafe getenv(name).map { unsafe String(cString: $0) } }

    // MARK: The environment, as libcurl reads it (libcurl-env(3))

    static func proxy(for origin: Origin, _ environment: (String) -> String?) -> String? {
        let exceptions = environment("no_proxy") ?? environment("NO_PROXY") ?? ""
        if isExempt(origin.host, exceptions) { return nil }
        // HTTP_PROXY is ignored, because CGI servers set it from the request field Proxy.
        let names = origin.scheme == .https ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]
        return (names + ["all_proxy", "ALL_PROXY"]).compactMap(environment).first { !$0.isEmpty }
    }

    /// Whether a list of names, addresses and blocks covers `host`. A name covers its subdomains, and `*` any host.
    static func isExempt(_ host: String, _ list: String) -> Bool {
        if list == "*" { return true }
        let bare = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        let address = SocketAddress(numericHost: bare, port: 0).flatMap { NumericAddress($0) }
        let name = lowered(bare)
        for token in list.split(whereSeparator: { $0 == "," || $0 == " " || $0 == "\t" }) {
            if let address {
                if AddressBlock(String(token))?.contains(address) == true { return true }
                continue
            }
            var wanted = lowered(String(token))
            if wanted.hasPrefix(".") { wanted.removeFirst() }
            if !wanted.isEmpty, name == wanted || name.hasSuffix("." + wanted) { return true }
        }
        return false
    }

    /// Returns the name in lower case, without a final dot.
    private static func lowered(_ name: String) -> String {
        var name = name.lowercased()
        if name.hasSuffix(".") { name.removeLast() }
        return name
    }
}
