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

@Suite("Problems.tsv has a row for every condition, and docs/errors.md explains it")
struct ProblemTableTests {
    private typealias Condition = Problem.Condition

    /// One of each condition, as errors make them; the examples of docs/errors.md.
    private static let all: [Problem] = requests + misses + connects + tokens + transport + tunnels + plain

    private static let requests: [Problem] =
        [
            (400, "The request line is malformed."), (414, "The request target is too long."),
            (417, "The only expectation that can be met is '100-continue'."), (431, "The head is too large."),
            (505, "Only HTTP/1.1 and HTTP/1.0 are accepted here."),
        ].map { Problem(MessageError(status: $0, detail: $1)) }
        + [
            Problem(CallerRefusal.tooManyNew(retryAfter: .seconds(5))),
            .unknownHost(Authority(host: .name("api.exmaple.com"), port: nil), .http, near: near),
            .unknownHost(Authority(host: .name("api.example.net"), port: nil), .http, near: nil),
        ]

    private static let near = HostPattern(wildcard: false, host: .name("api.example.com"), port: nil)

    private static let misses = [
        RuleMiss.Lack.path, .method, .field("x-tenant", had: "has the value `c`"),
    ].map {
        var upstream = UpstreamSettings(host: HostPattern(wildcard: false, host: .name("api.example.com"), port: nil))
        (upstream.paths, upstream.methods) = (["/v1", "/health"], ["GET", "HEAD"])
        return Problem(RuleMiss(upstream: 2, lack: $0), upstream, method: "DELETE", path: "/v2/items")
    }

    private static let connects =
        [Problem(.connectRefused), Problem(.tunnelNotListed)].flatMap {
            [
                $0.connecting(to: Authority(host: .name("api.example.com"), port: 443)),
                $0.connecting(to: Authority(host: .name("api.exmaple.com"), port: 443), near: near),
            ]
        } + [
            Problem(.connectRefused).connecting(to: Authority(host: .name("api.example.net"), port: 443), near: nil),
            Problem(.tunnelNotListed).connecting(to: Authority(host: .name("db.example.net"), port: 5432), near: nil),
        ]

    private static let tokens =
        [
            HeimdallrError.needsAuthentication, .rejectedByResource(retryAfter: .seconds(4)),
            .clientRefused(.status(401), retryAfter: .seconds(10)),
            .clientRefused(.status(404), retryAfter: .seconds(10)),
            .tokenEndpointUnavailable(.status(503), retryAfter: .seconds(2)), .deadlineExceeded(retryAfter: .zero),
            .tokenEndpointUnavailable(.store(TokenStoreError("it is full")), retryAfter: .seconds(1)),
            .clientRefused(.secret(SecretProviderError("it can't be read")), retryAfter: .seconds(1)),
        ].map { problem($0) } + [problem(.needsAuthentication, wasLost: true)]

    private static func problem(_ error: HeimdallrError, wasLost: Bool = false) -> Problem {
        let url = "http://127.0.0.1:8081/login/items"
        return Problem(error, client: "items") { _ in SignInHint(advice: "open \(url)", url: url, wasLost: wasLost) }
    }

    private static let transport =
        faults.map { Problem(TransportError($0.kind, message: $0.message)) }
        + [
            NextProxyRefusal(
                .url("http://proxy.example.com:3128"), to: Origin(scheme: .http, host: "api.example.com", port: 80),
                status: 407, challenges: [])
        ].compactMap { $0.map { Problem(TransportError($0)) } }
    private static let faults: [(kind: TransportError.Kind, message: String)] = [
        (.nameNotResolved, ""), (.nameTimedOut, ""), (.connectionRefused, ""),
        (.connectionFailed, ""), (.connectionTimedOut, ""), (.shortage(.descriptors), ""), (.connectionLimit, ""),
        (.addressDenied, ""), (.tlsHandshake, "wrong version number"), (.tlsCertificate, "certificate has expired"),
        (.tlsConfiguration, ""), (.connectionLost, ""), (.responseTruncated, ""),
        (.proxy, "CONNECT tunnel failed, response 403 (curl 56); next proxy proxy.example.com:3128 answered 403"),
        (.responseTruncated, "unexpected eof"), (.responseMalformed, ""),
        (.responseMalformed, "A field line has no name (line 2)."), (.http2Only(isSecure: true), ""),
    ]

    private static let tunnels = [
        TransportError.Kind.nameNotResolved, .connectionRefused, .connectionFailed, .connectionTimedOut,
    ].map { Problem(tunnel: TransportError($0, message: "")) }

