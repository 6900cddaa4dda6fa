import CLibcurl
import Glibc
public import Reactor

/// Makes one connection as a pool with these options would, says what was seen on the way, and closes it. Nothing is sent
/// on it. For tools that explain what is wrong: it blocks, and is for any thread but a loop's.
public struct ConnectionProbe: Sendable {
    /// What was seen.
    public struct Facts: Sendable {
        /// Why there is no connection; `nil`: it stood.
        public var failure: TransportError?
        /// Since the beginning; `nil`: TCP did not come about, or TLS failed on it.
        public var connectedAfter: Duration?
        /// The same for TLS.
        public var securedAfter: Duration?
        /// `TLSv1.3`
        public var version: String?
        /// What the server showed, PEM, its own certificate first; at most eight. Not verified where `failure` says so.
        public var certificates: [UInt8] = []
        /// Of X509_STORE_CTX_get_error(3); `nil`: no certificate was looked at.
        public var verification: Verification?
        /// The server asked for a certificate of ours.
        public var asksForCertificate = false
    }

    /// What OpenSSL says of the server's certificates; a host name that is not theirs does not count here.
    public enum Verification: Sendable, Equatable {
        case good, expired, notYetValid, selfSigned, unknownAuthority
        /// In OpenSSL's words.
        case other(String)

        init(_ code: Int32) {
            switch code {
            case X509_V_OK: self = .good
            case X509_V_ERR_CERT_HAS_EXPIRED: self = .expired
            case X509_V_ERR_CERT_NOT_YET_VALID: self = .notYetValid
            case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: self = .selfSigned
            case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
                X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
                self = .unknownAuthority
            default: self = .other(unsafe String(cString: X509_verify_cert_error_string(Int(code))))
            }
        }
    }

    /// Somebody whose addresses are needed.
    public struct Party: Sendable, Hashable {
        /// Canonical, IPv6 in brackets.
        public var host: String
        public var port: UInt16

        public init(host: String, port: UInt16) {
            self.host = host
            self.port = port
        }
    }

    private let options: PoolOptions
    private let origin: Origin
    private let proxyURL: String?
    /// The proxy in between; `nil`: the origin itself is dialled.
    public let proxy: Party?
    /// Whether this side looks the origin's name up, or only the proxy does.
    public let looksUpOrigin: Bool

    /// - Throws: `TransportError` where the next proxy's URL is malformed.
    public init(_ options: PoolOptions, to origin: Origin) throws(TransportError) {
        self.options = options
        self.origin = origin
        switch options.nextProxy {
        case .none: proxyURL = nil
        case .environment: proxyURL = NextHop.proxy(for: origin, NextHop.variable)
        case .url(let url): proxyURL = url
        }
        guard let proxyURL else {
            proxy = nil
            looksUpOrigin = true
            return
        }
        let address = try NextProxyAddress(proxyURL)
        proxy = Party(host: address.host, port: address.port)
        looksUpOrigin = address.wantsAddresses
    }

    /// Whom a connection is made to.
    public var first: Party { proxy ?? Party(host: origin.host, port: origin.port) }

    /// - Parameters:
    ///   - reaching: `false`: only TCP, to the next proxy where there is one, and nothing is asked of it.
    ///   - names: the addresses that stand for each.
    ///   - limit: for all of it.
    public func run(
        reaching: Bool = true, names: [Party: [NumericAddress]], within limit: Duration
    ) -> Facts {
        var facts = Facts()
        do throws(TransportError) {
            try run(reaching, names, limit, &facts)
        } catch {
            facts.failure = error
        }
        return facts
    }

    private func run(
        _ reaching: Bool, _ names: [Party: [NumericAddress]], _ limit: Duration, _ facts: inout Facts
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
        try set.setConnection(options, options.material?.current, hasProxy: proxyURL != nil)
        try unsafe set.set(CURLOPT_ERRORBUFFER, pointer: UnsafeMutableRawPointer(words), "CURLOPT_ERRORBUFFER")
        try check(unsafe heimdallr_easy_set_witness(easy.pointer, witness), "CURLOPT_SSL_CTX_FUNCTION")
        try set.set(CURLOPT_CONNECT_ONLY, 1, "CURLOPT_CONNECT_ONLY")
        try set.set(CURLOPT_HTTP_VERSION, heimdallr_http_1_1, "CURLOPT_HTTP_VERSION")
        try set.set(CURLOPT_TIMEOUT_MS, max(1, limit.wholeMilliseconds), "CURLOPT_TIMEOUT_MS")
        try set.set(CURLOPT_CONNECTTIMEOUT_MS, max(1, limit.wholeMilliseconds), "CURLOPT_CONNECTTIMEOUT_MS")
        try set.set(CURLOPT_NOPROXY, "", "CURLOPT_NOPROXY")
        if reaching {
            try set.set(CURLOPT_URL, origin.url, "CURLOPT_URL")
            try set.set(CURLOPT_PROXY, proxyURL ?? "", "CURLOPT_PROXY")
            if let line = origin.connectTo { unsafe connectTo = curl_slist_append(nil, line) }
            try check(
                unsafe heimdallr_easy_set_list(easy.pointer, CURLOPT_CONNECT_TO, connectTo), "CURLOPT_CONNECT_TO")
        } else {
            // A plain connection, whatever is spoken on it later.
            try set.set(CURLOPT_URL, "http://\(first.host):\(first.port)/", "CURLOPT_URL")
            try set.set(CURLOPT_PROXY, "", "CURLOPT_PROXY")
        }
        for (party, addresses) in names where !addresses.isEmpty && NumericAddress(party.host) == nil {
            let line = NameRound.line(
                NameRound.Party(host: party.host, port: party.port, isDialled: true), addresses)
            unsafe list = curl_slist_append(list, line)
        }
        try check(unsafe heimdallr_easy_set_list(easy.pointer, CURLOPT_RESOLVE, list), "CURLOPT_RESOLVE")
        let code = unsafe curl_easy_perform(easy.pointer)
        facts.connectedAfter = Self.time(easy, CURLINFO_CONNECT_TIME_T)
        facts.securedAfter = Self.time(easy, CURLINFO_APPCONNECT_TIME_T)
        facts.asksForCertificate = unsafe witness.pointee.asks != 0
        if let chain = unsafe witness.pointee.chain {
            facts.certificates = unsafe Array(UnsafeRawBufferPointer(start: chain, count: witness.pointee.size))
            facts.verification = Verification(unsafe witness.pointee.fault)
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

    /// By TLS 1.3 a server that does not like our certificate, or the lack of one, says so behind the handshake.
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
