import Foundation
import Synchronization
import TestSupport
import Testing

@Suite struct `A client whose refresh token is dead and whose access token an API refuses` {
    @Test func `a dead refresh token is told by status, why, readiness and doctor at once, in the server's words`()
        async throws
    {
        let isRefused = Atomic(false)
        let origin = try RecordingOrigin { exchange in
            if isRefused.load(ordering: .relaxed) {
                try exchange.respond(401, fields: [("WWW-Authenticate", "Bearer error=\"invalid_token\"")], body: "")
            } else {
                try exchange.respond(body: "ok")
            }
        }
        let endpoint = try TokenEndpoint { request, _ in
            request["refresh_token"] == "R0"
                ? .token("T1", refreshToken: "R1") : .error("invalid_grant", description: "the session was ended")
        }
        let configuration = ProxyConfiguration(
            tokenEndpoint: endpoint.url, client: "grant_type: refresh_token\nrefresh_token: {file: FOLDER/seed}",
            admin: "", upstreams: ProxyConfiguration.upstream(url: origin.url), files: ["seed": "R0"])
        let proxy = try await RunningProxy(configuration)
        let file = proxy.directory.path + "/config.yaml"
        func run(_ command: String...) async throws -> ChildProcess {
            try await RunningProxy.run(command + ["--config", file])
        }
        #expect(try await proxy.get("http://api.test/").status == 200)
        #expect(try await run("doctor", "--no-token").ending == .exited(0))

        let refresh = try await run("refresh", "api")
        #expect(refresh.ending == .exited(1))
        #expect(refresh.errors.contains("the session was ended"), "\(refresh.transcript)")
        try await expectTold(proxy, run("status"))
        isRefused.store(true, ordering: .relaxed)
        let answer = try await proxy.get("http://api.test/")
        #expect(answer.status == 503)
        #expect(answer.text.contains("The sign-in for the OAuth client api was lost"), "\(answer.text)")
        #expect(answer.text.contains("write a new refresh token to the source of clients.api.refresh_token"))

        let status = try await run("status")
        #expect(status.ending == .exited(3), "\(status.transcript)")
        #expect(status.output.contains("the session was ended"), "\(status.output)")
        let why = try await run("why", "GET", "http://api.test/")
        #expect(why.output.contains("answer       503"), "\(why.transcript)")
        let ready = try await ChildProcess.output(of: [
            "curl", "-sS", "--unix-socket", proxy.directory.path + "/admin.sock", "http://localhost/readyz?strict",
        ])
        #expect(ready.contains("client api"), "\(ready)")
        let doctor = try await run("doctor", "--no-token")
        #expect(doctor.ending == .exited(1), "\(doctor.transcript)")
        #expect(doctor.output.contains("the session was ended"), "\(doctor.output)")
        #expect(endpoint.requests.filter { $0["refresh_token"] == "R0" }.count == 1)
    }

    /// Expects that the loss is told while requests still get the last token.
    private func expectTold(_ proxy: RunningProxy, _ status: ChildProcess) async throws {
        #expect(try await proxy.get("http://api.test/").status == 200)
        #expect(status.ending == .exited(3), "\(status.transcript)")
        #expect(status.output.contains("needs a sign-in"), "\(status.output)")
        #expect(status.output.contains("requests get the last token until it ends, and 503 after that"))
        let port = try await proxy.administration().port
        func get(_ path: String) async throws -> RawResponse {
            try await RawClient.exchange(
                port: port, "GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        }
        let ready = try await get("/readyz?strict")
        #expect(ready.status == 503)
        #expect(ready.text.contains("client api needs a sign-in"), "\(ready.text)")
        #expect(try await get("/readyz").status == 200)
        let state = #"heimdallr_client_state{client="api",state="needs_authentication"} 1"#
        #expect(try await get("/metrics").text.contains(state))
        let why = try await RunningProxy.run([
            "why", "GET", "http://api.test/", "--config", proxy.directory.path(of: "config.yaml"),
        ])
        #expect(!why.output.contains("answer       503"), "\(why.transcript)")
        try await eventually("the log") { proxy.log.contains("somebody has to sign in") }
    }

    @Test func `without an admin section, the answer after a lost refresh token says where to write a new one`()
        async throws
    {
        let endpoint = try TokenEndpoint([.error("invalid_grant")])
        let proxy = try await RunningProxy(
            to: RecordingOrigin(), client: "grant_type: refresh_token\nrefresh_token: {file: FOLDER/seed}",
            tokenEndpoint: endpoint, files: ["seed": "R0"])
        let answer = try await proxy.get("http://api.test/")
        #expect(answer.status == 503)
        #expect(answer.text.contains("was lost"), "\(answer.text)")
        #expect(answer.text.contains("write a new refresh token to the source of clients.api.refresh_token"))
    }
}
