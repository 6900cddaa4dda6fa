import Configuration
import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor
import TLSServer

/// State of one request, passed from phase to phase. Loop's thread only.
struct Context {
    let shard: ProxyShard
    let stream: any ClientStream
    /// The rules that the request began with.
    private(set) var rules: RuleSet
    /// Role of the client's listener; `nil` after the listener closed, or wants connections of another kind.
    private(set) var role: ListenerRole?
    /// Of the client's listener; `nil` for plain HTTP.
    private(set) var listenerTLS: ListenerTLS?
    var sender: Sender
    var admitted = Admitted()
    var exchange = Exchange()
    var ledger = Ledger(started: LoopTime(nanoseconds: 0))
    var upstream: Upstream?
    /// The OAuth client whose token the request carries: the upstream's, or that of one caller.
    var client: Heimdallr?
    var token: AccessToken?
    /// `nil`: the request is not signed with keys.
    var signing: Signing?
    /// Trace mark of the request; `nil`: no span is recorded.
    var mark: TraceMark?
    var tunnel: Tunnel?

    init(_ stream: any ClientStream, shard: ProxyShard) {
        self.stream = stream
        self.shard = shard
        rules = shard.rules
        let source = stream.source
        let isLogged = (shard.observer.accessLog != nil || shard.observer.audit != nil) && source.peer == nil
        sender = Sender(address: isLogged ? source.address : nil)
        sender.caller.uid = source.peer?.user
        takeRole()
    }

    /// Sets the role and the caller's listener from the rules.
    private mutating func takeRole() {
        let listener = rules.listeners[stream.source.listener]
        (role, listenerTLS) = (listener?.role, listener?.tls)
        sender.caller.listener = if case .forward(let address) = role { address } else { nil }
    }

    /// Begins with the next request.
    mutating func begin() {
        if rules !== shard.rules {
            rules = shard.rules
            let former = listenerTLS
            takeRole()
            // The connection is of another kind than its listener wants now.
            if listenerTLS != former { role = nil }
        }
        if listenerTLS?.clientCAFile != nil, sender.caller.certificate == nil {
            // The connection's TLS is done by now.
            sender.caller.certificate = (stream.source.stream as? TLSServerStream)?.clientCertificate
            if sender.caller.certificate == nil { role = nil }
        }
        admitted = Admitted(caller: sender.caller)
        exchange = Exchange()
        exchange.request = stream.request.with { Exchange.Request($0, $1) }
        ledger = Ledger(started: shard.loop.now)
        mark = nil
        if let sampler = shard.sampler { takeMark(sampler) }
        rules.requestStarted()
    }

    /// Drops the request's secrets, and what belongs to its upstream.
    mutating func settle() {
        token = nil
        signing = nil
        client = nil
        // The next request probably comes from another caller, so the line made of this token is of no use.
        if let upstream, upstream.exchangesCallers { upstream.injected.forgetToken() }
        upstream = nil
        tunnel = nil
        exchange.settle()
    }
}

/// The client behind a connection.
struct Sender {
    /// Address of a TCP client, if something records it; read once for each connection.
    let address: SocketAddress?
    /// Without its user, which each request names.
    var caller = Caller()
    /// The CONNECT whose bytes the requests are; `nil`: they came without one.
    var inside: Inside?
    /// Whether no program sent the CONNECT: the connection began with TLS. Requests follow only inside it.
    var redirected: Redirected?
}

/// TLS without a CONNECT: the kernel redirected the connection, and the ClientHello names the host.
struct Redirected {
    /// The address that the program dialled, where the kernel knows it.
    let destination: SocketAddress?
}

/// The sender of a CONNECT, as text for the log. The connection may have ended by then.
struct Program: Sendable {
    /// User of the proxy, subject of a client certificate, user ID or address without port.
    var caller = ""
    /// `User-Agent` of the CONNECT, printable.
    var name: String?
}

/// A CONNECT that was answered with 200, and is followed by requests. An object, because each request refers to it.
final class Inside: Sendable {
    let authority: Authority
    /// Of the requests inside: `.https` where their TLS is opened.
    let scheme: Scheme
    /// User of the requests inside.
    let credentials: BasicCredentials?
    /// Sender of the CONNECT, for the log of a failed handshake.
    let program: Program
    /// Whether the program sent no CONNECT, and does not know the proxy.
    let isRedirected: Bool

    init(
        authority: Authority, scheme: Scheme, credentials: BasicCredentials?, program: Program = Program(),
        isRedirected: Bool = false
    ) {
        self.authority = authority
        self.scheme = scheme
        self.credentials = credentials
        self.program = program
        self.isRedirected = isRedirected
    }

    /// The same for another host.
    func to(_ authority: Authority) -> Inside {
        Inside(
            authority: authority, scheme: scheme, credentials: credentials, program: program, isRedirected: isRedirected
        )
    }

    /// Whether a request inside may name this authority. If the CONNECT names an address, any name is possible, unless TLS
    /// has shown one host's certificate.
    func admits(_ other: Authority, _ scheme: Scheme) -> Bool {
        let isFree = scheme == .http && authority.host.isAddress
        return scheme == self.scheme && other.port(for: scheme) == authority.port
            && (isFree || other.host == authority.host)
    }
}

extension Exchange.Request {
    init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
        isHead = head.methodKind == .head
        version = head.version
        isIdempotent = head.methodKind.isIdempotent
        expectsContinue = head.expectsContinue
        keepsAlive = head.keepAlive
        framing = head.framing
        isGRPC = GRPCCall.isMade(by: head, bytes)
    }
}
