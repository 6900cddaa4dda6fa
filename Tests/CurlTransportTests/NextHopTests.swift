@testable import CurlTransport
import HTTPMessage
import Testing

@Suite("which proxy is next, and what it reads")
struct NextHopTests {
    private func proxy(_ origin: Origin, _ environment: [String: String]) -> String? {
        NextHop.proxy(for: origin, { environment[$0] })
    }

    @Test func `the variables of the environment are read as libcurl reads them`() {
        let plain = Origin.plain(80, host: "api.example")
        let secure = Origin.secure(443, host: "api.example")
        #expect(proxy(plain, [:]) == nil)
        #expect(proxy(plain, ["http_proxy": "a", "https_proxy": "b", "all_proxy": "c"]) == "a")
        #expect(proxy(secure, ["http_proxy": "a", "https_proxy": "b", "all_proxy": "c"]) == "b")
        #expect(proxy(plain, ["HTTP_PROXY": "a"]) == nil)
        #expect(proxy(secure, ["HTTPS_PROXY": "b"]) == "b")
        #expect(proxy(plain, ["ALL_PROXY": "c"]) == "c")
        #expect(proxy(plain, ["http_proxy": "", "all_proxy": "c"]) == "c")
        #expect(proxy(plain, ["http_proxy": "a", "no_proxy": "api.example"]) == nil)
        #expect(proxy(plain, ["http_proxy": "a", "NO_PROXY": "example"]) == nil)
    }

    @Test(arguments: [
        ("api.example", "*", true), ("api.example", "other, .example", true), ("api.example", "API.Example.", true),
        ("notexample", "example", false), ("api.example", "pi.example", false), ("api.example", "", false),
        ("10.1.2.3", "10.0.0.0/8", true), ("10.1.2.3", "10.1.2.3", true), ("11.1.2.3", "10.0.0.0/8", false),
        ("[fd00::1]", "fd00::/8", true), ("[fd00::1]", "fd00::1", true), ("[fd00::1]", "example", false),
        ("1.2.3.4", "4", false), ("api.example.", "example", true),
    ])
    func `no_proxy exempts the hosts that libcurl would exempt`(host: String, list: String, isExempt: Bool) {
        #expect(NextHop.isExempt(host, list) == isExempt)
    }

    @Test func `only what a proxy reads has the absolute form and its credential`() throws {
        func hop(_ url: String, _ origin: Origin, tunnels: Bool = false) throws -> NextHop {
            try NextHop(.url(url), to: origin, tunnels: tunnels)
        }
        let plain = Origin.plain(80, host: "api.example")
        let secure = Origin.secure(443, host: "api.example")
        #expect(try hop("http://p:3128", plain).needsAbsoluteForm)
        #expect(try hop("p:3128", plain).needsAbsoluteForm)
        #expect(try hop("https://p:3128", plain).needsAbsoluteForm)
        #expect(try hop("https://p:3128", plain).isSecure)
        #expect(try !hop("http://p:3128", secure).needsAbsoluteForm)
        #expect(try !hop("http://p:3128", plain, tunnels: true).needsAbsoluteForm)
        #expect(try !hop("socks5h://p:1080", plain).needsAbsoluteForm)
        let known = try hop("http://us%65r:p%3Aw@p:3128", plain)
        #expect(String(decoding: known.authorization, as: UTF8.self) == "Basic dXNlcjpwOnc=")
        #expect(try hop("http://user:pw@p:3128", secure).authorization.isEmpty)
        #expect(try NextHop(.none, to: plain, tunnels: false) == .direct)
    }
}
