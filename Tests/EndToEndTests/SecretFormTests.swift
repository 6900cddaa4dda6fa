import Foundation
import TestSupport
import Testing

@Suite("secrets in a wrong form, by the executable", .timeLimit(.minutes(2)))
struct SecretFormTests {
    private static let secret = "damaged-secret-0123456789"

    @Test func `the form of a secret from a command or a changed file is judged at the start, later, and by doctor`()
        async throws
    {
        let endpoint = try TokenEndpoint.plain()
        let origin = try RecordingOrigin { try $0.respond(body: "ok") }
        let words = "[sh, -c, \"printf '\\\\357\\\\273\\\\277\(Self.secret)'\"]"
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                clients: [
                    ProxyConfiguration.client(
                        tokenEndpoint: endpoint.url, "client_id: c\nclient_secret: {command: \(words)}")
                ],
                upstreams: [
                    ProxyConfiguration.upstream(url: origin.url),
                    "  - {host: fixed.test, url: \(origin.url), inject: {header: X-Key, value: {file: FOLDER/fixed}}, allow_plaintext: true}",
                ], files: ["fixed": Self.secret]))
        try await eventually("the command's") {
            proxy.log.contains(
                "a secret is most likely damaged from=\"command sh\" reason=\"it begins with a byte order mark")
        }
        #expect(!proxy.log.contains("from=\"file"))
        try proxy.directory.write("\u{FEFF}\(Self.secret)", to: "fixed")
        try await eventually("the file's") {
            _ = try await proxy.get("http://fixed.test/")
            return proxy.log.contains("a secret is most likely damaged from=\"file \(proxy.directory.path)/fixed\"")
        }
        let file = proxy.directory.path(of: "config.yaml")
        let doctor = try await RunningProxy.run(["doctor", "--config", file])
        for source in ["command sh", "file \(proxy.directory.path)/fixed"] {
            #expect(
                doctor.output.contains("the secret of \(source) begins with a byte order mark"),
                "\(doctor.transcript)")
        }
        let check = try await RunningProxy.run(["check", "--config", file])
        #expect(
            check.ending == .exited(0) && check.errors.contains("save it as UTF-8 without a byte order mark"),
            "\(check.transcript)")
        for text in [proxy.log, doctor.transcript, check.transcript] { #expect(!text.contains(Self.secret)) }
    }
}
