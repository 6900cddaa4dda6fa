import CurlTransport
import HTTPMessage
import Testing

@testable import Proxy

@Suite("the decisions of one request's life, without I/O")
struct ExchangeTests {
    private func exchange(_ change: (inout Exchange) -> Void = { _ in }) -> Exchange {
        var exchange = Exchange()
        exchange.isRequestComplete = true
        exchange.clientKeepsAlive = true
        exchange.isIdempotent = true
        change(&exchange)
        return exchange
    }

    private static let lost = TransportError(.connectionLost, message: "")

    @Test func `a lost connection is tried again once, where that can do no harm`() {
        func end(_ exchange: inout Exchange, canSendAgain: Bool = true) -> Exchange.Ending {
            exchange.ended(Self.lost, isHeadComplete: false, canSendAgain: canSendAgain)
        }
        var plain = exchange()
        #expect(end(&plain) == .resend)
        #expect(end(&plain) == .problem(Problem(Self.lost)))
        var post = exchange { $0.isIdempotent = false }
        #expect(end(&post) == .problem(Problem(Self.lost)))
        var put = exchange { $0.hasBody = true }
        #expect(end(&put) == .resend)
        // The body is gone, or the connection was new, and the server meant it.
        var spent = exchange()
        #expect(end(&spent, canSendAgain: false) == .problem(Problem(Self.lost)))
        for kind in [TransportError.Kind.connectionRefused, .responseTruncated, .proxy, .tlsHandshake, .aborted] {
            let error = TransportError(kind, message: "")
            var other = exchange()
            #expect(
                other.ended(error, isHeadComplete: false, canSendAgain: true) == .problem(Problem(error)), "\(kind)")
        }
    }

    @Test func `once the answer has begun there is no other: it is whole or cut`() {
        for framing in [BodyFraming.none, .length(5), .chunked, .untilClose] {
            var whole = exchange()
            whole.answer(status: 200, framing: framing)
            #expect(whole.ended(nil, isHeadComplete: true, canSendAgain: true) == .complete)
            var broken = exchange()
            broken.answer(status: 200, framing: framing)
            #expect(broken.ended(Self.lost, isHeadComplete: true, canSendAgain: true) == .cut)
        }
        var headless = exchange()
        #expect(headless.ended(nil, isHeadComplete: false, canSendAgain: true) != .complete)
    }

    @Test func `how an answer is framed for whom, and whether the connection stays`() {
        let rows: [(framing: BodyFraming, old: Bool, framed: BodyFraming, keeps: Bool)] = [
            (.none, false, .none, true), (.length(3), false, .length(3), true), (.chunked, false, .chunked, true),
            (.untilClose, false, .chunked, true), (.length(3), true, .length(3), true),
            (.chunked, true, .untilClose, false), (.untilClose, true, .untilClose, false),
        ]
        for row in rows {
            var exchange = exchange { $0.isHTTP10 = row.old }
            exchange.answer(status: 200, framing: row.framing)
            #expect(exchange.answerFraming == row.framed)
            #expect(exchange.keepsConnection == row.keeps)
        }
    }

    @Test func `a body that nobody will ask for ends the connection`() {
        let rows: [(status: Int, complete: Bool, expects: Bool, keeps: Bool)] = [
            (413, true, false, true), (413, false, false, false), (200, false, false, true), (200, false, true, false),
            (200, true, true, true),
        ]
        for row in rows {
            var exchange = exchange {
                $0.hasBody = true
                $0.isRequestComplete = row.complete
                $0.expectsContinue = row.expects
            }
            exchange.answer(status: row.status, framing: .length(0))
            #expect(exchange.clientKeepsAlive == row.keeps, "\(row)")
        }
    }

    @Test func `a refused token is worth one more try, if the body is at hand`() {
        func judge(_ exchange: inout Exchange, refused: Bool = true, again: Bool = true) -> Exchange.Verdict {
            exchange.judge(status: 401, isInterim: false, isTokenRefused: refused, canSendAgain: again)
        }
        var replaying = exchange { $0.replaysUnauthorized = true }
        #expect(judge(&replaying) == .discard)
        #expect(replaying.isDiscardingAnswer)
        #expect(replaying.ended(nil, isHeadComplete: true, canSendAgain: true) == .replay)
        #expect(judge(&replaying) == .forward)
        var broken = exchange { $0.replaysUnauthorized = true }
        #expect(judge(&broken) == .discard)
        #expect(broken.ended(Self.lost, isHeadComplete: true, canSendAgain: true) == .replay)
        var spent = exchange { $0.replaysUnauthorized = true }
        #expect(judge(&spent, again: false) == .forward)
        var otherFault = exchange { $0.replaysUnauthorized = true }
        #expect(judge(&otherFault, refused: false) == .forward)
        var passing = exchange()
        #expect(judge(&passing) == .forward)
    }

    @Test func `interim answers pass to 1.1 only, 101 to nobody, 417 in our own words`() {
        var new = exchange()
        #expect(new.judge(status: 103, isInterim: true, isTokenRefused: false, canSendAgain: true) == .forwardInterim)
        var old = exchange { $0.isHTTP10 = true }
        #expect(old.judge(status: 103, isInterim: true, isTokenRefused: false, canSendAgain: true) == .dropInterim)
        #expect(
            new.judge(status: 101, isInterim: false, isTokenRefused: false, canSendAgain: true)
                == .refuse(.unaskedUpgrade))
        var expecting = exchange { $0.expectsContinue = true }
        #expect(
            expecting.judge(status: 417, isInterim: false, isTokenRefused: false, canSendAgain: true)
                == .refuse(.expectationFailed))
        #expect(new.judge(status: 417, isInterim: false, isTokenRefused: false, canSendAgain: true) == .forward)
    }
}
