import Foundation
import TestSupport
import Testing

@Suite("files that change are taken up while the proxy runs", .timeLimit(.minutes(3)))
struct FreshFileTests {
    /// A volume as Kubernetes makes it: the mounted files lead through `..data` to a folder that is swapped as a whole.
    private struct Volume {
        let directory: TemporaryDirectory

        init(_ files: [String: String]) throws {
            directory = try TemporaryDirectory()
            try swap(files)
            for name in files.keys {
                try FileManager.default.createSymbolicLink(
                    atPath: directory.path(of: name), withDestinationPath: "..data/\(name)")
            }
        }

        func swap(_ files: [String: String]) throws {
            let manager = FileManager.default
            let version = "..\(UInt32.random(in: .min ... .max))"
            try manager.createDirectory(atPath: directory.path(of: version), withIntermediateDirectories: false)
            for (name, text) in files { try directory.write(text, to: "\(version)/\(name)") }
            let former = try? manager.destinationOfSymbolicLink(atPath: directory.path(of: "..data"))
            try manager.createSymbolicLink(atPath: directory.path(of: "..data_tmp"), withDestinationPath: version)
            guard unsafe rename(directory.path(of: "..data_tmp"), directory.path(of: "..data")) == 0 else {
                throw TestFailure("rename: \(errno)")
            }
            if let former { try manager.removeItem(atPath: directory.path(of: former)) }
        }
    }

    private static func text(_ file: String) throws -> String { try String(contentsOfFile: file, encoding: .utf8) }

    private static func files(_ pair: PrivateCA.Certificate, anchors: PrivateCA) throws -> [String: String] {
        [
            "cert.pem": try text(pair.certificateFile), "key.pem": try text(pair.keyFile),
            "ca.pem": try text(anchors.certificateFile),
        ]
    }

    private static func upstream(_ volume: Volume, _ nginx: Nginx, more: String = "") -> String {
        let folder = volume.directory.path
        return """
            upstreams:
              - host: api.test
                url: https://localhost:\(nginx.httpsPort)
                tls: {ca_file: \(folder)/ca.pem, cert_file: \(folder)/cert.pem, key_file: \(folder)/key.pem}
            \(more.indented(4))
            """
    }

    @Test(arguments: [false, true])
    func `a client certificate may be swapped as Kubernetes does it, and a broken one changes nothing`(http2: Bool)
        async throws
    {
        let authority = try await PrivateCA()
        let nginx = try await Nginx(certificate: try await authority.server(), clientCA: authority.certificateFile)
        let one = try await authority.client("one")
        let two = try await authority.client("two")
        let three = try await authority.client("three")
        let volume = try Volume(try Self.files(one, anchors: authority))
        let proxy = try await RunningProxy(
            "proxy: {listen: 127.0.0.1:0}\n" + Self.upstream(volume, nginx, more: "http2: \(http2)"))
        @Sendable func who() async throws -> String {
            let answer = try await proxy.get("http://api.test/x")
            return "\(answer.status) " + (answer.text.firstMatch(of: /client-certificate: CN=(\w+)/)?.1 ?? "")
        }
        #expect(try await who() == "200 one", "\(proxy.log)")
        try volume.swap(try Self.files(two, anchors: authority))
        try await eventually("the log") { proxy.log.contains("have changed; new connections use them") }
        #expect(try await who() == "200 two", "also where the old connection is idle")
        // A key that is not the certificate's.
        var broken = try Self.files(three, anchors: authority)
        broken["key.pem"] = try Self.text(one.keyFile)
        try volume.swap(broken)
        try await eventually("the log") { proxy.log.contains("certificate and key don't belong together") }
        #expect(try await who() == "200 two")
        broken["key.pem"] = nil
        try volume.swap(broken)
        try await eventually("the log") { proxy.log.contains("can't read \(volume.directory.path)/key.pem") }
        #expect(try await who() == "200 two")
        try volume.swap(try Self.files(three, anchors: authority))
        let deadline = ContinuousClock.now + .seconds(10)
        while try await who() != "200 three", ContinuousClock.now < deadline {}
        #expect(try await who() == "200 three", "\(proxy.log)")
    }

