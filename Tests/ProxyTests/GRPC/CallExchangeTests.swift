import CurlTransport
import HTTPMessage
import Heimdallr
import Testing

@testable import Proxy

@Suite("the decisions about a gRPC answer whose status follows, without I/O")
struct CallExchangeTests {
    /// The upstream has the call, with a token.
    private func exchange(replays: Bool = true) -> Exchange {
        var exchange = Exchange()
        exchange.request.isGRPC = true
        exchange.request.replaysUnauthorized = replays
        exchange.ask()
        return exchange
    }

    private func head() throws -> ResponseHead {
        var head = ResponseHead()
        for line in ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", ""] {
            if try head.append(line: Array("\(line)\r\n".utf8).span, allowHTTP2: false) { return head }
        }
        return head
    }

    private var following: Exchange.Findings {
        var findings = Exchange.Findings()
        findings.awaitsStatus = true
        findings.canSendAgain = true
        findings.isRequestComplete = true
        return findings
    }

    private func trailers(_ status: Int) -> UpstreamEnd {
        UpstreamEnd(trailers: [(name: Array("grpc-status".utf8), value: Array("\(status)".utf8))])
    }

    @Test func `its head is held for the rest of the turn, and goes out at the next one`() throws {
        var held = exchange()
        #expect(held.judge(try head(), following) == .read)
        #expect(!held.isAnswered)
        guard case .resumeAnswer = held.turnCame() else { throw Unexpected() }
        #expect(held.release()?.head.status == 200)
        #expect(held.release() == nil)
    }

    @Test func `trailers that refuse the token are followed by a wait for another one`() throws {
        var refused = exchange()
        _ = refused.judge(try head(), following)
        guard
            case .awaitToken = refused.ended(trailers(16), isTokenRefused: true, canSendAgain: true, token: nil)
        else { throw Unexpected() }
        #expect(refused.attempts.isReplayed)
        // Without a token, the client gets the refusal.
        refused.awaitToken()
        guard
            case .pass(let answer) = refused.tokenArrived(
                .deadlineExceeded(retryAfter: .zero), hasDoubted: false, .internalError)
        else { throw Unexpected() }
        #expect(answer.trailers.count == 1)
    }

    @Test func `other trailers pass with their head, and so does a refusal of a body that is gone`() throws {
        for (isRefused, isKept) in [(false, true), (true, false)] {
            var exchange = exchange()
            _ = exchange.judge(try head(), following)
            guard
                case .pass(let answer) = exchange.ended(
                    trailers(16), isTokenRefused: isRefused, canSendAgain: isKept, token: nil)
            else { throw Unexpected() }
            #expect(answer.trailers.count == 1)
        }
    }

    @Test func `an answer that is cut while its head is held is a problem`() throws {
        var cut = exchange()
        _ = cut.judge(try head(), following)
        let end = UpstreamEnd(error: TransportError(.responseTruncated, message: ""))
        guard case .fail(let problem) = cut.ended(end, canSendAgain: true, token: nil) else { throw Unexpected() }
        #expect(problem.word == .responseCut)
    }

    @Test func `where nothing is sent again, no head is held`() throws {
        var passing = exchange(replays: false)
        #expect(passing.judge(try head(), following) == .forward)
        var gone = following
        gone.canSendAgain = false
        var unkept = exchange()
        #expect(unkept.judge(try head(), gone) == .forward)
        var second = exchange()
        second.attempts.isReplayed = true
        #expect(second.judge(try head(), following) == .forward)
        #expect(second.awaitsStatus)
    }

    private struct Unexpected: Error {}
}
