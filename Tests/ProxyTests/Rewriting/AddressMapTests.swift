import HTTPMessage
import Reactor
import Testing

@testable import Proxy

@Suite("addresses of the upstream are written as the program knows it")
struct AddressMapTests {
    /// - Parameters:
    ///   - asked: the program's; `nil` where it named none.
    ///   - url: of the upstream.
    private static func map(
        _ asked: String?, url: String = "https://api.test", host: String? = "api.test", isBaseURL: Bool = false,
        keepsHost: Bool = false
    ) throws -> AddressMap {
        let scheme: Scheme = url.hasPrefix("https") ? .https : .http
        let rest = url.drop { $0 != "/" }.dropFirst(2)
        let authority = rest.prefix { $0 != "/" }
        return AddressMap(
            named: ProgramAddress(
                scheme: .http, authority: try asked.map { try Authority(parsing: $0) }, isBaseURL: isBaseURL),
            destination: Destination(
                scheme: scheme, authority: try Authority(parsing: String(authority)), serverName: nil),
            host: try host.map { try Authority(parsing: $0) },
            prefix: Array(rest.dropFirst(authority.count).utf8), keepsHost: keepsHost)
    }

    private static func text(_ body: (inout ByteBuffer) -> Void) -> String {
        var output = ByteBuffer()
        body(&output)
        return output.withBytes { bytes in String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self) }
    }

    private static func reference(_ value: String, _ map: AddressMap) -> String {
        let bytes = Array(value.utf8)
        return text { map.append(reference: bytes.span, to: &$0) }
    }

    private static func destination(_ value: String, _ map: AddressMap) -> String {
        let bytes = Array(value.utf8)
        return text { map.append(destination: bytes.span, to: &$0) }
    }

    private static func cookie(_ value: String, _ map: AddressMap) -> String {
        let bytes = Array(value.utf8)
        return text { map.append(cookie: bytes.span, to: &$0) }
    }

    @Test(arguments: [
        ("https://api.test/v1/x?y=z#f", "http://api.test/v1/x?y=z#f"), ("HTTPS://API.Test/x", "http://api.test/x"),
        ("https://api.test:443/x", "http://api.test/x"), ("https://api.test./x", "http://api.test/x"),
        ("http://api.test/x", "http://api.test/x"), ("http://api.test:80/x", "http://api.test/x"),
        ("https://api.test", "http://api.test"), ("https://api.test?x", "http://api.test?x"),
        ("https://api.test#x", "http://api.test#x"), ("//api.test/x", "//api.test/x"), ("/x", "/x"), ("x/y", "x/y"),
        ("https://api.test/%2F%2e%zz/\u{e9}", "http://api.test/%2F%2e%zz/\u{e9}"),
        ("https://api.test//evil.test", "http://api.test//evil.test"),
    ])
    func `an upstream's address becomes http to the host for a program of the proxy`(value: String, expected: String)
        throws
    {
        #expect(Self.reference(value, try Self.map("api.test")) == expected)
    }

    static let foreign = [
        "", "?x", "#x", "https://other.test/", "https://api.test.evil.test/", "https://api.test@evil.test/",
        "https://user@api.test/", "https://user:word@api.test:443/", "https://api.test:8443/", "ftp://api.test/",
        "https:/api.test/", "https:api.test/", "https:///api.test/", "https://api.test\\@evil.test/",
        "https://api.test%2eevil.test/", "https://[::1/", "https://", "//", "///", "//evil.test/", "/\\api.test/",
        "https://api.test:99999/", "https://api.test:/:/", "https:\\\\api.test\\", "javascript:alert(1)",
        " https://api.test/",
        "https://\u{e9}.test/", "https://api.test:0443x/",
    ]

    @Test(arguments: foreign)
    func `every address but the upstream's passes byte for byte`(value: String) throws {
        #expect(
            Self.reference(value, try Self.map("api.test"))
                == (value == "https://api.test:/:/" ? "http://api.test/:/" : value))
        #expect(
            Self.reference(value, try Self.map("127.0.0.1:9001", isBaseURL: true))
                == (value == "https://api.test:/:/" ? "http://127.0.0.1:9001/:/" : value))
    }

    @Test(arguments: [
        ("https://api.test/x", "http://127.0.0.1:9001/x"), ("http://api.test/x", "http://127.0.0.1:9001/x"),
        ("//api.test/x", "//127.0.0.1:9001/x"), ("https://api.test", "http://127.0.0.1:9001"), ("/x", "/x"),
        ("https://api.test//evil.test", "http://127.0.0.1:9001//evil.test"),
    ])
    func `an upstream's address becomes the listener for a program of a base URL`(value: String, expected: String)
        throws
    {
        #expect(Self.reference(value, try Self.map("127.0.0.1:9001", isBaseURL: true)) == expected)
    }

    @Test(arguments: [
        ("https://inner.test:8443/t/x", "http://HOST/x"), ("http://inner.test:8443/t/x?y", "http://HOST/x?y"),
        ("https://inner.test:8443/t", "http://HOST/"), ("https://inner.test:8443/t?x", "http://HOST/?x"),
        ("https://inner.test:8443/t#x", "http://HOST/#x"), ("https://inner.test:8443/t/", "http://HOST/"),
        ("//inner.test:8443/t/x", "//HOST/x"), ("/t/x", "/x"), ("/t", "/"), ("/t?x", "/?x"), ("/t/", "/"),
        // The host that it is for, as a server behind something else may call itself.
        ("https://api.test/t/x", "http://HOST/x"),
        // Never another host's address.
        ("/t//evil.test/x", "http://HOST//evil.test/x"), ("/t/\\evil.test/x", "http://HOST/\\evil.test/x"),
        ("/t/\t/evil.test", "http://HOST/\t/evil.test"), ("/t/\t\t\\evil.test", "http://HOST/\t\t\\evil.test"),
        ("/t/ /evil.test", "http://HOST/ /evil.test"), ("/t/\u{7F}/evil.test", "http://HOST/\u{7F}/evil.test"),
        ("/t/\tx/evil.test", "/\tx/evil.test"), ("/t/%09/evil.test", "/%09/evil.test"),
        // Outside of the prefix.
        ("https://inner.test:8443/", "https://inner.test:8443/"),
        ("https://inner.test:8443", "https://inner.test:8443"),
        ("https://inner.test:8443/tx", "https://inner.test:8443/tx"), ("/tx", "/tx"), ("/", "/"), ("x", "x"),
        ("/t/../x", "/t/../x"), ("/t/%2e%2E/x", "/t/%2e%2E/x"), ("/t/..;a/x", "/t/..;a/x"),
        ("/t/a%2f../x", "/t/a%2f../x"),
        ("https://inner.test:8443/t/..", "https://inner.test:8443/t/.."),
        ("https://inner.test/t/x", "https://inner.test/t/x"),
        ("/t/.well-known/x", "/.well-known/x"), ("/t/a..b", "/a..b"), ("/t/x?/../y", "/x?/../y"),
    ])
    func `the path of the url is taken off the upstream's addresses`(value: String, expected: String) throws {
        for (asked, isBaseURL) in [("api.test", false), ("api.test:80", false), ("[::1]:9001", true)] {
            let map = try Self.map(asked, url: "https://inner.test:8443/t", isBaseURL: isBaseURL)
            #expect(Self.reference(value, map) == expected.replacing("HOST", with: asked))
        }
    }

    @Test func `addresses compare as addresses`() throws {
        let map = try Self.map("[::1]:9001", url: "https://[2001:db8::1]:8443", host: nil, isBaseURL: true)
        #expect(Self.reference("https://[2001:DB8:0:0::1]:8443/x", map) == "http://[::1]:9001/x")
        #expect(Self.reference("https://[2001:db8::2]:8443/x", map) == "https://[2001:db8::2]:8443/x")
    }

    @Test func `a server on plain http that sends people to https is not led in a circle`() throws {
        let map = try Self.map("api.test", url: "http://api.test")
        #expect(Self.reference("https://api.test/x", map) == "https://api.test/x")
        #expect(Self.reference("http://api.test/x", map) == "http://api.test/x")
    }

    @Test func `with host: keep the upstream's addresses carry the program's own name`() throws {
        let map = try Self.map("127.0.0.1:9001", url: "https://inner.test/t", isBaseURL: true, keepsHost: true)
        #expect(Self.reference("https://127.0.0.1:9001/t/x", map) == "http://127.0.0.1:9001/x")
        #expect(Self.destination("http://127.0.0.1:9001/x", map) == "https://127.0.0.1:9001/t/x")
    }

    @Test(arguments: [
        ("https://api.test/x", "/x"), ("https://api.test", "/"), ("https://api.test?x", "/?x"),
        ("https://api.test//evil.test", "https://api.test//evil.test"),
        ("https://api.test/\\x", "https://api.test/\\x"),
    ])
    func `an upstream's address becomes a path for a program that named no host`(value: String, expected: String) throws
    {
        #expect(Self.reference(value, try Self.map(nil, isBaseURL: true)) == expected)
    }

    @Test(arguments: ["/t//evil.test", "/t/\t/evil.test", "/t/\\evil.test"])
    func `an address that would name another host passes as it is`(value: String) throws {
        #expect(Self.reference(value, try Self.map(nil, url: "https://inner.test/t", isBaseURL: true)) == value)
    }

    @Test(arguments: [
        ("http://127.0.0.1:9001/x", "https://inner.test:8443/t/x"),
        ("HTTP://127.0.0.1:9001/x?y", "https://inner.test:8443/t/x?y"),
        ("http://127.0.0.1:9001", "https://inner.test:8443/t/"), ("/x%20y", "/t/x%20y"),
        ("//127.0.0.1:9001/x", "https://inner.test:8443/t/x"),
        ("http://127.0.0.1:9002/x", "http://127.0.0.1:9002/x"),
        ("https://inner.test:8443/t/x", "https://inner.test:8443/t/x"),
        ("http://other.test/x", "http://other.test/x"), ("x", "x"), ("", ""),
    ])
    func `the program's address in Destination becomes the upstream's`(value: String, expected: String) throws {
        let map = try Self.map("127.0.0.1:9001", url: "https://inner.test:8443/t", isBaseURL: true)
        #expect(Self.destination(value, map) == expected)
    }

    private static func covers(_ value: String, _ map: AddressMap, paths: [String] = [], isRewritten: Bool = true)
        -> Bool
    {
        let bytes = Array(value.utf8)
        return map.covers(destination: bytes.span, paths: paths, isRewritten: isRewritten)
    }

    @Test(arguments: [
        "", "x", "../v2/x", "./x", "?x", "http://u@127.0.0.1:21080/t/x", "http://u@other.test/x", "http:/tenant-b/x",
        "http:tenant-b", "http:///x", "http://", "https:/x", "ftp://other.test/x", "file:///x", "//127.0.0.1:21080/t/x",
        "//other.test/x", "///x", "/\\127.0.0.1/x", "\\\\127.0.0.1\\x", "http:\\\\127.0.0.1\\x",
        "http://127.0.0.1\\@x/y", "\"/t/x\"", "</t/x>", "<http://other.test/x>", "\"http://other.test/x\"",
        "http://127.1:21080/t/x", "http://0x7f000001:21080/t/x", "http://0x7f.1/x", "http://2130706433/x",
        "http://0177.0.0.1/x", "http://localhost:21080/t/x", "http://LOCALHOST./x", "http://a.localhost/x",
        "http://localhost.localdomain/x", "http://[::1]/x", "http://[::ffff:127.0.0.1]:21080/t/x", "http://0.0.0.0/x",
        "http://[::]/x", "http://127.0.0.2/x", "http://127.0.0.1:021080/t/x", "http://127.0.0.1.:21080/tenant-b",
        "http://127.0.0.1:21081/t/x", "http://127.0.0.1/t/x", "http://api.test:81/x", "http://%61pi.test/x",
        "http://\u{ff41}pi.test/x", " /x", "/x y", "/x\t", "/x#y", "/\u{e9}", "/x?/../../y", "/x?../y", "/.%00./x",
        "http://api.test/../x", "http://127.0.0.1:21080/tenant-b", "http://127.0.0.1:21080/t/../x",
        "http://127.0.0.1:21080/tx",
    ])
    func `a Destination that can be read in another way is not covered`(value: String) throws {
        let map = try Self.map("api.test", url: "http://127.0.0.1:21080/t")
        #expect(!Self.covers(value, map))
        #expect(!Self.covers(value, map, isRewritten: false))
        #expect(!Self.covers(value, map, paths: ["/"]))
    }

    @Test(arguments: [
        "/", "/x", "/x%20y", "http://api.test", "http://api.test/x", "HTTP://API.test:80/x", "http://api.test./x?y=/z",
        "http://127.0.0.1:21080/t", "http://127.0.0.1:21080/t/x", "http://other.test/x", "https://other.test:8443/x",
        "http://10.1.2.3/x",
    ])
    func `a Destination that can be read in one way only is covered`(value: String) throws {
        let map = try Self.map("api.test", url: "http://127.0.0.1:21080/t")
        #expect(Self.covers(value, map))
        #expect(Self.covers(value, map, paths: ["/"]))
        let isElsewhere = value.contains("other") || value.contains("10.1")
        #expect(Self.covers(value, map, paths: ["/v1"]) == isElsewhere)
    }

    @Test func `without rewriting, a Destination has to be the upstream's own`() throws {
        let map = try Self.map("api.test", url: "http://127.0.0.1:21080/t")
        for value in ["/x", "http://api.test/x", "/tx"] { #expect(!Self.covers(value, map, isRewritten: false)) }
        for value in ["/t", "/t/x", "http://api.test/t/x", "http://other.test/x"] {
            #expect(Self.covers(value, map, isRewritten: false))
        }
    }

    @Test func `an IP address in Destination is not covered where the upstream is known by a name`() throws {
        let map = try Self.map("api.test", url: "https://inner.test/t")
        for value in ["http://10.1.2.3/x", "http://[2001:db8::1]/x"] { #expect(!Self.covers(value, map)) }
        #expect(Self.covers("http://other.test/x", map))
    }

    @Test(arguments: [
        ("a=b", "a=b"), ("a=b; Secure", "a=b"), ("a=b;secure;HttpOnly", "a=b;HttpOnly"),
        ("a=b; SECURE ; SameSite=None; Partitioned; Max-Age=5", "a=b; Max-Age=5"),
        ("a=b; SameSite=None", "a=b; SameSite=None"), ("a=b; SameSite=Lax; Secure", "a=b; SameSite=Lax"),
        ("a=b; Domain=api.test", "a=b; Domain=api.test"), ("a=b; domain=.Test", "a=b; domain=.Test"),
        ("a=b; Domain=inner.example", "a=b"), ("a=b; Domain=example; Path=/", "a=b; Path=/"),
        ("a=b; Domain=other.test", "a=b; Domain=other.test"), ("a=b; Domain=", "a=b; Domain="),
        ("a=b; Path=/t/x", "a=b; Path=/x"), ("a=b; path = /t ; HttpOnly", "a=b; path = /; HttpOnly"),
        ("a=b; Path=/t/", "a=b; Path=/"), ("a=b; Path=/other", "a=b; Path=/other"), ("a=b; Path=/tx", "a=b; Path=/tx"),
        ("a=secure; Expires=Thu, 01 Jan 2026 00:00:00 GMT", "a=secure; Expires=Thu, 01 Jan 2026 00:00:00 GMT"),
        ("Secure; Secure", "Secure"), ("__Host-a=b; Secure; Path=/", "__Host-a=b; Path=/"), ("", ""), (";;;", ";;;"),
        ("a=\"x; Secure\"", "a=\"x; Secure\""), ("a=b; Secured", "a=b; Secured"),
    ])
    func `cookies fit the program's address`(value: String, expected: String) throws {
        let map = try Self.map("api.test", url: "https://inner.example/t")
        #expect(Self.cookie(value, map) == expected)
    }

    @Test(arguments: [
        ("a=b; Domain=api.test; Secure", "a=b"), ("a=b; Domain=.test", "a=b"), ("a=b; Domain=inner.example", "a=b"),
        ("a=b; Domain=evil.example", "a=b; Domain=evil.example"),
    ])
    func `a program of a base URL gets no cookie with the API's Domain`(value: String, expected: String) throws {
        for asked in ["127.0.0.1:9001", "gateway.test", nil] {
            let map = try Self.map(asked, url: "https://inner.example", isBaseURL: true)
            #expect(Self.cookie(value, map) == expected)
        }
    }

    @Test func `no bytes of an address or a cookie trap`() throws {
        var generator = SystemRandomNumberGenerator()
        let alphabet = Array("hHtTpPsS:/\\?#@[]%2eEfF.;= \t0aApPiIdomainpathsecure,\"\u{e9}".utf8)
        let maps = [
            try Self.map("api.test"), try Self.map(nil, url: "https://a.test/t", isBaseURL: true),
            try Self.map("[::1]:9001", url: "http://a.test:81/t%20", isBaseURL: true),
        ]
        for _ in 0..<4000 {
            var value = Array(
                ["", "https://api.test", "/t", "//a.test", "a=b;"].randomElement(using: &generator)!.utf8)
            for _ in 0..<Int.random(in: 0...12, using: &generator) {
                value.append(alphabet.randomElement(using: &generator)!)
            }
            for map in maps {
                _ = Self.text { map.append(reference: value.span, to: &$0) }
                _ = Self.text { map.append(destination: value.span, to: &$0) }
                _ = map.covers(destination: value.span, paths: ["/t"], isRewritten: true)
                let cookie = Self.text { map.append(cookie: value.span, to: &$0) }
                #expect(!cookie.utf8.contains(13) && !cookie.utf8.contains(10))
            }
        }
    }
}