    @Test func `trust anchors may be renamed over, and be no PEM for a while`() async throws {
        let right = try await PrivateCA()
        let wrong = try await PrivateCA(commonName: "another")
        let nginx = try await Nginx(certificate: try await right.server())
        let folder = try TemporaryDirectory()
        let file = try folder.write(try Self.text(wrong.certificateFile), to: "ca.pem")
        let proxy = try await RunningProxy(
            """
            proxy: {listen: 127.0.0.1:0}
            tls: {ca_file: \(file)}
            admin: {listen: "127.0.0.1:0", socket: FOLDER/admin.sock}
            upstreams:
              - {host: api.test, url: "https://localhost:\(nginx.httpsPort)"}
              - {host: own.test, url: "https://localhost:\(nginx.httpsPort)", tls: {ca_file: \(file)}}
            """)
        func statuses() async throws -> [Int] {
            [try await proxy.get("http://api.test/").status, try await proxy.get("http://own.test/").status]
        }
        #expect(try await statuses() == [502, 502])
        let next = try folder.write(try Self.text(right.certificateFile), to: "next")
        try #require(unsafe rename(next, file) == 0)
        try await eventually("the log") { proxy.log.contains("have changed; new connections use them") }
        #expect(try await statuses() == [200, 200], "\(proxy.log)")
        try folder.write("rubbish", to: "ca.pem")
        try await eventually("the log") { proxy.log.contains("it holds no certificate that can be read") }
        #expect(try await statuses() == [200, 200])
        let page = try #require(proxy.log.firstMatch(of: /administration address=\S+:(\d+)/)?.1)
        let metrics = try await RawClient.exchange(
            port: try #require(UInt16(page)),
            "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:\(page)\r\nConnection: close\r\n\r\n"
        ).text
        #expect(metrics.contains(#"heimdallr_file_reloads_total{file="\#(file)",result="refused"}"#), "\(metrics)")
        try folder.write(try Self.text(right.certificateFile), to: "ca.pem")
        try await eventually("the log") { proxy.log.contains("can be used again") }
        #expect(try await statuses() == [200, 200])
    }

    @Test func `a token endpoint's certificate may change, and a secret's file be away for a while`() async throws {
        let authority = try await PrivateCA()
        let one = try await authority.client("one")
        let two = try await authority.client("two")
        let nginx = try await Nginx(
            certificate: try await authority.server(), clientCA: authority.certificateFile,
            locations: #"""
                location / {
                    default_type application/json;
                    return 200 '{"access_token":"$ssl_client_s_dn_cn-$http_authorization","token_type":"Bearer","expires_in":2}';
                }
                """#.replacing("$ssl_client_s_dn_cn-$http_authorization", with: "$ssl_client_fingerprint"))
        let origin = try RecordingOrigin()
        let volume = try Volume(try Self.files(one, anchors: authority))
        let folder = volume.directory.path
        let proxy = try await RunningProxy(
            """
            proxy: {listen: 127.0.0.1:0}
            clients:
              api:
                token_endpoint: https://localhost:\(nginx.httpsPort)/token
                client_id: a
                client_secret: {file: FOLDER/secret}
                tls: {ca_file: \(folder)/ca.pem, cert_file: \(folder)/cert.pem, key_file: \(folder)/key.pem}
            upstreams:
              - {host: api.test, url: "\(origin.url)", client: api, allow_plaintext: true}
            """, files: ["secret": "one-secret"])
        #expect(try await proxy.get("http://api.test/").status == 200, "\(proxy.log)")
        let first = origin.requests.last?.field("Authorization")
        try volume.swap(try Self.files(two, anchors: authority))
        try FileManager.default.removeItem(atPath: proxy.directory.path(of: "secret"))
        try await eventually("the log") {
            proxy.log.contains("have changed; new connections use them")
                && proxy.log.contains("a secret can't be read; the last one stays in use")
        }
        try await eventually("another token for another certificate") {
            try await proxy.get("http://api.test/").status == 200
                && origin.requests.last?.field("Authorization") != first
        }
        try proxy.directory.write("two-secret", to: "secret")
        try await eventually("the log") { proxy.log.contains("a secret can be read again") }
        try await eventually("a token request with the new secret") {
            try nginx.accessLog().contains("Basic " + "a:two-secret".base64)
        }
        #expect(try await proxy.get("http://api.test/").status == 200)
    }
}
