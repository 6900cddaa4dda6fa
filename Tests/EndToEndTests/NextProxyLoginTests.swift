import Foundation
import TestSupport
import Testing

@Suite("logins to next proxies", .timeLimit(.minutes(2)))
struct NextProxyLoginTests {
    /// The proxy with an http:// upstream, an https:// one and a token endpoint, all behind the same next proxy.
    private func proxy(
        _ next: String, origin: RecordingOrigin, environment: [String: String?] = [:]
    ) async throws -> (proxy: RunningProxy, servers: (TokenEndpoint, Nginx)) {
        let endpoint = try TokenEndpoint.plain()
        let nginx = try await Nginx.secure()
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                clients: [ProxyConfiguration.client(tokenEndpoint: endpoint.url, "proxy: \(next)")],
                upstreams: [
                    ProxyConfiguration.upstream("plain.test", url: origin.url, "proxy: \(next)"),
                    ProxyConfiguration.upstream(
                        "secure.test", url: "https://localhost:\(nginx.httpsPort)",
                        "proxy: \(next)\ntls: {ca_file: \(nginx.authority.certificateFile)}"),
                ]), environment: environment)
        return (proxy, (endpoint, nginx))
    }

    @Test(arguments: ["basic", "digest", "ntlm"])
    func `a next proxy with a name and password carries tokens, http and https`(method: String) async throws {
        let squid = try await Squid(method == "basic" ? .basic : method == "digest" ? .digest : .ntlm)
        let origin = try RecordingOrigin()
        let url = "{url: \"http://ann:pw-of-ann@localhost:\(squid.port)\", auth: \(method)}"
        let (proxy, servers) = try await proxy(url, origin: origin)
        defer { withExtendedLifetime(servers) {} }
        for _ in 0..<2 {
            let answer = try await proxy.get("http://plain.test/x")
            #expect(answer.status == 200, "\(answer.text)")
            #expect(try await proxy.get("http://secure.test/").status == 200)
        }
        #expect(origin.requests.allSatisfy { $0.field("Authorization") == "Bearer \(TokenEndpoint.plainToken)" })
        #expect(origin.requests.allSatisfy { $0.field("Proxy-Authorization") == nil })
        #expect(!proxy.log.contains("pw-of-ann"))
        try await eventually("three ways") { try squid.requests().contains { !$0.hasPrefix("-") } }
    }

    @Test func `a next proxy with Kerberos carries tokens, http and https`() async throws {
        let kdc = try await KeyDistributionCenter()
        let squid = try await Squid(
            .negotiate(keytab: try await kdc.keytab("HTTP/localhost")), environment: kdc.environment)
        let keytab = try await kdc.keytab("svc")
        let origin = try RecordingOrigin()
        let next = "{url: \"http://localhost:\(squid.port)\", auth: negotiate, keytab: \(keytab), principal: svc}"
        let (proxy, servers) = try await proxy(next, origin: origin, environment: kdc.environment)
        defer { withExtendedLifetime(servers) {} }
        for _ in 0..<3 {
            let answer = try await proxy.get("http://plain.test/x")
            #expect(answer.status == 200, "\(answer.text)")
            #expect(try await proxy.get("http://secure.test/").status == 200)
        }
        #expect(origin.requests.count == 3)
        #expect(origin.requests.allSatisfy { $0.field("Proxy-Authorization") == nil })
        let requests = try await eventually("its log") {
            let requests = try squid.requests()
            return requests.count >= 4 ? requests : nil
        }
        #expect(requests.allSatisfy { $0.hasPrefix("svc@\(KeyDistributionCenter.realm) ") }, "\(requests)")
        let run = try await RunningProxy.run(
            ["doctor", "--config", proxy.directory.path(of: "config.yaml")], environment: kdc.environment)
        #expect(run.ending == .exited(0), "\(run.transcript)")
    }

    @Test func `one process goes to next proxies as two Kerberos identities`() async throws {
        let kdc = try await KeyDistributionCenter()
        let squid = try await Squid(
            .negotiate(keytab: try await kdc.keytab("HTTP/localhost")), environment: kdc.environment)
        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint.plain()
        var upstreams: [String] = []
        for name in ["one", "two"] {
            let keytab = try await kdc.keytab(name)
            upstreams.append(
                ProxyConfiguration.upstream(
                    "\(name).test", url: origin.url,
                    "proxy: {url: \"http://localhost:\(squid.port)\", auth: negotiate, keytab: \(keytab)}"))
        }
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                clients: [ProxyConfiguration.client(tokenEndpoint: endpoint.url)], upstreams: upstreams),
            environment: kdc.environment)
        for name in ["one", "two", "one", "two"] { #expect(try await proxy.get("http://\(name).test/").status == 200) }
        let realm = KeyDistributionCenter.realm
        try await eventually("both in its log") {
            try squid.requests() == ["one", "two", "one", "two"].map { "\($0)@\(realm) GET 200" }
        }
    }

    @Test func `a silent KDC delays no connection of another identity, and no request without Kerberos`() async throws {
        let silent = try RawListener()
        let kdc = try await KeyDistributionCenter(realms: ["SILENT.TEST": silent.port])
        let squid = try await Squid(
            .negotiate(keytab: try await kdc.keytab("HTTP/localhost")), environment: kdc.environment)
        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint.plain()
        let next = "proxy: {url: \"http://localhost:\(squid.port)\", auth: negotiate, keytab: "
        let live = next + (try await kdc.keytab("svc")) + "}"
        let dead = next + (try await kdc.keytab("svc@SILENT.TEST")) + "}"
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                proxy: "threads: 1", clients: [ProxyConfiguration.client(tokenEndpoint: endpoint.url)],
                upstreams: [
                    ProxyConfiguration.upstream("direct.test", url: origin.url),
                    ProxyConfiguration.upstream("live.test", url: origin.url, live),
                    ProxyConfiguration.upstream("dead.test", url: origin.url, "connect_timeout: 1m\n" + dead),
                    ProxyConfiguration.upstream("late.test", url: origin.url, "connect_timeout: 200ms\n" + dead),
                ]), environment: kdc.environment)
        let answered = Recorder<Int>()
        let port = proxy.port
        Task {
            let request = "GET http://dead.test/ HTTP/1.1\r\nHost: dead.test\r\n\r\n"
            if let answer = try? await RawClient.exchange(port: port, request) { answered.append(answer.status) }
        }
        let question = try await silent.accept()
        defer { question.close() }
        for _ in 0..<3 {
            #expect(try await proxy.get("http://direct.test/").status == 200)
            #expect(try await proxy.get("http://live.test/").status == 200)
        }
        let late = try await proxy.get("http://late.test/")
        #expect(late.status == 502)
        #expect(late.text.contains("the KDC does not answer; next proxy localhost:\(squid.port)"), "\(late.text)")
        #expect(answered.all.isEmpty)
    }

    @Test(arguments: ["refused", "lying"])
    func `a KDC that refuses or lies is named within the connection's time`(kind: String) async throws {
        let lying = try RawListener()
        let answering = Task {
            while !Task.isCancelled {
                guard let question = try? await lying.accept(within: .milliseconds(500)) else { continue }
                try? await question.send("HTTP/1.1 200 OK\r\n\r\n")
                question.close()
            }
        }
        defer { answering.cancel() }
        let port = kind == "lying" ? lying.port : try freePort()
        let kdc = try await KeyDistributionCenter(realms: ["FALSE.TEST": port])
        let keytab = try await kdc.keytab("svc@FALSE.TEST")
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(
            to: origin,
            upstream: "connect_timeout: 30s\n"
                + "proxy: {url: \"http://localhost:1\", auth: negotiate, keytab: \(keytab)}",
            environment: kdc.environment)
        let answer = try await proxy.get("http://api.test/")
        #expect(answer.status == 502)
        #expect(answer.text.contains("Kerberos ticket: Cannot contact any KDC"), "\(answer.text)")
        let words = "next proxy localhost:1: it gets no Kerberos ticket: check `keytab`"
        #expect(answer.text.contains(words), "\(answer.text)")
        try await eventually("its line") { proxy.log.contains(words) }
    }

    @Test(arguments: ["http", "https"])
    func `a next proxy that takes another method is named with that method, by answer, log and doctor`(
        scheme: String
    ) async throws {
        let squid = try await Squid(.digest)
        let proxy = try await RunningProxy(
            to: "\(scheme)://127.0.0.1:9",
            upstream: "proxy: {url: \"http://ann:pw-of-ann@localhost:\(squid.port)\"}")
        let answer = try await proxy.get("http://api.test/")
        let words = "localhost:\(squid.port) takes digest, and `auth` of `proxy` is basic: write {url: …, auth: digest}"
        #expect(answer.status == 502 && answer.text.contains(words), "\(answer.text)")
        try await eventually("its line") { proxy.log.contains(words) }
        let run = try await RunningProxy.run(["doctor", "--config", proxy.directory.path(of: "config.yaml")])
        #expect(run.output.contains(words.replacing("`", with: "")) || scheme == "http", "\(run.transcript)")
    }
}
