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
        isRefused.store(true, ordering: .relaxed)
        #expect(try await proxy.get("http://api.test/").status == 503)

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
}
