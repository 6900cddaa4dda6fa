import CurlTransport
import HTTPMessage
import Heimdallr
import Testing

@testable import Proxy

@Suite("the decisions of one request's life, without I/O")
struct ExchangeTests {
    /// The upstream has the request.
    private func exchange(_ change: (inout Exchange.Request) -> Void = { _ in }) -> Exchange {
        var request = Exchange.Request(isIdempotent: true, keepsAlive: true)
        change(&request)
        var exchange = Exchange(request)
        exchange.ask()
        return exchange
    }

    private func head(_ status: Int, _ fields: String...) throws -> ResponseHead {
        var head = ResponseHead()
        for line in ["HTTP/1.1 \(status) Reason"] + fields + [""] {
            if try head.append(line: Array("\(line)\r\n".utf8).span, allowHTTP2: false) { return head }
        }
        return head
    }

    private static let lost = TransportError(.connectionLost, message: "")
    private static let withheld = TransportError(.withheld, message: "")
    private static let late = HeimdallrError.deadlineExceeded(retryAfter: .zero)

    /// Tokens and held answers within actions are not compared.
    private func text(_ action: Action) -> String {
        switch action {
        case .awaitToken: "awaitToken"
        case .pass(let answer): "pass \(String(decoding: answer.body, as: UTF8.self))"
        case .fail(let problem): "fail \(problem.condition)"
        default: "\(action)"
        }
    }

    private func ended(
        _ exchange: inout Exchange, _ error: TransportError? = nil, reused: Bool = true, again: Bool = true
    ) -> String {
        text(exchange.ended(UpstreamEnd(error: error, wasReused: reused), canReplay: again, token: nil))
    }

    private func failure(_ error: TransportError) -> String { text(.fail(Problem(error))) }

    @Test func `a body that the proxy will never ask for ends the connection`() {
        let rows: [(status: Int, complete: Bool, expects: Bool, keeps: Bool)] = [
            (413, true, false, true), (413, false, false, false), (200, false, false, true), (200, false, true, false),
            (200, true, true, true),
        ]
        for row in rows {
            for isEnding in [false, true] {
                var exchange = exchange { $0.expectsContinue = row.expects }
                _ = exchange.answer(
                    status: row.status, framing: .length(0), isRequestComplete: row.complete, mustClose: isEnding)
                #expect(exchange.request.keepsAlive == (row.keeps && !isEnding), "\(row)")
            }
        }
    }

    @Test func `an early answer behind 100 Continue keeps the connection`() throws {
        var exchange = exchange { $0.expectsContinue = true }
        _ = exchange.judge(try head(100), Exchange.Findings())
        _ = exchange.answer(status: 200, framing: .length(0), isRequestComplete: false, mustClose: false)
        #expect(exchange.request.keepsAlive)
    }

    @Test func `a held 401 whose body stalls is not waited for`() throws {
        var exchange = exchange { $0.replaysUnauthorized = true }
        let findings = Exchange.Findings(isTokenRefused: true, canReplay: true, isRequestComplete: true)
        _ = exchange.judge(try head(401, "Content-Length: 9"), findings)
        #expect(text(exchange.deadlinePassed(nil)) == "awaitToken")
        exchange.awaitToken()
        let refusal = text(exchange.tokenArrived(Self.late, hasSuspect: true, Problem(.userRequired)))
        #expect(refusal == text(.fail(Problem(.userRequired))), "a part of a 401 passes")
    }

    @Test func `a gRPC answer that is cut while its head is held is a problem`() throws {
        var exchange = exchange {
            $0.isGRPC = true
            $0.replaysUnauthorized = true
        }
        let findings = Exchange.Findings(awaitsStatus: true, canReplay: true, isRequestComplete: true)
        #expect(exchange.judge(try head(200, "Transfer-Encoding: chunked"), findings) == .read)
        #expect(ended(&exchange, TransportError(.responseTruncated, message: "")) == "fail responseCut")
    }

    @Test func `a nonce is used once, at once, and its 401 is not read`() throws {
        let refusal = try head(401, "Content-Length: 2")
        let findings = Exchange.Findings(wantsNonce: true, canReplay: true, isRequestComplete: true)
        var exchange = exchange()
        #expect(exchange.judge(refusal, findings) == .stop)
        #expect(ended(&exchange, TransportError(.aborted, message: "")) == "replay(newConnection: false)")
        #expect(exchange.isReplay)
        exchange.ask()
        #expect(exchange.judge(refusal, findings) == .forward)
    }

