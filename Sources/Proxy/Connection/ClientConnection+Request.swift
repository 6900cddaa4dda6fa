import Configuration
import CurlTransport
import HTTPMessage
import Heimdallr
import Reactor

/// What the upstream is asked for.
enum TargetForm {
    /// Path and query; empty or beginning with `?` wants a `/` in front.
    case path(ByteRange)
    case asterisk
}

// From the head of a request to the transfer that carries it.
extension ClientConnection {
    /// The head stands in `headBytes`: decides where it goes and starts it, or answers.
    func beginRequest() {
        phase = .exchanging
        exchange.isHead = head.methodKind == .head
        exchange.isHTTP10 = head.version == .http10
        exchange.isIdempotent = head.methodKind.isIdempotent
        exchange.clientKeepsAlive = head.keepAlive
        exchange.expectsContinue = head.expectsContinue
        switch head.framing {
        case .none, .untilClose: exchange.isRequestComplete = true
        case .length(let length):
            exchange.hasBody = length > 0
            exchange.isRequestComplete = length == 0
            if let limit = shard.settings.maxBodyBytes, length > UInt64(limit) { return fail(.bodyTooLarge) }
        case .chunked:
            exchange.hasBody = true
            do throws(MessageError) { try RequestBody.check(input) } catch { return fail(Problem(error)) }
        }
        body.begin(head.framing)
        identify()
    }

    /// It is known who asks: goes on with what is asked for.
    func admitted() {
        if head.methodKind == .connect { return beginTunnel() }
        do throws(Problem) {
            try refuseCircle()
            try route()
            guard try !countForward() else { return }
            try authorize()
        } catch {
            fail(error)
        }
    }

    // MARK: Routing

    private func route() throws(Problem) {
        if head.methodKind == .trace, exchange.hasBody { throw .traceWithBody }
        let parsed: RequestTarget
        do throws(MessageError) {
            parsed = try RequestTarget(parsing: headBytes.bytes, head: head)
        } catch {
            throw Problem(error)
        }
        var scheme = Scheme.http
        var authority = head.host
        switch parsed {
        case .origin(let path): target = .path(path)
        case .absolute(let named, let host, let path):
            scheme = named
            authority = host
            target = path.isEmpty && head.methodKind == .options ? .asterisk : .path(path)
        case .asterisk: target = .asterisk
        case .authority: throw .connectRefused
        }
        switch role {
        case .forward: try routeByAuthority(authority, scheme, parsed)
        case .upstream(let listener): try route(to: listener, authority)
        }
        try judge()
        if head.upgradeRequested { try offerUpgrade() }
    }

    /// At a base URL.
    private func route(to listener: UpstreamListener, _ range: ByteRange) throws(Problem) {
        let authority = try headBytes.withBytes { bytes throws(Problem) in try listener.admit(bytes, head, range) }
        try choose(listener.rules)
        let upstream = shard.upstreams[listener.index]
        destination = upstream.destination(for: listener.authority, scheme: .https)
        asked = AskedAddress(scheme: .http, authority: authority, isBaseURL: true)
    }

    private func routeByAuthority(
        _ range: ByteRange, _ scheme: Scheme, _ form: RequestTarget
    ) throws(Problem) {
        if range.isEmpty { throw .hostMissing }
        let known = try headBytes.withBytes { bytes throws(Problem) in try shard.authority(of: bytes[range], scheme) }
        guard let rules = known.rules else {
            // A program whose base URL is a listener of ours, and that sends all it asks for through its proxy.
            if case .absolute = form, scheme == .http, let listener = shard.listener(at: known.authority) {
                return try route(to: listener, range)
            }
            guard let unmatched = shard.unmatched else { throw .unknownHost }
            if scheme == .https { throw .schemeNotSupported }
            upstream = unmatched
            destination = unmatched.destination(for: known.authority, scheme: .http)
            asked = AskedAddress(scheme: scheme, authority: known.authority, isBaseURL: false)
            return
        }
        try choose(rules)
        guard let upstream else { throw .internalError }
        // A wildcard without a url goes on by https, to 443 where the program said 80.
        var wanted = known.authority
        if !upstream.hasFixedDestination, wanted.port == nil || wanted.port == 80 { wanted.port = nil }
        destination = upstream.destination(for: wanted, scheme: .https)
        asked = AskedAddress(scheme: scheme, authority: known.authority, isBaseURL: false)
        if scheme == .https, destination?.origin.scheme != .https { throw .schemeNotSupported }
        if case .origin = form { try refusePages(upstream) }
    }

    /// A program whose port is redirected here may be a browser, and then any page in it would get the token. Asked in
    /// absolute form, somebody has told the browser to use this proxy.
    private func refusePages(_ upstream: Upstream) throws(Problem) {
        guard upstream.client != nil, !upstream.settings.browsers else { return }
        try headBytes.withBytes { bytes throws(Problem) in try WebPage.refuse(bytes, head) }
    }

