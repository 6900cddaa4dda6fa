import Configuration
import Testing

@Suite("rewrite says whether addresses come home, and which Host goes out")
struct RewriteTests {
    private static func document(_ rewrite: String, _ more: String = "url: \"https://y.example/t\"") -> String {
        "upstreams:\n  - {host: x.example, \(more)\(rewrite.isEmpty ? "" : ", rewrite: \(rewrite)")}\n"
    }

    @Test(arguments: [
        ("", true, false), ("true", true, false), ("false", false, false), ("{host: keep}", true, true),
        ("{host: upstream}", true, false),
    ])
    func `rewrite may be left out, on, off, or say which Host goes out`(rewrite: String, isOn: Bool, keepsHost: Bool)
        throws
    {
        let (configuration, _) = try Configuration.parse(
            yaml: Self.document(rewrite), file: "c.yaml", environment: [:])
        #expect(configuration.upstreams[0].rewrite == isOn)
        #expect(configuration.upstreams[0].keepsHost == keepsHost)
    }

    @Test(arguments: [
        ("maybe", "write true, false, or {host: keep}, not \"maybe\""),
        ("{host: kep}", ".rewrite.host: write keep, not \"kep\""),
        ("{hosts: keep}", "unknown key \"hosts\" in upstreams["),
        ("[host]", "write a single value, not a list"),
    ])
    func `rewrite is refused where it does not fit`(rewrite: String, message: String) {
        let found = problems(Self.document(rewrite))
        #expect(found.count == 1)
        #expect(found.first?.contains(message) == true, "\(found)")
    }

    @Test func `Host can't be kept through a proxy that is asked for the whole URL`() {
        let found = problems(
            Self.document("{host: keep}", "url: \"http://y.example\", proxy: \"http://p.example:3128\""))
        #expect(found.count == 1 && found[0].contains("rewrite.host"), "\(found)")
        #expect(problems(Self.document("{host: keep}", "proxy: \"http://p.example:3128\"")) == [])
    }

    @Test func `browsers needs no listener of the upstream's own`() {
        #expect(problems(Self.document("", "browsers: true")) == [])
    }
}