    private static let plain = Condition.allCases.map { Problem($0) }.filter { !hasParameter($0) }

    private static func hasParameter(_ problem: Problem) -> Bool {
        let texts = problem.row.phrases.joined(separator: " ") + problem.row.sentence
        return texts.matches(of: /\{(\w+)\}/).contains { Problem.Parameter(rawValue: String($0.1)) != nil }
    }

    @Test func `a fault of the store or of a secret is not told as the token endpoint's`() {
        let errors: [HeimdallrError] = [
            .tokenEndpointUnavailable(.store(TokenStoreError("it is full")), retryAfter: .zero),
            .clientRefused(.secret(SecretProviderError("it can't be read")), retryAfter: .zero),
        ]
        for error in errors {
            let problem = Problem(error, client: "items") { _ in SignInHint(advice: "", url: nil) }
            for text in [error.description, problem.row.title, problem.phrase, problem.detail] {
                #expect(!text.contains("token endpoint") && !text.contains("authorization server"), "\(text)")
            }
        }
    }

    @Test func `each condition has one row, and each row its condition and ten cells`() throws {
        let table = try String(
            contentsOfFile: "\(Repository.root)/Sources/Proxy/Answers/Problems.tsv", encoding: .utf8)
        let rows = table.split(separator: "\n").dropFirst().map { $0.split(separator: "\t") }
        #expect(rows.map { String($0[0]) }.sorted() == Condition.allCases.map(\.rawValue).sorted())
        var errors: [String: String] = [:]
        for row in rows {
            #expect(row.count == 10, "\(row[0])")
            let answer = "\(row[3]) \(row[4])"
            #expect(errors.updateValue(answer, forKey: String(row[1])) ?? answer == answer, "\(row[1])")
            for text in row[8...9].joined(separator: " ").matches(of: /\{(\w+)\}/) {
                #expect(Problem.Parameter(rawValue: String(text.1)) != nil, "\(row[0]): \(text.0)")
            }
        }
    }

    @Test func `each text has the values of its parameters, and no value is taken for a template`() {
        #expect(Set(Self.all.map(\.condition)) == Set(Condition.allCases))
        for problem in Self.all {
            #expect((problem.phrase + problem.detail).firstMatch(of: /\{\w+\}/) == nil, "\(problem)")
        }
        let told = Problem(.needsAuthentication, client: "{advice}") { _ in SignInHint(advice: "{", url: nil) }
        #expect(told.detail == "Nobody is signed in for the OAuth client {advice}: {.")
    }

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

    private static let page = try? String(contentsOfFile: "\(Repository.root)/docs/errors.md", encoding: .utf8)

    @Test func `each word has its section with all its answers, and each section its word`() throws {
        var sections: [String: String] = [:]
        for part in try #require(Self.page).components(separatedBy: "\n### ").dropFirst() {
            let name = String(part.prefix { $0 != "\n" })
            guard !name.hasPrefix("admin-") else { continue }
            #expect(sections[name] == nil, "\(name) twice")
            // The lines of a list are filled.
            sections[name] = part.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(part.contains("\n\n**At fault.** "), "\(name)")
        }
        #expect(Set(sections.keys) == Set(Self.all.map(\.row.word)))
        for problem in Self.all {
            let answer = "`\(problem.status) \(problem.phrase)`"
            #expect(sections[problem.row.word]?.contains(answer) == true, "\(answer)")
        }
    }

    @Test func `the page has each word's status and code, and one whole answer`() throws {
        let page = try #require(Self.page)
        for problem in Self.all
        where problem.row.status == Self.all.first(where: { $0.row.word == problem.row.word })?.status {
            let (word, row) = (problem.row.word, problem.row)
            #expect(
                page.contains("| [`\(word)`](#\(word)) | \(row.status) | \(row.grpcStatus.code) | `\(row.error)` |"))
        }
        let problem = try #require(Self.all.first { $0.condition == .unknownHostNear })
        var fields = ByteBuffer()
        problem.appendFields(to: &fields)
        let body = problem.document(client: nil, upstream: nil, requestID: Array("heimdallr-1".utf8))
        let head = "HTTP/1.1 403 \(problem.phrase)\n" + fields.bytes.text.replacing("\r\n", with: "\n")
        #expect(page.contains("```\n\(head)\n\(String(decoding: body, as: UTF8.self))```"))
    }
}
