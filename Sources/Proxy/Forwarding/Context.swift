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
    let stream: any ProgramStream
    /// The rules that the request began with.
    private(set) var installed: InstalledPlan
    /// Role of the program's listener. `nil` refuses requests: the listener closed, or the connection lost its grant.
    private(set) var role: ListenerRole?
    let grant: ConnectionGrant
    var sender: Sender
    var admitted = Admitted()
    var exchange = Exchange()
    var ledger = Ledger(started: LoopTime(nanoseconds: 0))
    var upstream: Upstream?
    /// The OAuth client whose token the request carries: the upstream's client, or a client for one caller's own token.
    var oauthClient: Heimdallr?
    var token: AccessToken?
    /// AWS signature of the request; `nil` without `inject: {sigv4: …}`.
    var signing: Signing?
    /// Position of the request in its trace; `nil`: no span is recorded.
    var span: SpanContext?
    var tunnel: Tunnel?

    init(_ connection: ServerConnection, shard: ProxyShard) {
        stream = connection
        self.shard = shard
        installed = shard.installed
        grant = ConnectionGrant(connection, shard)
        let source = connection.source
        let isLogged = (shard.observer.accessLog != nil || shard.observer.audit != nil) && source.peer == nil
        sender = Sender(address: isLogged ? source.address : nil)
        sender.caller.uid = source.peer?.user
        if let programs = shard.enclosedPrograms(at: source.listener) {
            sender.enclosed = programs
            sender.caller.user = programs.user
            sender.dialled = source.originalDestination.flatMap(programs.dialledName)
        }
        takeRole()
    }

    /// Makes the context of another stream on the same connection.
    init(_ stream: any ProgramStream, of connection: Context) {
        self.stream = stream
        shard = connection.shard
        installed = shard.installed
        grant = connection.grant
        sender = connection.sender
        takeRole()
    }

    /// Whether another stream may begin on this connection, under the current rules.
    var admitsStream: Bool { grant.standing(under: shard.installed, inside: sender.inside) == .good }

    /// Sets role and the caller's listener from the rules.
    private mutating func takeRole() {
        role = shard.listener(stream.source.listener, under: installed)?.role
        sender.caller.listener = if case .forward(let address) = role { address } else { nil }
    }

    /// Resets the state for the next request, which begins with the current rules.
    mutating func begin() {
        if installed !== shard.installed {
            installed = shard.installed
            takeRole()
        }
        let standing = grant.standing(under: installed, inside: sender.inside)
        if standing == .over { role = nil }
        if grant.certificate != nil, sender.caller.certificate == nil { sender.caller.certificate = grant.certificate }
        admitted = Admitted(caller: sender.caller)
        admitted.isLast = standing == .ending
        exchange = Exchange(stream.request.with { Exchange.Request($0, $1) })
        ledger = Ledger(started: shard.loop.now)
        span = nil
        if let sampler = shard.sampler { takeSpan(sampler) }
        installed.requestStarted()
    }

    /// Source of the connection's passwords. Made when the first request asks for it.
    var loginSource: LoginSource {
        mutating get {
            if let source = sender.loginSource { return source }
            let source = LoginSource(stream.source, address: sender.address)
            sender.loginSource = source
            return source
        }
    }

    /// Drops the request's secrets, client, upstream, tunnel, deadline and pause.
    mutating func settle() {
        token = nil
        signing = nil
        oauthClient = nil
        // The next request is probably from another caller and can't use the field line made of this token.
        if let upstream, upstream.exchangesCallers { upstream.injected.forgetToken() }
        upstream = nil
        tunnel = nil
        exchange.settle()
    }
}

/// The program behind a connection.
struct Sender {
    /// Address of a TCP program; `nil` if no log records it. Read once for each connection.
    let address: SocketAddress?
    /// The enclosed programs that it belongs to; `nil` for any other program.
    var enclosed: EnclosedPrograms?
    /// The name for whose address an enclosed program has dialled; `nil` if it dialled an address that is no name's.
    var dialled: String?
    /// Caller without its user, because each request names its own user.
    var caller = Caller()
    /// `nil` before the first request that needs it.
    var loginSource: LoginSource?
    /// The CONNECT inside which the requests come; `nil` without a CONNECT.
    var inside: Inside?
    /// Redirected TLS, from the start of the connection until its requests begin; else `nil`.
    var redirected: Redirected?
}

/// TLS without a CONNECT. The kernel redirected the connection, and the ClientHello names the host.
struct Redirected {
    /// The address that the program dialled; `nil` if the kernel does not know it.
    let destination: SocketAddress?
}

/// The sender of a CONNECT, as text for the log. The text remains after the connection ends.
struct Program: Sendable {
    /// User of the proxy, subject of a client certificate, user ID or address without port.
    var caller = ""
    /// `User-Agent` of the CONNECT, printable.
    var name: String?
}

/// A CONNECT with requests inside: sent by the program and answered with 200, or made by the proxy for redirected TLS.
/// A class, because each request refers to it.
final class Inside: Sendable {
    let authority: Authority
    /// Scheme of the requests inside: `.https` if the proxy opens their TLS.
    let scheme: Scheme
    /// Credentials of the CONNECT, which also apply to the requests inside.
    let credentials: BasicCredentials?
    /// Sender of the CONNECT, for the log of a failed handshake.
    let program: Program
    /// Whether the proxy made the CONNECT. The program then does not know of the proxy.
    let isRedirected: Bool
    /// The operator's certificate that the program saw; `nil` for a certificate made by the proxy, and without TLS.
    let certificate: ListenerTLS?

    init(
        authority: Authority, scheme: Scheme, credentials: BasicCredentials?, program: Program = Program(),
        isRedirected: Bool = false, certificate: ListenerTLS? = nil
    ) {
        self.authority = authority
        self.scheme = scheme
        self.credentials = credentials
        self.program = program
        self.isRedirected = isRedirected
        self.certificate = certificate
    }

    /// Returns a copy for the host of the certificate that the program sees.
    func to(_ authority: Authority, _ certificate: ListenerTLS?) -> Inside {
        Inside(
            authority: authority, scheme: scheme, credentials: credentials, program: program,
            isRedirected: isRedirected, certificate: certificate)
    }

    /// Whether a request inside may name this authority. Scheme and port must be those of the CONNECT. If the CONNECT
    /// names an address, requests without TLS may name any host. All other requests must name the host of `authority`,
    /// which for TLS is the host of the certificate that the program saw.
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
        // Over HTTP/2 a refused head, which is not parsed to its end, leaves the connection open.
        keepsAlive = head.keepAlive || head.version == .http2
        framing = head.framing
        isGRPC = GRPCCall.isMade(by: head, bytes)
    }
}
