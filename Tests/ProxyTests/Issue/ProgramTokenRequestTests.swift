import Foundation
import HTTPMessage
import TestSupport
import Testing

@testable import Configuration
@testable import Proxy

@Suite("Token requests of programs are read as RFC 6749 says, and as programs send them")
struct ProgramTokenRequestTests {
    private func read(_ body: String, _ fields: [String] = []) throws -> Result<ProgramTokenRequest, Problem> {
        let lines = ["POST /token HTTP/1.1", "Host: idp.test"] + fields + ["", ""]
        let bytes = Array(lines.joined(separator: "\r\n").utf8)
        var head = RequestHead()
        _ = try head.parse(bytes.span, limits: HeadLimits(maxBytes: 4096, maxFields: 32))
        do throws(Problem) {
            return .success(try ProgramTokenRequest(head, bytes.span, body: Array(body.utf8)))
        } catch {
            return .failure(error)
        }
    }

    private static func basic(_ pair: String) -> String {
        "Authorization: Basic \(Data(pair.utf8).base64EncodedString())"
    }

    private static let json = "Content-Type: application/json; charset=utf-8"
    private static let assertion = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="

    private static func jwt(_ claims: String) -> String {
        func part(_ text: String) -> String {
            Data(text.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
                .replacing("=", with: "")
        }
        return "\(part(#"{"alg":"RS256"}"#)).\(part(claims)).c2lnbmF0dXJl"
    }

    @Test func `the ID and secret come from Basic, raw and form-encoded, and from the body`() throws {
        func senders(_ body: String, _ fields: [String] = []) throws -> [[String?]] {
            try read("grant_type=client_credentials\(body)", fields).get().senders.map { [$0.id, $0.secret] }
        }
        #expect(try senders("", [Self.basic("me:a%2Fb+c")]) == [["me", "a%2Fb+c"], ["me", "a/b c"]])
        #expect(try senders("", [Self.basic("me:plain")]) == [["me", "plain"]])
        #expect(try senders("", [Self.basic("me:100%")]) == [["me", "100%"]])
        #expect(try senders("&client_id=me&client_secret=a%2Fb") == [["me", "a/b"]])
        #expect(try senders("&client_id=me") == [["me", nil]])
        // Some programs repeat the ID beside Basic.
        #expect(try senders("&client_id=me&client_secret=s", [Self.basic("me:s")]) == [["me", "s"]])
        #expect(try senders("&client_assertion=\(Self.jwt(#"{"iss":"me","sub":"me"}"#))") == [["me", nil]])
    }

    @Test func `a parameter or claim of another type is refused, and never looks like none`() throws {
        for body in [
            #"{"grant_type":"client_credentials","client_id":"me","scope":["a"]}"#,
            #"{"grant_type":"password","client_id":"me","username":5,"password":"x"}"#,
        ] { #expect(throws: Problem.self) { _ = try read(body, [Self.json]).get() } }
        for claims in [
            #"{"iss":"robot","sub":5}"#, #"{"iss":"robot","sub":["ann"]}"#, #"{"iss":"robot","scope":["a"]}"#,
        ] { #expect(throws: Problem.self) { _ = try read(Self.assertion + Self.jwt(claims)).get() } }
        #expect(
            try read(#"{"grant_type":"client_credentials","client_id":"me","scope":null}"#, [Self.json]).get().scope
                == nil)
    }

    @Test func `each grant gives its subject, scopes and refresh token`() throws {
        let password = try read("grant_type=password&username=ann&password=x&client_id=me&scope=a+openid+b").get()
        #expect(password.subject == "ann" && password.scopes == ["a", "b"] && password.scope == "a openid b")
        let refresh = try read("grant_type=refresh_token&refresh_token=r&client_id=me").get()
        #expect(refresh.refreshToken == "r" && refresh.subject == nil && refresh.scope == nil)
        let google = try read(Self.assertion + Self.jwt(#"{"iss":"robot@x.test","scope":"a b"}"#)).get()
        #expect(google.senders == [.init(id: "robot@x.test")] && google.scopes == ["a", "b"] && google.scope == nil)
        #expect(google.subject == nil)
        let delegated = try read(Self.assertion + Self.jwt(#"{"iss":"robot","sub":"ann"}"#)).get()
        #expect(delegated.subject == "ann")
        let own = Self.jwt(#"{"iss":"robot","sub":"robot"}"#)
        #expect(try read(Self.assertion + own).get().subject == nil)
        #expect(try read(Self.assertion + own, [Self.basic("robot:s")]).get().subject == nil)
        // A person that signs for itself is not the program that authenticates.
        #expect(try read(Self.assertion + own, [Self.basic("me:s")]).get().subject == "robot")
        let json = try read(#"{"grant_type":"client_credentials","client_id":"me","n":1}"#, [Self.json]).get()
        #expect(json.senders == [.init(id: "me")])
    }

    @Test(arguments: [
        ("", "invalid_request"), ("client_id=me", "invalid_request"), ("grant_type", "unsupported_grant_type"),
        ("grant_type=client_credentials&client_id=me&client_id=me", "invalid_request"),
        ("grant_type=client_credentials&client_id=%zz", "invalid_request"),
        ("grant_type=client_credentials", "invalid_client"),
        ("grant_type=refresh_token&client_id=me", "invalid_request"),
        ("grant_type=password&client_id=me&username=ann", "invalid_request"),
        ("grant_type=authorization_code&code=x&client_id=me", "unsupported_grant_type"),
        ("grant_type=urn:ietf:params:oauth:grant-type:device_code&client_id=me", "unsupported_grant_type"),
        ("grant_type=urn:ietf:params:oauth:grant-type:token-exchange&client_id=me", "unsupported_grant_type"),
        (assertion + "a.b.c", "invalid_grant"), (assertion + jwt("{}"), "invalid_grant"),
        // An id token can't be made.
        (assertion + jwt(#"{"iss":"robot","target_audience":"x"}"#), "invalid_grant"),
        ("grant_type=client_credentials&client_id=other&client_assertion=" + jwt(#"{"sub":"me"}"#), "invalid_client"),
    ])
    func `a request that says nothing clear is refused by a word of OAuth`(body: String, error: String) throws {
        guard case .failure(let problem) = try read(body) else {
            Issue.record("not refused")
            return
        }
        #expect(problem.oauthError == error)
    }

    @Test func `two ways to name the program that differ are refused`() throws {
        for (body, fields) in [
            ("&client_id=other", [Self.basic("me:s")]), ("&client_secret=other", [Self.basic("me:s")]),
            ("", [Self.basic("me:s"), Self.basic("me:s")]),
            ("&client_assertion=\(Self.jwt(#"{"sub":"me"}"#))", [Self.basic("me:s")]),
        ] {
            guard case .failure = try read("grant_type=client_credentials\(body)", fields) else {
                Issue.record("not refused: \(body)")
                continue
            }
        }
        let doubled = #"{"grant_type":"client_credentials","client_id":"me","client_id":"you"}"#
        guard case .failure(Problem(.tokenRequestMalformed)) = try read(doubled, [Self.json]) else {
            Issue.record("a repeated member passes")
            return
        }
    }

    // MARK: Entries

    private func chosen(
        _ entries: [IssueSettings], _ body: String, secrets: [Int: String] = [:], refresh: [Int: String] = [:]
    ) throws -> Result<String, Problem> {
        let request = try read(body).get()
        do throws(Problem) {
            let entry = try IssuePhase.choose(among: entries, request) { entry, part, text in
                guard let wanted = (part == 0 ? secrets : refresh)[entry] else { return true }
                return text == wanted
            }
            return .success(entry.client)
        } catch {
            return .failure(error)
        }
    }

    private func entry(_ client: String, _ id: String, scope: [String] = [], subject: String? = nil) -> IssueSettings {
        var entry = IssueSettings(client: client, clientID: id)
        (entry.scope, entry.subject) = (scope, subject)
        return entry
    }

    @Test func `the first entry that fits wins, and the scope chooses between two APIs`() throws {
        let entries = [
            entry("graph", "me", scope: ["graph/.default"]), entry("vault", "me", scope: ["vault/.default"]),
            entry("rest", "me"),
        ]
        let ask = "grant_type=client_credentials&client_id=me"
        #expect(try chosen(entries, ask) == .success("graph"))
        #expect(try chosen(entries, ask + "&scope=vault/.default") == .success("vault"))
        #expect(try chosen(entries, ask + "&scope=vault/.default+graph/.default") == .success("rest"))
        #expect(try chosen(Array(entries[..<2]), ask + "&scope=other") == .failure(Problem(.tokenRequestScope)))
        #expect(
            try chosen(entries, "grant_type=client_credentials&client_id=you") == .failure(Problem(.tokenRequestClient))
        )
        #expect(try chosen(entries, ask + "&client_secret=x", secrets: [0: "s", 1: "s", 2: "x"]) == .success("rest"))
        #expect(try chosen(entries, ask, secrets: [0: "s", 1: "s", 2: "s"]) == .failure(Problem(.tokenRequestClient)))
    }

    @Test func `a person that no entry names gets no other person's placeholder`() throws {
        let entries = [entry("robot", "me"), entry("ann", "me", subject: "ann")]
        let ask = "grant_type=password&client_id=me&password=x&username="
        #expect(try chosen(entries, ask + "ann") == .success("ann"))
        #expect(try chosen(entries, ask + "bob") == .failure(Problem(.tokenRequestGrant)))
        #expect(try chosen(entries, "grant_type=client_credentials&client_id=me") == .success("robot"))
        let only = [entry("ann", "me", subject: "ann")]
        #expect(try chosen(only, "grant_type=client_credentials&client_id=me") == .failure(Problem(.tokenRequestGrant)))
        let bySub = Self.assertion + Self.jwt(#"{"iss":"me","sub":"bob"}"#)
        #expect(try chosen(entries, bySub) == .failure(Problem(.tokenRequestGrant)))
    }

    @Test func `an entry's refresh token must be sent`() throws {
        let entries = [entry("ann", "me"), entry("bob", "me")]
        let ask = "grant_type=refresh_token&client_id=me&refresh_token="
        #expect(try chosen(entries, ask + "b", refresh: [0: "a", 1: "b"]) == .success("bob"))
        #expect(try chosen(entries, ask + "c", refresh: [0: "a", 1: "b"]) == .failure(Problem(.tokenRequestGrant)))
        let other = "grant_type=client_credentials&client_id=me"
        #expect(try chosen(entries, other, refresh: [0: "a", 1: "b"]) == .failure(Problem(.tokenRequestGrant)))
    }
}
