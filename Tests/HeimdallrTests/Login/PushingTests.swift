import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `A pushed authorization request` {
    private static let callback = LoginServer.callback

    private func server(requires: Bool = false, offers: Bool = true) throws -> LoginServer {
        let server = try LoginServer()
        var more: [String] = []
        if offers { more.append(#""pushed_authorization_request_endpoint":"\#(server.url)/par""#) }
        if requires { more.append(#""require_pushed_authorization_requests":true"#) }
        server[LoginServer.wellKnown] = .json(server.metadata(more: more.joined(separator: ",")))
        server["/par"] = .json(#"{"request_uri":"urn:ietf:x:1","expires_in":90}"#, status: 201)
        return server
    }

    @Test("where pushing is offered, the browser carries a reference, with response_type and client_id beside it")
    func pushed() async throws {
        let server = try server()
        let attempt = try await server.client(secret: "hush") { $0.scope = ["read"] }
            .beginLogin(redirectURI: Self.callback)
        let sent = ReadQuery(attempt.url)
        #expect(sent.pairs.map(\.name) == ["tenant", "response_type", "client_id", "request_uri"])
        #expect(sent["response_type"] == "code")
        #expect(sent["client_id"] == "app")
        #expect(sent["request_uri"] == "urn:ietf:x:1")
        let pushed = try #require(server.requests("/par").first)
        #expect(pushed.field("Authorization") == "Basic YXBwOmh1c2g=", "as at the token endpoint")
        let form = ReadQuery(query: pushed.text)
        #expect(form["state"] == attempt.state)
        #expect(form["client_id"] == "app")
        #expect(form["code_challenge_method"] == "S256")
        #expect(form["response_type"] == "code")
        #expect(form["redirect_uri"] == Self.callback)
        #expect(form["scope"] == "read")
        #expect(form["client_secret"] == nil)
    }

    @Test("the configuration's own address for pushed requests is used, whatever the metadata says")
    func configured() async throws {
        let server = try server(offers: false)
        server["/mine"] = server["/par"]
        for mode in [PushedAuthorization.auto, .required] {
            let attempt = try await server.client {
                $0.pushedAuthorizationEndpoint = server.url + "/mine"
                $0.pushedAuthorization = mode
            }.beginLogin(redirectURI: Self.callback)
            #expect(ReadQuery(attempt.url)["request_uri"] == "urn:ietf:x:1")
        }
        #expect(throws: HeimdallrConfigurationError.self) {
            try server.client { $0.pushedAuthorizationEndpoint = "http://user@127.0.0.1/par" }
        }
    }

    @Test("with pushing off nothing is pushed, though it is offered or required")
    func off() async throws {
        for requires in [true, false] {
            let server = try server(requires: requires)
            let attempt = try await server.client { $0.pushedAuthorization = .off }
                .beginLogin(redirectURI: Self.callback)
            #expect(ReadQuery(attempt.url)["state"] == attempt.state)
            #expect(server.requests("/par").isEmpty)
        }
    }

    @Test("where pushing is required, by the configuration or the metadata, nobody is sent out without it")
    func required() async throws {
        let none = try server(offers: false)
        await #expect(throws: LoginError.noEndpoint("pushed_authorization_request_endpoint")) {
            try await none.client { $0.pushedAuthorization = .required }.beginLogin(redirectURI: Self.callback)
        }
        let silent = try server(requires: true, offers: false)
        await #expect(throws: LoginError.noEndpoint("pushed_authorization_request_endpoint")) {
            try await silent.client().beginLogin(redirectURI: Self.callback)
        }
        for (mode, requires) in [(PushedAuthorization.required, false), (.auto, true)] {
            let server = try server(requires: requires)
            for (reply, error) in [
                (LoginServer.Reply(status: 500), LoginError.endpoint(.status(500))),
                (.json("{}"), .endpoint(.answer(.notAnObject))),
                (LoginServer.Reply(status: 302, fields: [("Location", "/x")]), .endpoint(.redirect(302))),
            ] {
                server["/par"] = reply
                await #expect(throws: error) {
                    try await server.client { $0.pushedAuthorization = mode }.beginLogin(redirectURI: Self.callback)
                }
            }
        }
    }

    @Test("a refused pushed request is told in the server's words and as an event, without our secrets")
    func refused() async throws {
        let server = try server()
        server["/par"] = .json(
            #"{"error":"invalid_redirect_uri","error_description":"not one of yours: hush"}"#, status: 400)
        let client = try server.client(secret: "hush")
        var events = client.events().makeAsyncIterator()
        let error = await #expect(throws: LoginError.self) {
            try await client.beginLogin(redirectURI: Self.callback)
        }
        let said = "\(try #require(error))"
        #expect(
            said.contains(
                "the server refused the pushed authorization request (PAR): invalid_redirect_uri: not one of yours: <redacted>"
            ))
        #expect(await events.next()?.kind == .loginFailed(try #require(error)))
    }

    @Test("where pushing is offered, but out of order, the browser can carry the request")
    func outOfOrder() async throws {
        let server = try server()
        for reply in [LoginServer.Reply(status: 404), .init(status: 503), .init(closes: true), .json("{}")] {
            server["/par"] = reply
            let attempt = try await server.client().beginLogin(redirectURI: Self.callback)
            #expect(ReadQuery(attempt.url)["state"] == attempt.state)
        }
    }

    @Test("an address that is printed outlives a pushed request, so it holds all of it")
    func printed() async throws {
        let server = try server()
        let attempt = try await server.client().beginLogin(redirectURI: Self.callback, opensAtOnce: false)
        #expect(ReadQuery(attempt.url)["state"] == attempt.state)
        #expect(ReadQuery(attempt.url)["request_uri"] == nil)
        #expect(server.requests("/par").isEmpty)
        let strict = try self.server(requires: true)
        await #expect(throws: LoginError.pushingRequired) {
            try await strict.client().beginLogin(redirectURI: Self.callback, opensAtOnce: false)
        }
    }
}
