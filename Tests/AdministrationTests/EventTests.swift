import Foundation
import TestSupport
import Testing

@testable import Administration
@testable import Heimdallr

@Suite("events", .timeLimit(.minutes(2)))
struct EventTests {
    @Test func `a reader sees what happens to tokens, and never a token`() async throws {
        let admin = try await AdministeredProxy(
            TokenEndpoint([
                .token(accessToken), .error("invalid_client", status: 401, description: "bad \(clientSecret)"),
                .token(accessToken),
            ]))
        try await admin.ready()
        let reader = try await RawClient.connect(port: admin.adminPort)
        try await reader.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        let head = try await reader.read(until: "retry: 3000\n\n")
        #expect(head.contains("Content-Type: text/event-stream\r\n"))
        #expect(head.contains("Cache-Control: no-store\r\n"))
        #expect(try await admin.run("logout", "api", "--local").ending == .exited(0))
        let lost = try await reader.read(until: "\n\n")
        #expect(lost.contains("event: token_lost\n"))
        #expect(lost.contains(#""reason": "discarded""#))
        _ = try await admin.proxy.get("http://api.test/")
        let failed = try await reader.read(until: "\n\n")
        #expect(failed.contains("event: token_failed\n"))
        #expect(failed.contains(#""client": "api""#))
        #expect(failed.contains("check client_id, client_secret"))
        for text in [head, lost, failed] { #expect(!text.contains("SEKRET")) }
        // The stream ends with the proxy.
        #expect(try await admin.proxy.terminate() == .exited(0))
        _ = try await reader.readToEnd()
    }

    @Test func `each event is one frame of one line of JSON, whatever a server said`() throws {
        let fault = TokenEndpointFault.refused(
            OAuthError(
                status: 400, code: OAuthError.Code(rawValue: "x"), detail: "a\n\ndata: forged\r\r<script>", uri: nil))
        let event = HeimdallrEvent(
            client: "api", kind: .tokenFailed(.clientRefused(fault, retryAfter: .milliseconds(1500))))
        let frame = EventFeed.frame(
            event, SignInWay(client: "api", method: .browser, url: nil), at: 0)
        #expect(frame.hasPrefix("event: token_failed\ndata: {"))
        #expect(frame.hasSuffix("}\n\n"))
        #expect(frame.filter { $0.isNewline }.count == 3)
        #expect(!frame.contains("<script"))
        let data = try #require(frame.split(separator: "\n").last?.dropFirst("data: ".count))
        let object = try #require(try JSONSerialization.jsonObject(with: Data(data.utf8)) as? [String: Any])
        #expect(object["time"] as? String == "1970-01-01T00:00:00Z")
        #expect(object["retry_after_seconds"] as? Double == 1.5)
        #expect((object["message"] as? String)?.contains("<script>") == true)
    }

    @Test func `a reader of events that does not keep up loses the oldest`() async {
        let feed = EventFeed()
        let stream = feed.subscribe()
        for number in 0..<1000 {
            feed.send(
                HeimdallrEvent(client: "c\(number)", kind: .needsAuthentication),
                SignInWay(client: "c\(number)", method: .browser, url: nil))
        }
        feed.finish()
        var seen: [String] = []
        if let stream { for await frame in stream { seen.append(String(decoding: frame, as: UTF8.self)) } }
        #expect(seen.count == 256)
        #expect(seen.last?.contains("c999") == true)
        #expect(feed.subscribe() == nil)
    }
}
