import HTTPMessage
import Testing

@Suite("Authorities")
struct AuthorityTests {
    static let canonicalRows: [Row<String>] = [
        Row("RFC 3986 6.2.2.1, case", "EXAMPLE.com", "example.com"),
        Row("trailing dot", "example.com.", "example.com"),
        Row("trailing dot and port", "Example.COM.:8080", "example.com:8080"),
        Row("one label", "localhost", "localhost"),
        Row("underscore", "my_service:80", "my_service:80"),
        Row("digits in front", "1password.com", "1password.com"),
        Row("digits in labels", "a.1.b2", "a.1.b2"),
        Row("punycode", "XN--Mnchen-3ya.de", "xn--mnchen-3ya.de"),
        Row("hyphens", "r3---sn-x.a", "r3---sn-x.a"),
        Row("hexadecimal letters but not a number", "0xg", "0xg"),
        Row("last label begins with a digit", "a.1b", "a.1b"),
        Row("RFC 3986 6.2.3, empty port", "a:", "a"),
        Row("port", "a:65535", "a:65535"),
        Row("port with zeros", "a:00080", "a:80"),
        Row("IPv4", "127.0.0.1", "127.0.0.1"),
        Row("IPv4 and port", "255.255.255.255:1", "255.255.255.255:1"),
        Row("IPv4", "0.0.0.0", "0.0.0.0"),
        Row("RFC 5952 4.1", "[2001:0DB8::0001]", "[2001:db8::1]"),
        Row("RFC 5952 4.2.1", "[2001:db8:0:0:0:0:2:1]", "[2001:db8::2:1]"),
        Row("RFC 5952 4.2.2", "[2001:db8:0:1:1:1:1:1]", "[2001:db8:0:1:1:1:1:1]"),
        Row("RFC 5952 4.2.3", "[2001:db8:0:0:1:0:0:1]", "[2001:db8::1:0:0:1]"),
        Row("RFC 5952 4.2.3, the longer one", "[2001:0:0:1:0:0:0:1]", "[2001:0:0:1::1]"),
        Row("RFC 5952 4.3", "[2001:DB8::ABCD]:443", "[2001:db8::abcd]:443"),
        Row("RFC 5952 5", "[::ffff:c000:0280]", "[::ffff:192.0.2.128]"),
        Row("RFC 4291 2.2, embedded IPv4", "[64:ff9b::192.0.2.33]", "[64:ff9b::c000:221]"),
        Row("RFC 4291 2.2, embedded IPv4 without gap", "[1:2:3:4:5:6:7.8.9.10]", "[1:2:3:4:5:6:708:90a]"),
        Row("all zero", "[::]", "[::]"), Row("all zero", "[0:0:0:0:0:0:0:0]", "[::]"),
        Row("gap at the end", "[1::]", "[1::]"), Row("gap in front", "[::1:2:3:4:5:6:7]", "[0:1:2:3:4:5:6:7]"),
        Row("full", "[1:2:3:4:5:6:7:8]", "[1:2:3:4:5:6:7:8]"), Row("empty port", "[::1]:", "[::1]"),
        Row("zeros at both ends", "[0:0:1:1:1:1:0:0]", "[::1:1:1:1:0:0]"),
    ]

    @Test("every spelling of an authority has one canonical form", arguments: canonicalRows)
    func canonical(row: Row<String>) throws {
        let authority = try Authority(parsing: row.input)
        #expect(authority.description == row.expected)
        #expect(try Authority(parsing: authority.description) == authority)
    }