    @Test func `a request goes twice at most, in whatever order a nonce and a new token are asked for`() throws {
        let refusal = try head(401, "Content-Length: 0")
        let nonce = Exchange.Findings(wantsNonce: true, canReplay: true, isRequestComplete: true)
        let token = Exchange.Findings(isTokenRefused: true, canReplay: true, isRequestComplete: true)
        for (first, second) in [(nonce, token), (token, nonce), (token, token), (nonce, nonce)] {
            var exchange = exchange { $0.replaysUnauthorized = true }
            #expect(exchange.judge(refusal, first) != .forward)
            _ = ended(&exchange, first.wantsNonce ? TransportError(.aborted, message: "") : nil)
            exchange.ask()
            #expect(exchange.judge(refusal, second) == .forward)
            #expect(!exchange.attempts.wantsNonce)
        }
    }

    @Test func `without a new token the 401 is the answer, unless somebody can sign in`() throws {
        func held(whole: Bool = true) throws -> Exchange {
            var exchange = exchange { $0.replaysUnauthorized = true }
            let findings = Exchange.Findings(isTokenRefused: true, canReplay: true, isRequestComplete: true)
            _ = exchange.judge(try head(401, "Content-Length: 2"), findings)
            #expect(exchange.hold([0x6E, 0x6F].span) == true)
            _ = ended(&exchange, whole ? nil : Self.lost)
            exchange.awaitToken()
            return exchange
        }
        var whole = try held()
        #expect(text(whole.tokenArrived(Self.late, hasSuspect: true, Problem(.internalError))) == "pass no")
        var person = try held()
        let signIn = text(person.tokenArrived(.needsAuthentication, hasSuspect: true, Problem(.userRequired)))
        #expect(signIn == text(.fail(Problem(.userRequired))), "nobody is told to sign in")
        var cut = try held(whole: false)
        let refusal = text(cut.tokenArrived(Self.late, hasSuspect: true, Problem(.userRequired)))
        #expect(
            refusal == text(.fail(Problem(.userRequired))),
            "a part of a 401 passes, or the refused token goes out again")
        var first = Exchange()
        first.awaitToken()
        let doubted = text(first.tokenArrived(Self.late, hasSuspect: true, Problem(.internalError)))
        #expect(doubted == "sendSuspect(newConnection: false)", "a request fails because its token is doubted")
        var needing = exchange { $0.replaysUnauthorized = true }
        #expect(needing.refuse(Problem(.userRequired)) == .stop)
        #expect(ended(&needing, TransportError(.aborted, message: "")) == text(.fail(Problem(.userRequired))))
    }

    @Test func `a token that ages while a connection is waited for is renewed, and not for ever`() {
        var exchange = exchange()
        // Without a token there is nothing to renew.
        #expect(ended(&exchange, Self.withheld, again: true) == text(.fail(Problem(.noCredential))))
        for _ in 0..<2 {
            #expect(ended(&exchange, Self.withheld, again: true) == text(.fail(Problem(.noCredential))))
            exchange.ask()
        }
        #expect(ended(&exchange, Self.withheld, again: true) == failure(Self.withheld))
        var spent = self.exchange()
        let ending = ended(&spent, Self.withheld, again: false)
        #expect(ending == failure(Self.withheld), "a part of the body was read and dropped")
    }

    @Test func `the deadline of a request is that of the peer it waits for`() throws {
        var plain = exchange()
        #expect(plain.patience == .response)
        #expect(text(plain.deadlinePassed(nil)) == text(.fail(Problem(.responseTimeout))))
        plain.bodyAsked(isThere: true)
        #expect(plain.patience == .response)
        plain.bodyAsked(isThere: false)
        #expect(plain.patience == .requestBody)
        #expect(text(plain.deadlinePassed(nil)) == text(.fail(Problem(.slowBody))))
        // Who may wait for 100 with the body waits for the upstream, until it has come.
        var expecting = exchange { $0.expectsContinue = true }
        expecting.bodyAsked(isThere: false)
        #expect(expecting.patience == .response)
        _ = expecting.judge(try head(100), Exchange.Findings())
        #expect(expecting.patience == .requestBody)
        _ = expecting.answer(status: 200, framing: .length(3), isRequestComplete: false, mustClose: false)
        #expect(expecting.patience == .upstream)
        var switched = exchange { $0.offersUpgrade = true }
        switched.switchProtocols()
        #expect(switched.patience == .upstream)
        switched.programEndedItsSide(isPassedOn: true)
        #expect(switched.patience == .upstream)
        switched.programEndedItsSide(isPassedOn: false)
        #expect(switched.patience == .upstreamEnd)
        #expect(!switched.keepsConnection(isRequestComplete: true))
        var waiting = Exchange()
        waiting.awaitToken()
        #expect(waiting.patience == .none)
        waiting.delay()
        #expect(waiting.patience == .loginDelay)
    }

    @Test func `the time begins anew with each step, but not while the client has to take its answer`() {
        var exchange = exchange()
        #expect(exchange.takeNewTime() == .response)
        #expect(exchange.takeNewTime() == nil)
        _ = exchange.answer(status: 200, framing: .length(3), isRequestComplete: true, mustClose: false)
        exchange.pieceCame()
        #expect(exchange.takeNewTime() == .upstream)
        exchange.pieceCame()
        exchange.roomIsGone()
        #expect(exchange.takeNewTime() == nil)
        #expect(!exchange.awaitsOthers)
        #expect(text(exchange.turnCame()) == "wait")
        #expect(text(exchange.roomCame()) == "resumeAnswer")
        exchange.resume()
        #expect(exchange.awaitsOthers)
        #expect(exchange.takeNewTime() == .upstream, "an upstream that stalls then has no deadline")
        exchange.shareIsSpent()
        #expect(text(exchange.roomCame()) == "wait")
        #expect(text(exchange.turnCame()) == "resumeAnswer")
    }

    @Test func `the proxy sends 100 itself, once, if it reads the body before the upstream is asked`() {
        var exchange = Exchange(Exchange.Request(framing: .length(3), expectsContinue: true))
        #expect(exchange.collect() == true)
        #expect(!exchange.request.expectsContinue, "the upstream sends another 100")
        #expect(exchange.collect() == false)
    }

    @Test func `of a gRPC call, only the first sign shows that the server accepted the token`() throws {
        var exchange = exchange { $0.isGRPC = true }
        #expect(exchange.judge(try head(200), Exchange.Findings(awaitsStatus: true)) == .forward)
        #expect(exchange.messageCame() == true)
        #expect(exchange.messageCame() == false)
        #expect(exchange.statusCame(.unauthenticated) == false)
        #expect(exchange.callStatus == .unauthenticated)
    }

    @Test func `a request that waits for its turn does not begin to wait for room`() {
        var exchange = exchange()
        exchange.shareIsSpent()
        exchange.roomIsGone()
        #expect(text(exchange.roomCame()) == "wait")
        #expect(text(exchange.turnCame()) == "resumeAnswer")
    }

    @Test func `a fault over HTTP 2 ends its own stream, not the connection`() {
        for isEnding in [false, true] {
            var exchange = exchange { $0.version = .http2 }
            #expect(
                exchange.keepsConnection(behindOwn: true, isRequestComplete: false, mustClose: isEnding) == !isEnding)
            _ = exchange.answer(status: 413, framing: .length(0), isRequestComplete: false, mustClose: isEnding)
            #expect(exchange.keepsConnection(isRequestComplete: false) == !isEnding)
        }
    }

    @Test func `the connection stays behind an answer of ours only if the request was read whole`() {
        let rows: [(closes: Bool, complete: Bool, old: Bool, ending: Bool, keeps: Bool)] = [
            (false, true, false, false, true), (false, false, false, false, false), (false, true, true, false, false),
            (true, true, false, false, false), (false, true, false, true, false),
        ]
        for row in rows {
            let exchange = exchange { $0.version = row.old ? .http10 : .http11 }
            let keeps = exchange.keepsConnection(
                behindOwn: row.closes, isRequestComplete: row.complete, mustClose: row.ending)
            #expect(keeps == row.keeps, "\(row)")
        }
    }
}
