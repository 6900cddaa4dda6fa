import CLibcurl
import Dispatch
import Glibc
import HTTPMessage
public import Reactor
import Synchronization

/// Makes one connection as a pool with the same options would, reports the facts, and closes the connection without a
/// request to the origin. For tools that explain faults. Blocks: must not be used on a loop.
public struct ConnectionProbe: Sendable {
    public struct Facts: Sendable {
        public var failure: TransportError?
        /// Time until TCP was connected. `nil` if TCP failed, and if TLS failed: libcurl then reports no time.
        public var connectedAfter: Duration?
        /// Time until the end of the TLS handshake; `nil` without one.
        public var securedAfter: Duration?
        /// TLS version, such as `TLSv1.3`.
        public var version: String?
        /// The server's chain in PEM, its own certificate first; at most eight. Possibly unverified after a `failure`.
        public var certificates: [UInt8] = []
        public var asksForCertificate = false
    }

    public typealias Names = [DialledHost: [NumericAddress]]

    private let options: PoolOptions
    private let origin: Origin
    private let hop: NextHop
    /// The next proxy; `nil` if the origin itself is dialled.
    public var proxy: DialledHost? { hosts.first(where: \.isProxy) }
    /// The hosts whose addresses are needed. The first host is dialled.
    public let hosts: [DialledHost]

    /// - Throws: `TransportError` if the next proxy's URL is malformed.
    public init(_ options: PoolOptions, to origin: Origin) throws(TransportError) {
        self.options = options
        self.origin = origin
        hop = try NextHop(options.nextProxy, to: origin, tunnels: false)
        hosts = hop.hosts(to: origin)
    }

    /// Looks the names up, and judges their addresses, as a connection of the pool does.
    /// - Parameter limit: time limit of all look-ups.
    public func names(within limit: Duration, on loop: EventLoop) async throws(TransportError) -> Names {
        try await withCheckedContinuation { (continuation: CheckedContinuation<Result<Names, TransportError>, Never>) in
            loop.execute { [hosts, options] in
                let lookUp = NameLookUp(hosts, options, deadline: .current() + limit, on: loop)
                lookUp.start { result in
                    withExtendedLifetime(lookUp) {}
                    continuation.resume(
                        returning: result.map { found in
                            Dictionary(uniqueKeysWithValues: found.map { ($0, $1.compactMap { NumericAddress($0) }) })
                        })
                }
            }
        }.get()
    }

    /// - Parameters:
    ///   - reaching: `false` connects by TCP to the first host only, without a request to a next proxy.
    ///   - limit: time limit of the whole probe.
    public func run(reaching: Bool, names: Names, within limit: Duration) -> Facts {
        var facts = Facts()
        do throws(TransportError) { try run(reaching, names, limit, &facts) } catch { facts.failure = error }
        return facts
    }

    private func run(_ reaching: Bool, _ names: Names, _ limit: Duration, _ facts: inout Facts) throws(TransportError) {
        LibcurlGlobal.initialize()
        let witness = UnsafeMutablePointer<heimdallr_tls_witness>.allocate(capacity: 1)
        unsafe witness.initialize(to: heimdallr_tls_witness())
        defer {
            unsafe free(witness.pointee.chain)
            unsafe witness.deallocate()
        }
        let first = Origin(scheme: .http, host: hosts[0].name, port: hosts[0].port)
        let handle = try EasyHandle(options, to: reaching ? origin : first, by: reaching ? hop : .direct, on: nil)
        try handle.setUp()
        try handle.setVersion()
        try handle.setConnectOnly()
        try handle.check(unsafe heimdallr_easy_set_witness(handle.easy.pointer, witness), CURLOPT_SSL_CTX_FUNCTION)
        try handle.set(CURLOPT_TIMEOUT_MS, max(1, limit.wholeMilliseconds))
        try handle.set(CURLOPT_CONNECTTIMEOUT_MS, max(1, limit.wholeMilliseconds))
        let found = names.filter { host, addresses in !addresses.isEmpty && NumericAddress(host.name) == nil }
        try handle.set(addresses: found.map { NameLookUp.line($0.key, $0.value) })
        if reaching, let (identity, host) = hop.negotiation {
            do throws(TransportError) {
                let made = try token(of: identity, for: host, within: limit)
                try handle.set(proxyAuthorization: Approach.field(made))
            } catch { throw handle.proxyError(error, lacksTicket: true) }
        }
        let code = unsafe curl_easy_perform(handle.easy.pointer)
        facts.connectedAfter = Self.time(handle, CURLINFO_CONNECT_TIME_T)
        facts.securedAfter = Self.time(handle, CURLINFO_APPCONNECT_TIME_T)
        facts.asksForCertificate = unsafe witness.pointee.asks != 0
        if let chain = unsafe witness.pointee.chain {
            facts.certificates = unsafe Array(UnsafeRawBufferPointer(start: chain, count: witness.pointee.size))
        }
        guard code == CURLE_OK else {
            let error = handle.error(for: code)
            throw [nil, 200].contains(handle.dialogue.status) ? error : handle.proxyError(error)
        }
        facts.version = unsafe witness.pointee.version.map { unsafe String(cString: $0) }
        if facts.asksForCertificate { try waitForAlert(handle) }
    }

    private func token(
        of identity: KerberosIdentity, for host: String, within limit: Duration
    ) throws(TransportError) -> [UInt8] {
        let done = DispatchSemaphore(value: 0)
        let answer = TokenAnswer()
        NegotiateTokens.of(identity).ask(for: host, before: .current() + limit) {
            answer.set($0)
            done.signal()
        }
        _ = done.wait(timeout: .now() + .milliseconds(Int(limit.wholeMilliseconds)))
        guard let answer = answer.get() else { throw PendingToken.late(host) }
        return try answer.get()
    }

    /// Waits up to 300 ms for an alert, and throws it. A TLS 1.3 server refuses a client certificate, or its absence,
    /// only after the handshake.
    private func waitForAlert(_ handle: EasyHandle) throws(TransportError) {
        guard let socket = handle.descriptor else { return }
        let deadline = ContinuousClock.now + .milliseconds(300)
        while true {
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero else { return }
            var interest = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            guard unsafe poll(&interest, 1, Int32(clamping: left.wholeMilliseconds)) > 0 else { return }
            var byte: UInt8 = 0
            var count = 0
            let code = unsafe curl_easy_recv(handle.easy.pointer, &byte, 1, &count)
            // libcurl read only session tickets.
            if code == CURLE_AGAIN { continue }
            if code != CURLE_OK { throw handle.error(for: code) }
            return
        }
    }

    private static func time(_ handle: EasyHandle, _ what: CURLINFO) -> Duration? {
        var microseconds: curl_off_t = 0
        let code = unsafe heimdallr_easy_get_offset(handle.easy.pointer, what, &microseconds)
        return code == CURLE_OK && microseconds > 0 ? .microseconds(Int64(microseconds)) : nil
    }
}

private final class TokenAnswer: Sendable {
    private let value = Mutex<NegotiateTokens.Answer?>(nil)
    func set(_ answer: NegotiateTokens.Answer) { value.withLock { $0 = answer } }
    func get() -> NegotiateTokens.Answer? { value.withLock { $0 } }
}
