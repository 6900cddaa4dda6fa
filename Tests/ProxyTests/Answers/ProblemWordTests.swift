import Configuration
import CurlTransport
import Foundation
import HTTPMessage
import Heimdallr
import Reactor
import Reports
import TestSupport
import Testing
import WireText

@testable import Proxy

@Suite("docs/errors.md explains every problem")
struct ProblemWordTests {
    private static let page = try? String(contentsOfFile: "\(Repository.root)/docs/errors.md", encoding: .utf8)

    /// By the word that stands as its heading, without the administration's.
    private func sections() throws -> [String: String] {
        let page = try #require(Self.page)
        var sections: [String: String] = [:]
        for part in page.components(separatedBy: "\n### ").dropFirst() {
            let name = String(part.prefix { $0 != "\n" })
            guard !name.hasPrefix("admin-") else { continue }
            #expect(sections[name] == nil, "\(name) twice")
            sections[name] = part.components(separatedBy: "\n## ").first
        }
        return sections
    }

    private static let near = HostPattern(wildcard: false, host: .name("api.example.com"), port: nil)

    /// One of each word.
    private static let all: [Problem] =
        [
            Problem(MessageError(status: 400, detail: "The request line is malformed.")), .slowHead, .bodyCut,
            .bodyTooLarge,
            .connectRefused.connecting(to: Authority(host: .name("api.example.com"), port: 443)),
            .tunnelNotListed, .otherAuthority, .schemeNotSupported, .hostMissing,
            .unknownHost(Authority(host: .name("api.exmaple.com"), port: nil), .http, near: near), .notCovered,
            .notForCaller, .userRequired, .ambiguousPath, .wholeServer, .foreignHost, .webPage, .ownCredential,
            .methodOverride, .pathOverride, .destinationNotCovered, .queryNeeded, .signsInItself, .bodyNotSignable,
            .signedChunks,
            .bytesBeforeUpgrade, .callerTokenNeeded, .callerTokenRefused,
            Problem(CallerRefusal.tooManyNew(retryAfter: .seconds(5))), .loop, .circle, .noCredential, .draining,
            .internalError, .unaskedUpgrade, .responseTimeout, .expectationFailed,
        ] + tokens + transport

    private static let tokens = [
        HeimdallrError.needsAuthentication, .rejectedByResource(retryAfter: .seconds(4)),
        .clientRefused(.status(401), retryAfter: .seconds(10)),
        .tokenEndpointUnavailable(.status(503), retryAfter: .seconds(2)),
    ].map {
        Problem($0, client: "items") { _ in
            SignInHint(advice: "open http://127.0.0.1:8081/login/items", url: "http://127.0.0.1:8081/login/items")
        }
    }

    private static let transport = [
        TransportError.Kind.nameNotResolved, .nameTimedOut, .connectionRefused, .connectionFailed, .connectionTimedOut,
        .shortage(.descriptors), .connectionLimit, .addressDenied, .tlsHandshake, .tlsCertificate, .tlsConfiguration,
        .proxy, .connectionLost,
        .responseTruncated, .responseMalformed,
    ].map { Problem(TransportError($0, message: "")) }

    @Test func `a gRPC caller gets the sentences, percent-encoded, and the address of the sign-in`() throws {
        let problem = try #require(Self.tokens.first)
        var fields = ByteBuffer()
        problem.appendCallFields(to: &fields)
        let lines = fields.bytes.text.components(separatedBy: "\r\n")
        #expect(lines.contains("Content-Type: application/grpc"))
        #expect(lines.contains("grpc-status: 16"))
        #expect(lines.contains("Proxy-Status: heimdallr-proxy; error=proxy_internal_response"))
        let message = try #require(lines.first { $0.hasPrefix("grpc-message: ") })
        #expect(message.hasPrefix("grpc-message: A sign-in is needed. "))
        #expect(message.hasSuffix(" open http://127.0.0.1:8081/login/items."))
        var other = problem
        other.detail = "100 % at Zürich\n"
        let text = PercentEncoding.grpcMessage.encode(other.message)
        #expect(
            text == "A sign-in is needed. 100 %25 at Z%C3%BCrich%0A http://127.0.0.1:8081/login/items")
    }

    /// The answer's bytes, without Date and the fields common to all answers.
    private static func example(_ problem: Problem) -> String {
        let isTokens = tokens.contains(problem)
        let isUpstreams = transport.contains(problem) || isTokens
        var text = "HTTP/1.1 \(problem.status) \(problem.phrase)\n"
        text += "Proxy-Status: heimdallr-proxy; error=\(problem.error)\n"
        if let wait = problem.retryAfter { text += "Retry-After: \(wait.components.seconds)\n" }
        text += "\n"
        let body = problem.document(
            client: isTokens ? "items" : nil, upstream: isUpstreams ? "api.example.com" : nil)
        return text + String(decoding: body, as: UTF8.self)
    }

    @Test func `each word has its section, and each section its word`() throws {
        let sections = try sections()
        #expect(Set(sections.keys) == Set(ProblemWord.allCases.map(\.rawValue)))
        #expect(Set(Self.all.map(\.word)) == Set(ProblemWord.allCases))
        for (word, text) in sections {
            for part in ["**Cause.** ", "**At fault.** ", "**Remedy.** "] {
                #expect(text.contains(part), "\(word): \(part)")
            }
        }
    }

    /// The page with the table and the examples as `Problem` has them.
    private static func generated(_ page: String) throws -> String {
        var table =
            "| Word | Status | gRPC | Proxy-Status error | Reason phrase, for example |\n|---|---|---|---|---|\n"
        for heading in page.matches(of: /\n### ([a-z-]+)/) {
            guard let problem = all.first(where: { $0.word.rawValue == heading.1 }) else { continue }
            let word = problem.word.rawValue
            table +=
                "| [`\(word)`](#\(word)) | \(problem.status) | \(problem.word.grpcStatus.code) | `\(problem.error)` | "
            table += "\(problem.phrase) |\n"
        }
        var page = page.replacing(/\| Word \| Status \|.*\n(\|.*\n)*/, with: table)
        for problem in all {
            let word = problem.word.rawValue
            let heading = try #require(page.firstRange(of: "\n### \(word)\n"), "\(word)")
            let example = try #require(page[heading.upperBound...].firstMatch(of: /```\n[\s\S]*?```/), "\(word)")
            page.replaceSubrange(example.range, with: "```\n\(self.example(problem))```")
        }
        return page
    }

    /// `HEIMDALLR_WRITE_DOCS=1 swift test --filter ProblemWordTests` writes them.
    @Test func `the table and the examples are generated from Problem`() throws {
        let page = try #require(Self.page)
        let generated = try Self.generated(page)
        if ProcessInfo.processInfo.environment["HEIMDALLR_WRITE_DOCS"] != nil {
            try generated.write(toFile: "\(Repository.root)/docs/errors.md", atomically: true, encoding: .utf8)
        } else {
            #expect(page == generated)
        }
    }
}
