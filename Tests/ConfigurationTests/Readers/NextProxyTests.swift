import Configuration
import Foundation
import HTTPMessage
import Testing

@Suite("the next proxy of a client or upstream")
struct NextProxySettingTests {
    private static func document(_ proxy: String) -> String {
        """
        clients:
          a: {token_endpoint: https://i.example/t, client_id: a, proxy: \(proxy)}
        upstreams:
          - {host: x.example, client: a, proxy: \(proxy)}
        """
    }

    private static func read(_ proxy: String) throws -> NextProxy {
        let configuration = try good(document(proxy)).configuration
        #expect(configuration.clients[0].proxy == configuration.upstreams[0].proxy)
        return configuration.upstreams[0].proxy
    }

    @Test func `a next proxy has one method, with what that method needs`() throws {
        let folder = try TemporaryFolder()
        let keytab = folder.path + "/svc.keytab"
        #expect(FileManager.default.createFile(atPath: keytab, contents: Data([5, 2])))
        let url = "http://p.example:3128"
        let named = "http://u:${SECRET}@p.example:3128"
        #expect(try Self.read("\"\(url)\"") == .url(url, .basic))
        #expect(try Self.read("{url: \"\(url)\"}") == .url(url, .basic))
        for (word, login) in [("basic", NextProxyLogin.basic), ("digest", .digest), ("ntlm", .ntlm)] {
            #expect(
                try Self.read("{url: \"\(named)\", auth: \(word)}") == .url("http://u:s3cr3t@p.example:3128", login))
        }
        #expect(try Self.read("{url: \"\(url)\", auth: negotiate}") == .url(url, .negotiate(KerberosIdentity())))
        #expect(
            try Self.read("{url: \"\(url)\", auth: negotiate, keytab: \(keytab), principal: svc@R}")
                == .url(url, .negotiate(KerberosIdentity(keytab: keytab, principal: "svc@R"))))
    }

    @Test(arguments: [
        ("{auth: digest}", "write the `url` of the next proxy"),
        ("{url: environment}", "write http://host:port"),
        ("{url: \"http://p.example:1\", auth: digest}", "`auth: digest` needs a name and password"),
        ("{url: \"http://p.example:1\", auth: ntlm}", "`auth: ntlm` needs a name and password"),
        ("{url: \"http://u:${SECRET}@p.example:1\", auth: negotiate}", "uses no name and password"),
        ("{url: \"http://10.0.0.1:1\", auth: negotiate}", "by its name, not by an address"),
        ("{url: \"http://[::1]:1\", auth: negotiate}", "by its name, not by an address"),
        ("{url: \"http://p.example:1\", auth: kerberos}", "write"),
        ("{url: \"http://p.example:1\", principal: svc}", "this is for `auth: negotiate`"),
        ("{url: \"http://p.example:1\", auth: negotiate, keytab: /does/not/exist}", "there is no such file"),
        ("{url: \"http://p.example:1\", auth: negotiate, keytab: /etc/passwd}", "the file is no keytab"),
        ("{url: \"http://p.example:1\", realm: x}", "unknown key \"realm\""),
    ])
    func `a next proxy with a wrong method or a missing part is an error`(proxy: String, words: String) {
        let found = problems(Self.document(proxy))
        #expect(found.count >= 2 && found.contains { $0.contains(words) }, "\(found)")
        #expect(!found.contains { $0.contains("s3cr3t") })
    }

    @Test func `a next proxy's literal password gives a warning in both forms`() throws {
        for proxy in ["\"http://u:p@p.example:1\"", "{url: \"http://u:p@p.example:1\", auth: digest}"] {
            let warnings = try good(Self.document(proxy)).warnings
            #expect(warnings.count { $0.contains("write ${NAME} instead") } == 2, "\(warnings)")
        }
    }
}
