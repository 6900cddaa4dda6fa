import CLibcurl
import Glibc
import HTTPMessage
import Reactor
import WireText

/// An easy handle of libcurl for one connection to an origin, with the memory that the handle refers to
/// (libcurl-easy(3)). Loop's thread only.
@safe public class EasyHandle {
    public final let origin: Origin
    final let hop: NextHop
    final let options: PoolOptions
    /// The TLS material at the time of dialling.
    final let tlsContent: TLSMaterial.Content?
    /// Files of trust anchors that libcurl reads while it dials.
    private final var anchorFiles: [MemoryFile] = []
    final let easy: OpaquePointerBox
    /// Scope of the connection; `nil` for a handle that is run without a loop.
    final let scope: CurlScope?
    final var isRunning = false
    /// The steps before libcurl's; `nil` once the connection is there.
    final var approach: Approach?
    final var verdict = AddressPolicy.Verdict.allowed
    /// errno(3) of the last socket that a shortage kept from opening; 0 if there is none. libcurl does not know it.
    private final var openFailure: Int32 = 0
    /// The next proxy's answers so far.
    final var dialogue = NextProxyDialogue()
    /// libcurl's message for the last error; `nil` when no message is needed any more.
    final var errorText: UnsafeMutablePointer<CChar>?
    private final var connectTo: UnsafeMutablePointer<curl_slist>?
    /// Lines for CURLOPT_RESOLVE(3) and CURLOPT_PROXYHEADER(3).
    private final var dialLines = unsafe (
        addresses: UnsafeMutablePointer<curl_slist>?.none, proxyFields: UnsafeMutablePointer<curl_slist>?.none
    )

    /// - Throws: `TransportError` when libcurl lacks memory.
    init(_ options: PoolOptions, to origin: Origin, by hop: NextHop, on scope: CurlScope?) throws(TransportError) {
        guard let handle = unsafe curl_easy_init() else {
            throw TransportError(.internal, message: "curl_easy_init: out of memory")
        }
        self.options = options
        self.origin = origin
        self.hop = hop
        self.scope = scope
        tlsContent = options.material?.current
        unsafe easy = OpaquePointerBox(handle)
        let text = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe text.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        unsafe errorText = text
    }

    deinit {
        stop()
        unsafe curl_easy_cleanup(easy.pointer)
        unsafe errorText?.deallocate()
        unsafe curl_slist_free_all(connectTo)
        unsafe curl_slist_free_all(dialLines.addresses)
        unsafe curl_slist_free_all(dialLines.proxyFields)
    }

    final var engine: CurlEngine? { scope?.engine }