    static let refusedRows: [Row<String>] = [
        Row("empty", "", "missing"), Row("dot", ".", "missing"), Row("port only", ":80", "missing"),
        Row("empty label", "a..b", "empty label"), Row("two trailing dots", "a..", "empty label"),
        Row("leading dot", ".a", "empty label"),
        Row("RFC 1035 2.3.4", String(repeating: "a", count: 64), "63"),
        Row("RFC 1035 2.3.4", String(repeating: "a.", count: 127) + "aa", "253"),
        Row("userinfo", "u@a", "user name"), Row("userinfo", "u:p@a", "user name"),
        Row("userinfo", "u:12345@a:80", "user name"),
        Row("percent", "a%2eb", "percent"), Row("non-ASCII", "b\u{FC}cher.de", "xn--"),
        Row("space", "a b", "character"), Row("NUL", "a\0", "character"), Row("slash", "a/b", "character"),
        Row("asterisk", "*.a", "character"), Row("plus", "a+b", "character"), Row("quote", "a'b", "character"),
        Row("decimal number", "2130706433", "IPv4"), Row("hexadecimal number", "0x7f000001", "IPv4"),
        Row("hexadecimal number", "0X7F.1", "IPv4"), Row("short IPv4", "127.1", "IPv4"),
        Row("0x alone", "0x", "IPv4"), Row("0x as last label", "a.0x", "IPv4"),
        Row("long IPv4", "1.2.3.4.5", "IPv4"), Row("octet", "1.2.3.256", "IPv4"), Row("octal", "1.2.3.04", "IPv4"),
        Row("octal", "00.0.0.1", "IPv4"), Row("number as last label", "a.b.1", "IPv4"),
        Row("hexadecimal octet", "127.0.0.0x1", "IPv4"), Row("IPv4 with trailing dot", "127.0.0.1.", "IPv4"),
        Row("port", "a:x", "port"), Row("port", "a:+80", "port"), Row("port", "a: 80", "port"),
        Row("port", "a:0", "port"), Row("port", "a:65536", "port"), Row("port", "a:000080", "port"),
        Row("two ports", "a:80:80", "more than one colon"),
        Row("bare IPv6", "::1", "brackets"), Row("bare IPv6", "2001:db8::1", "brackets"),
        Row("not closed", "[::1", "IPv6"), Row("empty brackets", "[]", "IPv6"), Row("one colon", "[:]", "IPv6"),
        Row("three colons", "[:::]", "IPv6"), Row("two gaps", "[1::2::3]", "IPv6"),
        Row("nine groups", "[1:2:3:4:5:6:7:8:9]", "IPv6"), Row("seven groups", "[1:2:3:4:5:6:7]", "IPv6"),
        Row("gap of nothing", "[1:2:3:4::5:6:7:8]", "IPv6"), Row("five digits", "[12345::]", "IPv6"),
        Row("trailing colon", "[1:2:3:4:5:6:7:]", "IPv6"), Row("leading colon", "[:1:2:3:4:5:6:7]", "IPv6"),
        Row("zone", "[fe80::1%eth0]", "IPv6"), Row("IPv4 in brackets", "[127.0.0.1]", "IPv6"),
        Row("embedded IPv4 too early", "[1.2.3.4::]", "IPv6"), Row("embedded octal", "[::127.0.0.01]", "IPv6"),
        Row("too many with IPv4", "[1:2:3:4:5:6:7:1.2.3.4]", "IPv6"), Row("text behind", "[::1]x", "follows"),
        Row("dot behind", "[::1].", "follows"), Row("hexadecimal only", "[::g]", "IPv6"),
    ]

    @Test("what a resolver or another parser could take for something else is refused", arguments: refusedRows)
    func refuses(row: Row<String>) {
        let bytes = wire(row.input)
        let error = #expect(throws: MessageError.self) {
            let authority = try Authority(parsing: bytes.span)
            Issue.record("accepted as \(authority)")
        }
        #expect(error?.status == 400)
        #expect(error?.detail.contains(row.expected) == true)
    }

    @Test("loopback is 127.0.0.0/8, ::1, their mapped form and localhost")
    func loopback() throws {
        for text in ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]"]
        {
            #expect(try Authority(parsing: text).host.isLoopback, "\(text)")
        }
        for text in [
            "localhost.com", "xlocalhost", "126.0.0.1", "0.0.0.0", "[::]", "[::2]", "[::ffff:1.2.3.4]", "[::127.0.0.1]",
        ] {
            #expect(try !Authority(parsing: text).host.isLoopback, "\(text)")
        }
    }

    @Test("the default port is the scheme's (RFC 9110 4.2.3)")
    func defaultPorts() throws {
        #expect(try Authority(parsing: "a").port(for: .https) == 443)
        #expect(try Authority(parsing: "a:1").port(for: .http) == 1)
    }
}
