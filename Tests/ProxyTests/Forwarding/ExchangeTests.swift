import CurlTransport
import HTTPMessage
import Heimdallr
import Testing

@testable import Proxy

@Suite("the decisions of one request's life, without I/O")
struct ExchangeTests {
    /// The upstream has the request.
    private func exchange(_ change: (inout Exchange.Request) -> Void = { _ in }) -> Exchange {
        var exchange = Exchange()
        exchange.request.keepsAlive = true
        exchange.request.isIdempotent = true
        change(&exchange.request)
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

    @Test func `a lost connection is tried again once, where that can do no harm`() {
        var plain = exchange()
        #expect(plain.ended(Self.lost, canSendAgain: true) == .resend)
        #expect(plain.ended(Self.lost, canSendAgain: true) == .problem(Problem(Self.lost)))
        var post = exchange { $0.isIdempotent = false }
        #expect(post.ended(Self.lost, canSendAgain: true) == .problem(Problem(Self.lost)))
        // The body is gone, or the connection was new, and the server meant it.
        var spent = exchange()
        #expect(spent.ended(Self.lost, canSendAgain: false) == .problem(Problem(Self.lost)))
        for kind in [TransportError.Kind.connectionRefused, .responseTruncated, .proxy, .tlsHandshake, .aborted] {
            let error = TransportError(kind, message: "")
            var other = exchange()
            #expect(other.ended(error, canSendAgain: true) == .problem(Problem(error)), "\(kind)")
        }
    }

    @Test func `once the answer has begun there is no other: it is whole or cut`() {
        for framing in [BodyFraming.none, .length(5), .chunked, .untilClose] {
            var whole = exchange()
            _ = whole.answer(status: 200, framing: framing, isRequestComplete: true, mustClose: false)
            #expect(whole.isAnswered)
            #expect(whole.impatience == nil)
            #expect(whole.ended(nil, canSendAgain: true) == .complete)
            var broken = exchange()
            _ = broken.answer(status: 200, framing: framing, isRequestComplete: true, mustClose: false)
            #expect(broken.ended(Self.lost, canSendAgain: true) == .cut)
        }
        var headless = exchange()
        #expect(headless.ended(nil, canSendAgain: true) != .complete)
    }

    @Test func `how an answer is framed for whom, and whether the connection stays`() {
        let rows: [(framing: BodyFraming, old: Bool, framed: BodyFraming, keeps: Bool)] = [
            (.none, false, .none, true), (.length(3), false, .length(3), true), (.chunked, false, .chunked, true),
            (.untilClose, false, .chunked, true), (.length(3), true, .length(3), true),
            (.chunked, true, .untilClose, false), (.untilClose, true, .untilClose, false),
        ]
        for row in rows {
            var exchange = exchange { $0.isHTTP10 = row.old }
            _ = exchange.answer(status: 200, framing: row.framing, isRequestComplete: true, mustClose: false)
            #expect(exchange.answerFraming == row.framed)
            #expect(exchange.keepsConnection(isRequestComplete: true) == row.keeps)
            #expect(!exchange.keepsConnection(isRequestComplete: false))
        }
    }

    @Test func `a body that nobody will ask for ends the connection`() {
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

    @Test func `once 100 has come, an early answer keeps the connection`() throws {
        var exchange = exchange { $0.expectsContinue = true }
        _ = exchange.judge(try head(100), isTokenRefused: false, canSendAgain: true)
        _ = exchange.answer(status: 200, framing: .length(0), isRequestComplete: false, mustClose: false)
        #expect(exchange.request.keepsAlive)
    }

    @Test func `a refused token is worth one more try, if the body is at hand`() throws {
        let refusal = try head(401, "Content-Length: 2")
        func judge(_ exchange: inout Exchange, refused: Bool = true, again: Bool = true) -> Exchange.Verdict {
            exchange.judge(refusal, isTokenRefused: refused, canSendAgain: again)
        }
        var replaying = exchange { $0.replaysUnauthorized = true }
        #expect(judge(&replaying) == .hold)
        #expect(!replaying.isAnswered)
        #expect(replaying.ended(nil, canSendAgain: true) == .replay)
        replaying.awaitToken()
        guard case .send(fresh: false) = replaying.tokenArrived(nil, hasDoubted: false) else {
            Issue.record("it is not sent again")
            return
        }
        replaying.ask()
        #expect(judge(&replaying) == .forward)
        var broken = exchange { $0.replaysUnauthorized = true }
        #expect(judge(&broken) == .hold)
        #expect(broken.ended(Self.lost, canSendAgain: true) == .replay)
        var spent = exchange { $0.replaysUnauthorized = true }
        #expect(judge(&spent, again: false) == .forward)
        var otherFault = exchange { $0.replaysUnauthorized = true }
        #expect(judge(&otherFault, refused: false) == .forward)
        var passing = exchange()
        #expect(judge(&passing) == .forward)
    }

    @Test func `without a new token the 401 is the answer, unless somebody can sign in`() throws {
        func held(whole: Bool = true) throws -> Exchange {
            var exchange = exchange { $0.replaysUnauthorized = true }
            _ = exchange.judge(try head(401, "Content-Length: 2"), isTokenRefused: true, canSendAgain: true)
            #expect(exchange.hold([0x6E, 0x6F].span) == true)
            exchange.holdEnd(trailers: [], isWhole: whole)
            _ = exchange.ended(nil, canSendAgain: true)
            exchange.awaitToken()
            return exchange
        }
        var whole = try held()
        guard case .pass(let answer) = whole.tokenArrived(.deadlineExceeded(retryAfter: .zero), hasDoubted: true) else {
            Issue.record("the 401 does not pass")
            return
        }
        #expect(answer.body == Array("no".utf8))
        var person = try held()
        guard case .refuse = person.tokenArrived(.needsAuthentication, hasDoubted: true) else {
            Issue.record("nobody is told to sign in")
            return
        }
        var cut = try held(whole: false)
        guard case .refuse = cut.tokenArrived(.deadlineExceeded(retryAfter: .zero), hasDoubted: true) else {
            Issue.record("a part of a 401 passes, or the refused token goes out again")
            return
        }
        var first = Exchange()
        first.awaitToken()
        guard
            case .sendDoubted(fresh: false) = first.tokenArrived(.deadlineExceeded(retryAfter: .zero), hasDoubted: true)
        else {
            Issue.record("a request fails because its token is doubted")
            return
        }
    }

    @Test func `a token that ages while a connection is waited for is renewed, and not for ever`() {
        let withheld = TransportError(.withheld, message: "")
        var exchange = exchange()
        for _ in 0..<3 {
            #expect(exchange.ended(withheld, canSendAgain: false) == .renew)
            exchange.awaitToken()
            _ = exchange.tokenArrived(nil, hasDoubted: false)
            exchange.ask()
        }
        #expect(exchange.ended(withheld, canSendAgain: false) == .problem(Problem(withheld)))
    }

    @Test func `interim answers pass to 1.1 only, 101 to nobody, 417 in our own words`() throws {
        let early = try head(103)
        var new = exchange()
        #expect(new.judge(early, isTokenRefused: false, canSendAgain: true) == .forwardInterim)
        var old = exchange { $0.isHTTP10 = true }
        #expect(old.judge(early, isTokenRefused: false, canSendAgain: true) == .dropInterim)
        let switching = try head(101, "Connection: Upgrade", "Upgrade: websocket")
        #expect(new.judge(switching, isTokenRefused: false, canSendAgain: true) == .refuse(.unaskedUpgrade))
        var offering = exchange { $0.offersUpgrade = true }
        #expect(offering.judge(switching, isTokenRefused: false, canSendAgain: true) == .switchProtocols)
        let unmet = try head(417)
        var expecting = exchange { $0.expectsContinue = true }
        #expect(
            expecting.judge(unmet, isTokenRefused: false, canSendAgain: true) == .refuse(.expectationFailed))
        #expect(new.judge(unmet, isTokenRefused: false, canSendAgain: true) == .forward)
    }

    @Test func `whom a request waits for`() throws {
        var plain = exchange()
        #expect(plain.patience == .response)
        #expect(plain.impatience == .responseTimeout)
        plain.bodyAsked(isThere: true)
        #expect(plain.patience == .response)
        plain.bodyAsked(isThere: false)
        #expect(plain.patience == .requestBody)
        #expect(plain.impatience == .slowBody)
        // Who may wait for 100 with the body waits for the upstream, until it has come.
        var expecting = exchange { $0.expectsContinue = true }
        expecting.bodyAsked(isThere: false)
        #expect(expecting.patience == .response)
        _ = expecting.judge(try head(100), isTokenRefused: false, canSendAgain: true)
        #expect(expecting.patience == .requestBody)
        _ = expecting.answer(status: 200, framing: .length(3), isRequestComplete: false, mustClose: false)
        #expect(expecting.patience == .upstream)
        var switched = exchange { $0.offersUpgrade = true }
        switched.switchProtocols()
        #expect(switched.patience == .upstream)
        switched.leave()
        #expect(switched.patience == .upstreamEnd)
        #expect(!switched.keepsConnection(isRequestComplete: true))
        var waiting = Exchange()
        waiting.awaitToken()
        #expect(waiting.patience == .none)
        waiting.hold()
        #expect(waiting.patience == .guess)
    }

    @Test func `behind which of our own answers the connection stays`() {
        let rows: [(closes: Bool, complete: Bool, old: Bool, ending: Bool, keeps: Bool)] = [
            (false, true, false, false, true), (false, false, false, false, false), (false, true, true, false, false),
            (true, true, false, false, false), (false, true, false, true, false),
        ]
        for row in rows {
            let exchange = exchange { $0.isHTTP10 = row.old }
            let keeps = exchange.keepsConnection(
                behindOwn: row.closes, isRequestComplete: row.complete, mustClose: row.ending)
            #expect(keeps == row.keeps, "\(row)")
        }
    }
}