    /// Returns the handle from the context of a callback, or from CURLOPT_PRIVATE(3).
    static func from(_ pointer: UnsafeMutableRawPointer?) -> Self? {
        unsafe pointer.map { unsafe Unmanaged<Self>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Called when libcurl's work is done.
    func ended(_ code: CURLcode) {}

    // MARK: Set-up

    /// Sets the options that all connections have in common.
    final func setUp() throws(TransportError) {
        try unsafe set(CURLOPT_ERRORBUFFER, pointer: errorText)
        try set(CURLOPT_URL, origin.url)
        if let line = origin.connectTo { unsafe connectTo = curl_slist_append(nil, line) }
        try unsafe set(CURLOPT_CONNECT_TO, list: connectTo)
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        try set(CURLOPT_NOSIGNAL, 1)
        // libcurl should look up no name. If it does, removing the handle must not wait for the resolver's thread
        // (CURLOPT_QUICK_EXIT(3)).
        try set(CURLOPT_QUICK_EXIT, 1)
        // The addresses must last until the end of the dial, because libcurl uses the upstream's address only after it
        // has connected to a SOCKS proxy. libcurl counts whole seconds, so one second is added.
        try set(CURLOPT_DNS_CACHE_TIMEOUT, Int(options.connectTimeout.components.seconds) + 1)
        try set(CURLOPT_HTTP_VERSION, heimdallr_http_1_1)
        // The product's name on requests of its own, CONNECT among them, without which firewalls answer 403. A field of
        // the request replaces it, and requests of programs are not libcurl's.
        try set(CURLOPT_USERAGENT, Product.userAgent)
        try set(CURLOPT_PROXY, hop.proxy)
        try set(CURLOPT_NOPROXY, "")
        try setLogin()
        try setSecurity()
        if let engine { try setCallbacks(engine) }
    }

    /// Lets libcurl itself speak HTTP/2, as the options say.
    final func setVersion() throws(TransportError) {
        switch options.http2 {
        case .never: break
        case .offered: try set(CURLOPT_HTTP_VERSION, heimdallr_http_2_tls)
        case .known: try set(CURLOPT_HTTP_VERSION, heimdallr_http_2_known)
        }
    }

    /// Makes libcurl only connect, by CONNECT if a next proxy has to tunnel. The handle's user then reads and writes.
    final func setConnectOnly() throws(TransportError) {
        try set(CURLOPT_CONNECT_ONLY, 1)
        if hop.address != nil, !hop.needsAbsoluteForm { try set(CURLOPT_HTTPPROXYTUNNEL, 1) }
    }

    /// Receives a line of a head, of a next proxy's answer to CONNECT at first. Returns whether libcurl may continue.
    func head(_ line: Span<UInt8>) -> Bool { dialogue.isOver || dialogue.takes(line) }

    private final func setSecurity() throws(TransportError) {
        try set(CURLOPT_SSL_VERIFYPEER, 1)
        try set(CURLOPT_SSL_VERIFYHOST, 2)
        try set(CURLOPT_SSLVERSION, heimdallr_tls_1_2)
        if origin.scheme == .https || hop.isSecure { try setAnchors() }
        if let file = options.certificateFile {
            try set(CURLOPT_SSLCERT, tlsContent?.certificate?.path ?? file)
            try set(CURLOPT_SSLKEY, tlsContent?.key?.path ?? options.keyFile)
        }
    }

    /// Sets files whose paths change with their content: libcurl caches parsed anchors and TLS sessions by path. libcurl
    /// caches anchors only if no directory is set.
    private final func setAnchors() throws(TransportError) {
        let system = SystemAuthorities.shared.current
        if let system {
            anchorFiles.append(system)
            // A next proxy is trusted by the system's authorities.
            if hop.isSecure {
                try set(CURLOPT_PROXY_CAINFO, system.path)
                try set(CURLOPT_PROXY_CAPATH, nil)
            }
        }
        switch options.trustAnchors {
        case .system:
            guard let system else { return }
            try set(CURLOPT_CAINFO, system.path)
            try set(CURLOPT_CAPATH, nil)
        case .systemAnd(let file):
            let whole = system.flatMap { tlsContent?.anchors(with: $0) ?? AnchorCopies.file(joining: [$0.path, file]) }
            try set(CURLOPT_CAINFO, whole?.path ?? tlsContent?.anchors?.path ?? file)
            try set(CURLOPT_CAPATH, whole == nil ? SystemTrust.current.directory : nil)
            if let whole { anchorFiles.append(whole) }
        case .only(let file):
            let copy = tlsContent?.anchors ?? AnchorCopies.file(joining: [file])
            try set(CURLOPT_CAINFO, copy?.path ?? file)
            try set(CURLOPT_CAPATH, nil)
            if let copy { anchorFiles.append(copy) }
        }
    }

    // MARK: Dialling

    /// Looks up the names of the connection, chooses among their addresses, and lets libcurl begin.
    /// - Parameter failed: called at most once, possibly before this returns.
    final func dial(before deadline: LoopTime, failed: @escaping (TransportError) -> Void) {
        guard let scope, let engine else { return }
        let approach = Approach(origin, by: hop, options, deadline: deadline, on: engine.loop)
        self.approach = approach
        approach.start { [unowned self, unowned approach] result in
            if approach.foundOwn { verdict = .own }
            do throws(TransportError) {
                try set(addresses: result.get())
                try set(proxyAuthorization: approach.authorization)
                if approach.hasRaced { try setOpened() }
                let left = deadline.since(max(engine.loop.now, .current()))
                try set(CURLOPT_CONNECTTIMEOUT_MS, max(1, left.wholeMilliseconds))
                try scope.begin(self)
            } catch {
                let lacksTicket = hop.negotiation != nil && approach.authorization.isEmpty
                failed(error.kind == .proxy ? proxyError(error, lacksTicket: lacksTicket) : error)
            }
        }
    }

    /// Ends the engine's work, and closes the connection. Must not be called within a callback of libcurl.
    final func stop() {
        guard isRunning else { return }
        isRunning = false
        scope?.end(self)
    }

    /// - Parameter lines: addresses of hosts, for CURLOPT_RESOLVE(3).
    final func set(addresses lines: [String]) throws(TransportError) {
        for line in lines {
            guard let longer = unsafe curl_slist_append(dialLines.addresses, line) else {
                throw TransportError(.internal, message: "curl_slist_append: out of memory")
            }
            unsafe dialLines.addresses = longer
        }
        if !lines.isEmpty { try unsafe set(CURLOPT_RESOLVE, list: dialLines.addresses) }
    }

    /// Sets the field for CONNECT, or for the request that the proxy reads.
    final func set(proxyAuthorization value: [UInt8]) throws(TransportError) {
        guard !value.isEmpty else { return }
        let line = "Proxy-Authorization: " + String(decoding: value, as: UTF8.self)
        unsafe dialLines.proxyFields = curl_slist_append(nil, line)
        try unsafe set(CURLOPT_PROXYHEADER, list: dialLines.proxyFields)
        if hop.needsAbsoluteForm { dialogue.token = value }
    }

    final func open(_ address: SocketAddress?, family: Int32) -> curl_socket_t {
        guard let engine, address != nil || options.unixSocket != nil else { return heimdallr_socket_bad }
        guard let address else { return engine.sockets.open(family: family) }
        let connected = approach?.take()
        let verdict = options.addressPolicy.judge(connected?.address ?? address)
        // `own` has precedence over the verdicts on the name's other addresses.
        if self.verdict != .own { self.verdict = verdict }
        guard verdict == .allowed else {
            if let connected { Glibc.close(connected.descriptor) }
            return heimdallr_socket_bad
        }
        if let connected { return engine.sockets.adopt(connected.descriptor) }
        let descriptor = engine.sockets.open(family: family)
        let isOpen = descriptor != heimdallr_socket_bad
        if isOpen || MachineShortage(errno: errno) != nil { openFailure = isOpen ? 0 : errno }
        return descriptor
    }

    // MARK: Results

    final var descriptor: curl_socket_t? {
        var descriptor: curl_socket_t = -1
        let code = unsafe heimdallr_easy_get_socket(easy.pointer, CURLINFO_ACTIVESOCKET, &descriptor)
        return code == CURLE_OK && descriptor >= 0 ? descriptor : nil
    }

    /// Earliest end of a certificate in the origin's chain, in seconds since 1970; 0 if unknown.
    final var certificateEnd: Int64 {
        origin.scheme == .https ? unsafe heimdallr_easy_certificate_end(easy.pointer) : 0
    }

    final func words(for code: CURLcode) -> String {
        guard let text = unsafe errorText, unsafe text.pointee != 0 else {
            return unsafe String(cString: curl_easy_strerror(code))
        }
        let words = unsafe String(cString: text)
        // A server can't dislike a certificate that it did not get. Go's says `bad_certificate` for a missing one.
        let lacksCertificate = options.certificateFile == nil && TransportError.blamesCertificate(words)
        return lacksCertificate ? words + "; no client certificate was sent" : words
    }

    final func error(for code: CURLcode, sawResponse: Bool = false) -> TransportError {
        var systemError = 0
        _ = unsafe heimdallr_easy_get_long(easy.pointer, CURLINFO_OS_ERRNO, &systemError)
        if openFailure != 0 { systemError = Int(openFailure) }
        return TransportError(
            code, message: words(for: code), systemError: systemError, sawResponse: sawResponse, verdict: verdict)
    }

    /// Returns a failure before the request, as the next proxy's if one is at fault. TLS faults in its tunnel have other
    /// kinds than these.
    final func blaming(_ error: TransportError) -> TransportError {
        guard hop.address != nil, error.kind.isOfPeer || error.kind == .aborted || error.kind == .proxy else {
            return error
        }
        return proxyError(error)
    }

    /// Returns a failure before the request as the next proxy's, with the proxy's answer.
    final func proxyError(_ error: TransportError, lacksTicket: Bool = false) -> TransportError {
        hop.noteRefusal(dialogue.status)
        let refusal = NextProxyRefusal(
            hop, status: dialogue.status, challenges: dialogue.challenges, lacksTicket: lacksTicket)
        let words = "\(dialogue.fault ?? error.message); next proxy \(refusal.words)"
        return TransportError(.proxy, message: words, nextProxy: refusal)
    }
}