    private func choose(_ rules: RouteTable.Rules) throws(Problem) {
        let match = headBytes.withBytes { bytes in
            switch target {
            case .path(let path): rules.match(path: bytes[path], method: bytes[head.method], caller: caller)
            case .asterisk: rules.match(path: Self.asterisk.span, method: bytes[head.method], caller: caller)
            }
        }
        switch match {
        case .upstream(let index):
            let upstream = shard.upstreams[index]
            self.upstream = upstream
            guard case .path(let path) = target else {
                if upstream.settings.isLimited { throw .wholeServer }
                break
            }
            if upstream.settings.isConfined, headBytes.withBytes({ PathRules.climbs($0[path]) }) { throw .climbingPath }
        case .notCovered: throw .notCovered
        case .notForCaller: throw .notForCaller
        case .ambiguousPath: throw .ambiguousPath
        case .unknownHost: throw .unknownHost
        }
    }

    private static let asterisk = Array("*".utf8)

    // MARK: Token

    /// Sends it, with a token where its upstream has a client; waits for one when there is none.
    private func authorize() throws(Problem) {
        guard let upstream, let client = upstream.client, head.methodKind != .trace else { return try send() }
        injection = .failed
        if case .asterisk = target, !upstream.injectedParameter.isEmpty { throw .queryNeeded }
        exchange.replaysUnauthorized = upstream.settings.onUnauthorized == .replay
        if exchange.replaysUnauthorized { body.keep(upTo: upstream.settings.maxReplayBytes) }
        if upstream.settings.onExisting != .replace, hasOwnCredential(upstream) {
            if upstream.settings.onExisting == .reject { throw .ownCredential }
            injection = .kept
            return try send()
        }
        if let token = upstream.currentToken() {
            self.token = token
            injection = .injected
            return try send()
        }
        waitForToken(client, upstream)
    }

    /// Whoever has a token that is only suspect waits no longer than this for a new one.
    private static let suspectWait = Duration.seconds(2)

    /// The wait is a task of its own: the loop goes on, and a client that leaves cancels nothing but its place.
    /// - Parameter refused: a 401 came with this one.
    func waitForToken(_ client: Heimdallr, _ upstream: Upstream, insteadOf refused: AccessToken? = nil) {
        phase = .awaitingToken
        clearDeadline()
        waitNumber += 1
        let number = waitNumber
        let me = LoopBound(self, on: shard.loop)
        var patience = upstream.settings.tokenWait
        if refused == nil, client.currentToken() != nil { patience = min(patience, Self.suspectWait) }
        let limit = ContinuousClock.now + patience
        let resource = upstream.resource
        Task {
            let result: Result<AccessToken, HeimdallrError>
            do throws(HeimdallrError) {
                result = .success(try await client.accessToken(for: resource, insteadOf: refused, before: limit))
            } catch {
                result = .failure(error)
            }
            me.loop.execute { me.value.tokenArrived(result, number) }
        }
    }

    private func tokenArrived(_ result: Result<AccessToken, HeimdallrError>, _ number: Int) {
        guard phase == .awaitingToken, number == waitNumber, let upstream else { return }
        phase = .exchanging
        var result = result
        if case .failure(let error) = result, held == nil || error != .needsAuthentication {
            // Nobody's request fails because a token was doubted; but where a sign-in is wanted, it is asked for.
            if let held, held.isWhole {
                passHeldAnswer(held)
                return readHead()
            }
            if !exchange.isReplayed, let token = upstream.client?.currentToken() { result = .success(token) }
        }
        switch result {
        case .success(let token):
            self.token = token
            injection = exchange.isReplayed ? .replayed : .injected
            do throws(Problem) { try send(fresh: exchange.isResent && !exchange.isReplayed) } catch { fail(error) }
        case .failure(let error):
            fail(Problem(error, client: upstream.settings.client ?? "", signIn: shard.observer.signIn))
        }
        // What the client pipelined meanwhile is looked at when its turn comes.
        readHead()
    }

    private func hasOwnCredential(_ upstream: Upstream) -> Bool {
        headBytes.withBytes { bytes in
            if !upstream.injectedField.isEmpty {
                // One that Connection names ends here, and can't stand in for the token.
                for field in head.fields
                where !field.isHopByHop && bytes[field.name].namesField(upstream.injectedField) {
                    return true
                }
                return false
            }
            guard case .path(let path) = target else { return false }
            return QueryInjection.contains(upstream.injectedParameter, in: bytes[path])
        }
    }

    // MARK: Sending

