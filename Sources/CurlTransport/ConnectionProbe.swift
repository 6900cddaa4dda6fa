import CLibcurl
import Glibc
public import Reactor

/// Makes one connection as a pool with these options would, reports the facts, and closes it. Sends nothing on it. For tools
/// that explain faults. Blocks: not for the thread of a loop.
public struct ConnectionProbe: Sendable {
    /// The facts about one connection.
    public struct Facts: Sendable {
        /// Why no connection was made.
        public var failure: TransportError?
        /// Time until TCP was connected; `nil`: TCP failed, or TLS on it.
        public var connectedAfter: Duration?
        /// Time until the TLS handshake had ended.
        public var securedAfter: Duration?
        /// `TLSv1.3`
        public var version: String?
        /// The server's chain in PEM, its own certificate first; at most eight. Verified only without a `failure`.
        public var certificates: [UInt8] = []
        /// Whether the server asked for a client certificate.
        public var asksForCertificate = false
    }

    /// A host with a port.
    public struct Host: Sendable, Hashable {
        /// Canonical, IPv6 in brackets.
        public let name: String
        public let port: UInt16
    }

    /// The addresses of each host.
    public typealias Names = [Host: [NumericAddress]]

    private let options: PoolOptions
    private let origin: Origin
    private let hop: NextHop
    /// The next proxy; `nil`: the origin itself is dialled.
    public let proxy: Host?
    /// The hosts whose addresses are needed. The first one is dialled.
    public let hosts: [Host]

    /// - Throws: `TransportError` where the next proxy's URL is malformed.
    public init(_ options: PoolOptions, to origin: Origin) throws(TransportError) {
        self.options = options
        self.origin = origin
        hop = try NextHop(options.nextProxy, to: origin, tunnels: false)
        let target = Host(name: origin.host, port: origin.port)
        guard !hop.proxy.isEmpty else {
            (proxy, hosts) = (nil, [target])
            return
        }
        let address = try NextProxyAddress(hop.proxy)
        let next = Host(name: address.host, port: address.port)
        (proxy, hosts) = (next, address.wantsAddresses ? [next, target] : [next])
    }

    /// - Parameters:
    ///   - reaching: `false`: only TCP to the first host, without a request to a next proxy.
    ///   - limit: upper bound for all of it.
    public func run(reaching: Bool, names: Names, within limit: Duration) -> Facts {
        var facts = Facts()
        do throws(TransportError) { try run(reaching, names, limit, &facts) } catch { facts.failure = error }
        return facts
    }

    private func run(
        _ reaching: Bool, _ names: Names, _ limit: Duration, _ facts: inout Facts
    ) throws(TransportError) {
        LibcurlGlobal.initialize()
        guard let handle = unsafe curl_easy_init() else {
            throw TransportError(.internal, message: "curl_easy_init: out of memory")
        }
        let easy = unsafe OpaquePointerBox(handle)
        let witness = UnsafeMutablePointer<heimdallr_tls_witness>.allocate(capacity: 1)
        unsafe witness.initialize(to: heimdallr_tls_witness())
        let words = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe words.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        var list: UnsafeMutablePointer<curl_slist>?
        var connectTo: UnsafeMutablePointer<curl_slist>?
        defer {
            unsafe curl_easy_cleanup(easy.pointer)
            unsafe curl_slist_free_all(list)
            unsafe curl_slist_free_all(connectTo)
            unsafe free(witness.pointee.chain)
            unsafe witness.deallocate()
            unsafe words.deallocate()
        }
        let set = HandleOptions(easy)
        if reaching, let line = origin.connectTo { unsafe connectTo = curl_slist_append(nil, line) }
        let url = reaching ? origin.url : "http://\(hosts[0].name):\(hosts[0].port)/"
        try unsafe set.setDial(
            url, connectTo, reaching ? hop : .direct, options, options.material?.current, errorText: words)
        try check(unsafe heimdallr_easy_set_witness(easy.pointer, witness), "CURLOPT_SSL_CTX_FUNCTION")
        try set.set(CURLOPT_TIMEOUT_MS, max(1, limit.wholeMilliseconds), "CURLOPT_TIMEOUT_MS")
        try set.set(CURLOPT_CONNECTTIMEOUT_MS, max(1, limit.wholeMilliseconds), "CURLOPT_CONNECTTIMEOUT_MS")
        var lines: [String] = []
        for (host, addresses) in names where !addresses.isEmpty && NumericAddress(host.name) == nil {
            lines.append(NameLookUp.line(host.name, host.port, addresses))
        }
        try unsafe set.set(addresses: lines, &list)
        let code = unsafe curl_easy_perform(easy.pointer)
        facts.connectedAfter = Self.time(easy, CURLINFO_CONNECT_TIME_T)
        facts.securedAfter = Self.time(easy, CURLINFO_APPCONNECT_TIME_T)
        facts.asksForCertificate = unsafe witness.pointee.asks != 0
        if let chain = unsafe witness.pointee.chain {
            facts.certificates = unsafe Array(UnsafeRawBufferPointer(start: chain, count: witness.pointee.size))
        }
        guard code == CURLE_OK else { throw unsafe failure(code, easy, words) }
        if let version = unsafe witness.pointee.version {
            facts.version = unsafe String(cString: version)
        }
        if facts.asksForCertificate { try unsafe waitForAlert(easy, words) }
    }

    private func failure(
        _ code: CURLcode, _ easy: OpaquePointerBox, _ words: UnsafeMutablePointer<CChar>
    ) -> TransportError {
        var systemError = 0
        _ = unsafe heimdallr_easy_get_long(easy.pointer, CURLINFO_OS_ERRNO, &systemError)
        let text = unsafe words.pointee == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: words)
        return TransportError(code, message: text, systemError: systemError, sawResponse: false, verdict: .allowed)
    }

    /// In TLS 1.3 a server refuses a client certificate, or the lack of one, after the handshake.
    private func waitForAlert(
        _ easy: OpaquePointerBox, _ words: UnsafeMutablePointer<CChar>
    ) throws(TransportError) {
        var socket = heimdallr_socket_bad
        guard unsafe heimdallr_easy_get_socket(easy.pointer, CURLINFO_ACTIVESOCKET, &socket) == CURLE_OK,
            socket != heimdallr_socket_bad
        else { return }
        let deadline = ContinuousClock.now + .milliseconds(300)
        while true {
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero else { return }
            var interest = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            guard unsafe poll(&interest, 1, Int32(clamping: left.wholeMilliseconds)) > 0 else { return }
            var byte: UInt8 = 0
            var count = 0
            let code = unsafe curl_easy_recv(easy.pointer, &byte, 1, &count)
            // Session tickets.
            if code == CURLE_AGAIN { continue }
            if code != CURLE_OK { throw unsafe failure(code, easy, words) }
            return
        }
    }

    private static func time(_ easy: OpaquePointerBox, _ what: CURLINFO) -> Duration? {
        var microseconds: curl_off_t = 0
        guard unsafe heimdallr_easy_get_offset(easy.pointer, what, &microseconds) == CURLE_OK, microseconds > 0 else {
            return nil
        }
        return .microseconds(Int64(microseconds))
    }
}
