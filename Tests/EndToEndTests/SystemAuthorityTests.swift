import Foundation
import TestSupport
import Testing

@Suite("the system's authorities count as they are now", .timeLimit(.minutes(3)))
struct SystemAuthorityTests {
    private static let obstacle: String? = geteuid() == 0 ? nil : "mount namespaces need root"

    /// The system's bundle, in a mount namespace of the proxy.
    private struct Bundle {
        let folder = try? TemporaryDirectory()
        var file: String { folder?.path(of: "bundle.pem") ?? "" }
        var wrapper: [String] {
            let mount = "mount --bind \(file) /etc/ssl/certs/ca-certificates.crt && exec \"$@\""
            return ["unshare", "--mount", "sh", "-c", mount, "sh"]
        }

        /// Writes it in place, because it is a mount.
        func write(_ authorities: PrivateCA...) throws {
            try write(
                authorities.map { try String(contentsOfFile: $0.certificateFile, encoding: .utf8) }.joined())
        }

        func write(_ text: String) throws { try text.write(toFile: file, atomically: false, encoding: .utf8) }
    }

    @Test(.disabled(if: obstacle != nil, "\(obstacle ?? "")"), arguments: [false, true])
    func `an added root counts at the next connection, and no connection or session outlives a removed one`(
        hasOwnFile: Bool
    ) async throws {
        let nginx = try await Nginx.secure()
        let (other, bundle) = (try await PrivateCA(), Bundle())
        try bundle.write(other)
        let proxy = try await RunningProxy(
            to: "https://localhost:\(nginx.httpsPort)",
            more: hasOwnFile ? "tls: {ca_file: \(other.certificateFile)}" : "", under: bundle.wrapper)
        #expect(try await proxy.get("http://api.test/").status == 502)
        for _ in 0..<2 {
            try bundle.write(other, nginx.authority)
            try await eventually("it is trusted") { try await proxy.get("http://api.test/").status == 200 }
            for _ in 0..<3 { #expect(try await proxy.get("http://api.test/").status == 200) }
            try bundle.write(other)
            try await eventually("it is trusted no longer") { try await proxy.get("http://api.test/").status == 502 }
        }
        #expect(proxy.log.contains(" info the system's authorities have changed; new connections use them "))
    }

    @Test(.disabled(if: obstacle != nil, "\(obstacle ?? "")"))
    func `token endpoints and next proxies are trusted by the same bundle`() async throws {
        let nginx = try await Nginx.secure()
        let origin = try RecordingOrigin()
        let (other, bundle) = (try await PrivateCA(), Bundle())
        try bundle.write(other)
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                admin: "",
                clients: [ProxyConfiguration.client(tokenEndpoint: "https://localhost:\(nginx.httpsPort)/token")],
                upstreams: [
                    ProxyConfiguration.upstream("api.test", url: origin.url),
                    "  - {host: next.test, url: \(origin.url), proxy: \"https://localhost:\(nginx.httpsPort)\"}",
                ]), under: bundle.wrapper)
        let socket = proxy.directory.path(of: "admin.sock")
        let distrust = "unable to get local issuer certificate"
        @Sendable func refreshed() async throws -> String {
            _ = try await RunningProxy.run(["refresh", "api", "--socket", socket])
            let status = try await RunningProxy.run(["status", "--exit-zero", "--socket", socket]).output
            return status.components(separatedBy: "\nUpstreams:")[0]
        }
        try await eventually("the token endpoint is not trusted") { try await refreshed().contains(distrust) }
        let before = try await proxy.get("http://next.test/")
        #expect(before.status == 502 && before.text.contains("tls-certificate"), "\(before.text)")
        try bundle.write(other, nginx.authority)
        try await eventually("the token endpoint is trusted") { try await !refreshed().contains(distrust) }
        // This server is no proxy, but its answer shows that it was asked.
        let after = try await proxy.get("http://next.test/")
        #expect(!after.text.contains("tls-certificate"), "\(after.text)")
    }

    @Test(.disabled(if: obstacle != nil, "\(obstacle ?? "")"))
    func `a damaged bundle changes nothing, and status and doctor say so`() async throws {
        let nginx = try await Nginx.secure()
        let bundle = Bundle()
        try bundle.write(nginx.authority)
        let proxy = try await RunningProxy(
            to: "https://localhost:\(nginx.httpsPort)", admin: "", under: bundle.wrapper)
        #expect(try await proxy.get("http://api.test/").status == 200)
        try bundle.write("horse")
        try await eventually("the log says so") {
            proxy.log.contains(" warning the system's authorities can't be used; the last good ones stay in use ")
        }
        #expect(try await proxy.get("http://api.test/").status == 200)
        let file = proxy.directory.path(of: "config.yaml")
        let sentence = "/etc/ssl/certs/ca-certificates.crt: it can't be used"
        let status = try await RunningProxy.run(["status", "--exit-zero", "--config", file])
        #expect(status.output.contains(sentence), "\(status.transcript)")
        let doctor = try await RunningProxy.run(["doctor", "--config", file])
        #expect(
            doctor.output.contains("the running proxy uses an earlier content of \(sentence)"), "\(doctor.transcript)")
    }

    @Test(.disabled(if: obstacle != nil, "\(obstacle ?? "")"))
    func `the bundle that programs get from exec has the same authorities`() async throws {
        let bundle = Bundle()
        let (first, second) = (try await PrivateCA(commonName: "first"), try await PrivateCA(commonName: "second"))
        try bundle.write(first)
        let proxy = try await RunningProxy(
            to: try RecordingOrigin(), upstream: "intercept: true", under: bundle.wrapper)
        let folder = try await eventually("its folder") { proxy.trustFolder }
        @Sendable func hasSecond() throws -> Bool {
            let text = try String(contentsOfFile: "\(folder)/bundle.pem", encoding: .utf8)
            let wanted = try String(contentsOfFile: second.certificateFile, encoding: .utf8)
            return text.contains(wanted.split(separator: "\n").dropFirst().prefix(4).joined(separator: "\n"))
        }
        #expect(try !hasSecond())
        try bundle.write(first, second)
        try await eventually("it is there") { try hasSecond() }
    }
}