    /// Begins the exchange with the upstream; also for the second try.
    func send(fresh: Bool = false) throws(Problem) {
        guard let upstream, let destination else { throw .internalError }
        isAnswerHeadComplete = false
        held = nil
        if exchange.isReplayed || exchange.isResent, !body.rewind() {
            throw Problem(TransportError(.internal, message: "a part of the request's body is gone"))
        }
        isUploadWaiting = false
        setDeadline(.response, after: upstream.responseTimeout)
        let upload: HTTP1Exchange.Upload =
            switch head.framing {
            case .length(let length) where length > 0: .length(length)
            case .chunked: .chunked
            default: exchange.upgrade == nil ? .none : .upgrade
            }
        let request = UpstreamRequest(
            origin: destination.origin, isHead: exchange.isHead, expectsContinue: exchange.expectsContinue,
            upload: upload, isFresh: fresh)
        handedOver = shard.loop.now
        isSent = true
        do throws(TransportError) {
            try begin(request, upstream)
        } catch {
            outbound = nil
            report(error)
            throw Problem(error)
        }
    }

    private func begin(_ request: UpstreamRequest, _ upstream: Upstream) throws(TransportError) {
        if let pool = upstream.http2Pool(for: request, now: shard.loop.now) {
            let exchange = try TransferredExchange(request, over: pool, delegate: self)
            outbound = exchange
            try exchange.start()
        } else {
            let exchange = shard.rack.exchange()
            outbound = exchange
            try exchange.start(request, over: upstream.carriers, delegate: self)
        }
    }

    func writeHead(_ form: HeadForm, to output: inout ByteBuffer) -> HeadStep {
        guard let upstream, let destination, lastLook() != .withhold else { return .withhold }
        let credential = token.map { upstream.credential(for: $0) }
        headBytes.withBytes { bytes in
            output.append(bytes[head.method])
            output.append(" ")
            build(&output, bytes, upstream, destination, credential, form)
            output.append(" HTTP/1.1\r\nHost: ")
            if upstream.settings.keepsHost, let authority = asked?.authority {
                output.append(Array(authority.description.utf8))
            } else {
                output.append(destination.host)
            }
            output.append("\r\n")
            writeFields(bytes, upstream, to: &output)
        }
        if case .header(let name, let value) = credential {
            output.append(Array(name.utf8))
            output.append(": ")
            value.withSpan { output.append($0) }
            output.append("\r\n")
        }
        if let offer = exchange.upgrade {
            output.append("Connection: Upgrade\r\nUpgrade: ")
            output.append(offer.value)
            output.append("\r\n")
        }
        output.append(exchange.isHTTP10 ? "Via: 1.0 heimdallr-proxy\r\n" : "Via: 1.1 heimdallr-proxy\r\n")
        return .send
    }

    private func writeFields(_ bytes: Span<UInt8>, _ upstream: Upstream, to output: inout ByteBuffer) {
        let dropped = token == nil ? [] : upstream.injectedField
        for field in head.fields {
            if field.isHopByHop || field.known == .host { continue }
            if !dropped.isEmpty, bytes[field.name].namesField(dropped) { continue }
            // Nothing waits for 100 without a body; HTTP/1.0 knows no 100 (RFC 9110, section 10.1.1).
            if field.known == .expect, !exchange.expectsContinue { continue }
            output.append(bytes[field.name])
            output.append(": ")
            if field.known == .maxForwards, let maxForwards {
                output.append(decimal: maxForwards)
            } else if field.known == .destination, let addressMap {
                addressMap.append(destination: bytes[field.value], to: &output)
            } else {
                output.append(bytes[field.value])
            }
            output.append("\r\n")
        }
    }

    private func build(
        _ output: inout ByteBuffer, _ head: Span<UInt8>, _ upstream: Upstream, _ destination: Upstream.Destination,
        _ credential: RequestCredential?, _ form: HeadForm
    ) {
        if form.isAbsolute {
            output.append(Array(destination.origin.scheme.rawValue.utf8))
            output.append("://")
            output.append(destination.host)
        }
        guard case .path(let range) = target else {
            if !form.isAbsolute { output.append("*") }
            return
        }
        let path = head[range]
        output.append(upstream.pathPrefix)
        if path.isEmpty || path[0] != UInt8(ascii: "/") { output.append("/") }
        if case .query(_, let value) = credential {
            QueryInjection.append(path, setting: upstream.injectedParameter, to: value, &output)
        } else {
            output.append(path)
        }
    }

    // MARK: Answering by ourselves

    /// Answers with a problem; where another answer is under way, cuts it: nothing may come within an answer but its
    /// own bytes.
    func fail(_ problem: Problem) {
        if exchange.isAnswered { return cut() }
        cancelOutbound()
        // What is left of the request's body would be taken for the next request. HTTP/1.0 has no way to keep the
        // connection but a field that problems don't carry.
        let closes =
            problem.closes || !exchange.isRequestComplete || !exchange.clientKeepsAlive || exchange.isHTTP10
            || head.upgradeRequested || shard.isDraining
        status = problem.status
        refusal = problem.slug
        malformation = problem.cause
        let before = output.count
        ProblemAnswer.append(
            problem, to: &output, client: upstream?.settings.client, upstream: upstream?.name,
            requestID: shard.observer.accessLog == nil ? nil : requestID, isHead: exchange.isHead, closes: closes)
        bytesSent = UInt64(output.count - before)
        finishRequest(keeping: !closes)
    }
}
