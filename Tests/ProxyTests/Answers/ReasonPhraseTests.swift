import Configuration
import Foundation
import HTTPMessage
import Heimdallr
import Reports
import TestSupport
import Testing

@testable import Proxy

@Suite("the reason phrase of a refusal says what to do", .stopsProxies, .timeLimit(.minutes(1)))
struct ReasonPhraseTests {
    private static let verbs: Set<String> = [
        "Add", "Ask", "Check", "Correct", "Exempt", "Raise", "Report", "Send", "Set", "Shorten", "Sign", "Try", "Turn",
        "Use",
    ]

    private func check(_ phrase: String) {
        #expect(!phrase.isEmpty && phrase.utf8.count <= 80, "\(phrase)")
        #expect(phrase.utf8.allSatisfy { (0x20...0x7E).contains($0) }, "\(phrase)")
        let verb = String(phrase.prefix { $0 != " " && $0 != ":" })
        #expect(
            Self.verbs.contains(verb) || phrase.contains("did you mean " as String)
                || phrase.contains(": add it" as String), "\(phrase)")
    }

    @Test func `each reason phrase in the table is short and readable on a line`() {
        let phrases = Problem.rows.values.flatMap(\.phrases).filter { !$0.contains("{") }
        #expect(phrases.count > 50)
        for phrase in phrases { check(phrase) }
    }

    @Test func `the reason phrase of a malformed request is short and readable`() {
        for status in [400, 414, 417, 431, 501, 505] {
            for detail in [
                "The request line is malformed.",
                "Content-Length has whitespace around it beyond the one space after the colon.",
                "The host is not ASCII; write internationalised names as punycode (xn--\u{2026}).",
            ] {
                let error = MessageError(status: status, detail: detail)
                check(Problem(error).phrase)
                check(Problem(error, inBody: true).phrase)
            }
        }
    }

    private static let hosts = [
        "a.test", "api.example.com:8443", "[2001:db8:0:1:2:3:4:5]:65535",
        String(repeating: "a", count: 63) + ".example.com", "\(String(repeating: "b.", count: 120))test",
    ]

    @Test(arguments: hosts) func `the reason phrase of an unknown host names the host where it is short enough`(
        host: String
    ) throws {
        let asked = try Authority(parsing: host)
        let near = HostPattern(wildcard: true, host: asked.host, port: asked.port)
        for problem in [
            Problem.unknownHost(asked, .http, near: nil), .unknownHost(asked, .https, near: near),
            Problem(.connectRefused).connecting(to: asked),
            Problem(.tunnelNotListed).connecting(to: asked), Problem(.connectRefused).connecting(to: asked, near: nil),
            Problem(.tunnelNotListed).connecting(to: asked, near: nil),
        ] {
            check(problem.phrase)
            #expect(problem.phrase.contains(asked.host.description) == (host.utf8.count < 40), "\(problem.phrase)")
        }
    }

    @Test func `the reason phrase of a sign-in stays readable with a long or foreign client's name`() {
        for name in ["items", String(repeating: "n", count: 70), "p\u{E4}ckchen"] {
            check(Problem(.needsAuthentication, client: name) { _ in .init(advice: "", url: nil) }.phrase)
        }
    }

    @Test(arguments: [
        (
            "GET http://nobody.example/ HTTP/1.1", 403,
            "Add nobody.example to upstreams, or set proxy.unmatched: forward"
        ),
        ("CONNECT api.test:443 HTTP/1.1", 403, "Use http://api.test instead of https, or set intercept: true"),
        ("CONNECT api.tset:443 HTTP/1.1", 403, "No upstream for api.tset:443: did you mean http://api.test?"),
        ("CONNECT nobody.test:443 HTTP/1.1", 403, "No upstream for nobody.test:443: add it, with intercept: true"),
        ("GET http://api.test/ HTTP/3.0", 505, "Use HTTP/1.1 or HTTP/1.0"),
        (
            "GET http://a\u{E4}.test/ HTTP/1.1", 400,
            "Correct the request: The target has a byte beyond ASCII; percent-encode it"
        ),
    ])
    func `the reason phrase on the wire says what to do`(line: String, status: Int, phrase: String) async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect(sending: "\(line)\r\nHost: api.test\r\n\r\n")
        let first = try await client.read(until: "\r\n")
        #expect(first == "HTTP/1.1 \(status) \(phrase)\r\n")
    }
}
