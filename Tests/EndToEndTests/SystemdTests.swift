import Foundation
import TestSupport
import Testing

@Suite("the units for systemd", .timeLimit(.minutes(3)))
struct SystemdTests {
    private static let folder = Repository.root + "/deploy/systemd"
    private static let examples = folder + "/examples"

    /// The units where the executable is that they start, with all examples.
    private static func installed() throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory()
        let program = try directory.write("#!/bin/sh\n", to: "program")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
        func copy(_ path: String, to name: String) throws {
            let text = try String(contentsOfFile: path, encoding: .utf8)
            try directory.write(text.replacing("/usr/bin/heimdallr-proxy", with: program), to: name)
        }
        let units = "\(directory.path)/"
        for name in ["heimdallr-proxy.service.d", "heimdallr-proxy.socket.d"] {
            try FileManager.default.createDirectory(atPath: units + name, withIntermediateDirectories: true)
        }
        for name in ["heimdallr-proxy.service", "heimdallr-proxy.socket"] { try copy("\(folder)/\(name)", to: name) }
        for name in try FileManager.default.contentsOfDirectory(atPath: examples) {
            let target =
                switch name {
                case "unix.conf": "heimdallr-proxy.socket.d/\(name)"
                case _ where name.hasSuffix(".conf"): "heimdallr-proxy.service.d/\(name)"
                default: name
                }
            try copy("\(examples)/\(name)", to: target)
        }
        return directory
    }

    @Test func `systemd finds nothing wrong with the units, and little can be done with what they start`() async throws
    {
        let units = try Self.installed()
        for name in ["heimdallr-proxy.service", "heimdallr-proxy.socket", "heimdallr-proxy-admin.socket"] {
            let verified = try await ChildProcess.run([
                "systemd-analyze", "verify", "--man=no", "\(units.path)/\(name)",
            ])
            #expect(verified.ending == .exited(0), "\(verified.transcript)")
            #expect(verified.errors.isEmpty, "\(verified.transcript)")
        }
        let judged = try await ChildProcess.run(
            ["systemd-analyze", "security", "--offline=yes", "--threshold=20"] + [
                "\(units.path)/heimdallr-proxy.service"
            ])
        #expect(judged.ending == .exited(0), "\(judged.transcript)")
    }

    private static let reasonNot: String? = geteuid() == 0 ? nil : "a sandbox needs root"

    @Test(.enabled(if: reasonNot == nil, "\(reasonNot ?? "")"))
    func `everything works in the unit's sandbox: names, TLS, the store, commands, sockets, reading again`()
        async throws
    {
        let nginx = try await Nginx.secure()
        let endpoint = try TokenEndpoint.plain()
        let (folder, state) = (try TemporaryDirectory(), try TemporaryDirectory())
        for one in [folder, state] {
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: one.path)
        }
        let (port, admin) = (try freePort(), try freePort())
        let trust = try String(contentsOfFile: nginx.authority.certificateFile, encoding: .utf8)
        let key = Data((0..<32).map { UInt8($0) }).base64EncodedString()
        func write(_ more: String) throws -> String {
            for (name, text) in [
                ("ca.pem", trust), ("secret", "s\n"), ("key", key),
                (
                    "config.yaml",
                    """
                    proxy: {listen: ["127.0.0.1:\(port)", {unix: /run/heimdallr-proxy/p.sock, mode: "0666"}]}
                    admin: {listen: "127.0.0.1:\(admin)", socket: /run/heimdallr-proxy/admin.sock}
                    store: {kind: file, directory: \(state.path)/tokens, key: {file: \(folder.path)/key}}
                    clients:
                      api:
                        token_endpoint: \(endpoint.url.replacing("127.0.0.1", with: "localhost"))
                        client_id: the-tests
                        client_secret: {command: [sh, -c, "cat \(folder.path)/secret"]}
                        allow_plaintext: true
                    upstreams:
                      - {host: api.test, client: api, url: "https://localhost:\(nginx.httpsPort)", tls: {ca_file: \(folder.path)/ca.pem}}
                    \(more)
                    """
                ),
            ] {
                let path = try folder.write(text, to: name)
                try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
            }
            return folder.path + "/config.yaml"
        }
        let file = try write("")
        let request = "GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n"
        for turn in 1...2 {
            let proxy = try ChildProcess([
                "python3", Repository.root + "/Tests/EndToEndTests/Fixtures/sandbox.py",
                Self.folder + "/heimdallr-proxy.service", state.path, "--", try Repository.executable(), "serve",
                "--config", file,
            ])
            let answer = try await eventually("it answers", within: .seconds(30)) {
                if proxy.ending != nil { throw TestFailure(proxy.transcript) }
                return try? await RawClient.exchange(port: port, request)
            }
            #expect(answer.status == 200, "\(answer.text)\n\(proxy.transcript)")
            #expect(answer.text.contains("authorization: Bearer \(TokenEndpoint.plainToken)"), "\(answer.text)")
            // The second one has it from the store: it knows how long it was away.
            #expect(endpoint.requests.count == 1, "turn \(turn): \(proxy.transcript)")
            let ready = try await RawClient.exchange(
                port: admin, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            #expect(ready.status == 200)
            _ = try write("#")
            proxy.signal(SIGHUP)
            try await eventually("it has read again") { proxy.errors.contains("was read again and is in use") }
            #expect(!proxy.errors.contains(" error "), "\(proxy.transcript)")
            #expect(try await proxy.stop() == .exited(0), "\(proxy.transcript)")
        }
    }
}
