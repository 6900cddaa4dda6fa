import Configuration
import Heimdallr
import Proxy
import TestSupport
import Testing

@Suite("UNAUTHENTICATED of gRPC is a refused token", .stopsProxies, .timeLimit(.minutes(1)))
struct RefusedTokenTests {
    /// Refuses T1 in the given form, takes every other token.
    private static func refusing(
        _ refuse: @escaping @Sendable (OriginExchange) throws -> Void
    ) -> RecordingOrigin.Handler {
        { exchange in
            guard exchange.head.field("Authorization") == "Bearer T1" else { return try exchange.answer(status: 0) }
            try refuse(exchange)
        }
    }

    private func expectCured(_ response: RawResponse) {
        #expect(response.text == OriginExchange.messageOfGRPC)
        #expect(response.field("grpc-status") == nil)
        #expect(response.trailers.value("grpc-status") == "0")
    }

    @Test(arguments: ["application/grpc", "application/grpc+proto", "application/grpc; a=b", "Application/gRPC+json"])
    func `UNAUTHENTICATED in a head alone gets a new token, and the call goes once more`(type: String) async throws {
        let proxy = try await ProxyInProcess(
            isLogged: true, answer: Self.refusing { try $0.status(16) })
        expectCured(try await proxy.send(call(type: type)))
        let requests = proxy.origin.requests
        #expect(requests.map(\.authorization) == [["Bearer T1"], ["Bearer T2"]])
        #expect(requests.map(\.text) == Array(repeating: "\0\0\0\0\u{3}abc", count: 2))
        #expect(proxy.endpoint.requests.count == 2)
        try await eventually("the record") { proxy.log.all.count == 1 }
        #expect(proxy.log.all.first?.grpcStatus == 0)
        #expect(proxy.log.all.first?.wasReplayed == true)
    }

    @Test func `UNAUTHENTICATED in trailers that come at once, without a message, gets a new token`() async throws {
        let proxy = try await ProxyInProcess(answer: Self.refusing { try $0.answer([], status: 16) })
        expectCured(try await proxy.send(call()))
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"], ["Bearer T2"]])
    }

    @Test func `UNAUTHENTICATED behind a message passes, and the next call has a new token`() async throws {
        let proxy = try await ProxyInProcess(answer: Self.refusing { try $0.answer(status: 16) })
        let response = try await proxy.send(call())
        #expect(response.text == OriginExchange.messageOfGRPC)
        #expect(response.trailers.value("grpc-status") == "16")
        #expect(response.trailers.value("grpc-message") == "said%20so")
        expectCured(try await proxy.send(call()))
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"], ["Bearer T2"]])
    }

    @Test func `a head is not kept for trailers that come late`() async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess(
            answer: Self.refusing { exchange in
                try exchange.readBody()
                try exchange.startChunked(fields: [("Content-Type", "application/grpc")])
                gate.wait()
                try exchange.lastChunk(trailers: [("grpc-status", "16")])
            })
        let client = try await proxy.connect(sending: call())
        _ = try await client.read(until: "\r\n\r\n")
        gate.open()
        _ = try await client.read(until: "grpc-status: 16\r\n\r\n")
        expectCured(try await proxy.send(call()))
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"], ["Bearer T2"]])
    }

    @Test func `a challenge decides about the token where there is one`() async throws {
        let scope = ("WWW-Authenticate", "Bearer error=\"insufficient_scope\"")
        let proxy = try await ProxyInProcess(answer: Self.refusing { try $0.status(16, fields: [scope]) })
        let response = try await proxy.send(call())
        #expect(response.field("grpc-status") == "16")
        #expect(response.field("WWW-Authenticate") == scope.1)
        #expect(proxy.origin.requests.count == 1 && proxy.endpoint.requests.count == 1)
    }

    @Test(arguments: [0, 1, 7, 13, 14, 17, 999])
    func `another gRPC status passes, and the token stays`(status: Int) async throws {
        let proxy = try await ProxyInProcess(isLogged: true) { try $0.status(status) }
        #expect(try await proxy.send(call()).field("grpc-status") == String(status))
        #expect(proxy.origin.requests.count == 1 && proxy.endpoint.requests.count == 1)
        try await eventually("the record") { proxy.log.all.count == 1 }
        #expect(proxy.log.all.first?.grpcStatus == UInt16(status))
    }

    @Test(arguments: ["text/plain", "application/grpc-web", "application/grpc-web+proto", "application/grpcx"])
    func `a gRPC status in the answer to another request means nothing`(type: String) async throws {
        let proxy = try await ProxyInProcess(isLogged: true) { try $0.status(16) }
        #expect(try await proxy.send(call(type: type)).field("grpc-status") == "16")
        #expect(proxy.origin.requests.count == 1 && proxy.endpoint.requests.count == 1)
        try await eventually("the record") { proxy.log.all.count == 1 }
        #expect(proxy.log.all.first.map { $0.grpcStatus == nil } == true)
    }

    @Test(arguments: [false, true])
    func `a second UNAUTHENTICATED passes, and a later one starts no token request at once`(
        inTrailers: Bool
    ) async throws {
        let proxy = try await ProxyInProcess {
            inTrailers ? try $0.answer([], status: 16) : try $0.status(16, fields: [("grpc-message", "never")])
        }
        let response = try await proxy.send(call())
        #expect((inTrailers ? response.trailers.value("grpc-status") : response.field("grpc-status")) == "16")
        #expect(inTrailers || response.field("grpc-message") == "never")
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"], ["Bearer T2"]])
        for _ in 0..<3 { _ = try await proxy.send(call()) }
        #expect(proxy.endpoint.requests.count <= 3)
    }

    @Test func `on_unauthorized: pass lets UNAUTHENTICATED through, and the next call gets a new token`() async throws {
        let proxy = try await ProxyInProcess(
            upstream: "on_unauthorized: pass", answer: Self.refusing { try $0.answer([], status: 16) })
        #expect(try await proxy.send(call()).trailers.value("grpc-status") == "16")
        expectCured(try await proxy.send(call()))
    }

    @Test func `without a new token UNAUTHENTICATED passes as it came`() async throws {
        let endpoint = try TokenEndpoint { _, number in number == 0 ? .token("T1") : .status(503) }
        let proxy = try await ProxyInProcess(upstream: "token_wait: 300ms", endpoint: endpoint) {
            try $0.answer([], status: 16)
        }
        let response = try await proxy.send(call())
        #expect(response.status == 200 && response.body.isEmpty)
        #expect(response.trailers.value("grpc-status") == "16")
    }

    @Test(arguments: [false, true])
    func `a gRPC message that is not kept is not sent again`(inTrailers: Bool) async throws {
        let proxy = try await ProxyInProcess(
            upstream: "max_replay_bytes: 4",
            answer: Self.refusing { inTrailers ? try $0.answer([], status: 16) : try $0.status(16) })
        let response = try await proxy.send(call())
        #expect((inTrailers ? response.trailers.value("grpc-status") : response.field("grpc-status")) == "16")
        #expect(proxy.origin.requests.count == 1)
    }
}
