import HTTPMessage
import Testing

@Suite struct `A URL is taken apart once` {
    @Test func `scheme, host and port are canonical, path and query stay as written`() throws {
        let url = try WebURL("HTTPS://Api.Example.com.:443/a/%2E//b?x=/y@z&q={1|2}")
        #expect(url.scheme == .https && url.authority.description == "api.example.com:443" && url.port == 443)
        #expect(url.origin == "https://api.example.com" && url.start == "HTTPS://Api.Example.com.:443")
        #expect(url.path == "/a/%2E//b" && url.query == "x=/y@z&q={1|2}")
        #expect(url.target == "/a/%2E//b?x=/y@z&q={1|2}" && url.userInfo == nil)
    }

    @Test(
        "every part may be missing but scheme and host",
        arguments: [
            ("http://a", "http://a", "/"), ("http://a?", "http://a", "/?"), ("http://a?b/c", "http://a", "/?b/c"),
            ("http://a:8080/", "http://a:8080", "/"), ("http://a:80/b", "http://a", "/b"),
            ("https://[::1]:8443", "https://[::1]:8443", "/"), ("https://[0:0::1]/", "https://[::1]", "/"),
            ("http://a:443/", "http://a:443", "/"), ("https://127.0.0.1", "https://127.0.0.1", "/"),
        ])
    func parts(text: String, origin: String, target: String) throws {
        let url = try WebURL(text)
        #expect(url.origin == origin && url.target == target)
        #expect(WebURL.origin(of: text) == origin)
    }

    @Test(
        "a text that two programs could read as two hosts is refused",
        arguments: [
            ("", .relative), ("/a", .relative), ("a.example", .relative), ("://a/", .relative), ("https:a", .relative),
            ("ftp://a/", .scheme), ("https ://a/", .character), ("xhttps://a/", .scheme), ("http://a\\@b/", .character),
            ("http://a/\\b", .character), ("http://a b/", .character), ("http://a\t/", .character),
            ("http://a\r\nb/", .character), ("http://\u{E4}.example/", .character), ("http://a\u{7F}/", .character),
            ("https://", .authority("")), ("https:///b", .authority("")), ("http://:80/", .authority(":80")),
            ("http://a:0/", .authority("a:0")), ("http://a:65536/", .authority("a:65536")),
            ("http://a:+5/", .authority("a:+5")), ("http://a:b/", .authority("a:b")),
            ("http://::1/", .authority("::1")),
            ("http://a..b/", .authority("a..b")), ("http://%61/", .authority("%61")),
            ("http://127.1/", .authority("127.1")),
            ("http://0x7f000001/", .authority("0x7f000001")),
            ("http://[fe80::1%25eth0]/", .authority("[fe80::1%25eth0]")),
            ("http://[::1]x/", .authority("[::1]x")), ("http://{tenant}/", .authority("{tenant}")),
            ("http://u@a/", .userInfo), ("http://u:p@a/", .userInfo), ("http://@a/", .userInfo),
            ("http://a@b@c/", .userInfo),
            ("http://a/#x", .fragment), ("http://a#@b/", .fragment), ("http://a/?#", .fragment),
        ] as [(String, WebURL.Fault)])
    func refused(text: String, fault: WebURL.Fault) {
        #expect(throws: fault) { try WebURL(text) }
    }

    @Test func `user information and fragment are read only where an option allows them`() throws {
        let proxy = try WebURL("http://us%65r:p@ss@proxy:3128", allowing: .userInfo)
        #expect(proxy.userInfo == "us%65r:p@ss" && proxy.origin == "http://proxy:3128")
        #expect(throws: WebURL.Fault.userInfo) { try WebURL("http://u@a/", allowing: .fragment) }
        #expect(try WebURL("http://a/b?c#d?e/f", allowing: .fragment).target == "/b?c")
        #expect(throws: WebURL.Fault.fragment) { try WebURL("http://a/#b", allowing: .userInfo) }
        #expect(WebURL.origin(of: "HTTP://me:secret@A:80/b#c") == "http://a", "nobody's name")
        #expect(WebURL.origin(of: "No URL") == "no url")
    }

    @Test func `plaintext needs a permission`() {
        #expect(
            WebURL("https://a/", allowPlaintext: false) != nil && WebURL("HTTPS://a/", allowPlaintext: false) != nil)
        #expect(WebURL("http://a/", allowPlaintext: false) == nil && WebURL("HTTP://a/", allowPlaintext: false) == nil)
        #expect(WebURL("http://a/", allowPlaintext: true) != nil && WebURL("http://u@a/", allowPlaintext: true) == nil)
    }

    @Test func `a URL is canonical if browsers keep its start as written`() throws {
        for text in ["http://a", "https://a:8443/B", "http://[::1]/?X", "http://127.0.0.1:80"] {
            #expect(try WebURL(text).isCanonical, "\(text)")
        }
        for text in ["HTTP://a", "http://A/", "http://a./", "http://a:/", "http://a:080/", "http://[0::1]/"] {
            #expect(try !WebURL(text).isCanonical, "\(text)")
        }
    }

    @Test func `the scheme alone is read without checking the rest`() {
        #expect(WebURL.scheme(of: "HTTPS://u@a b") == .https && WebURL.scheme(of: "http://") == .http)
        for text in ["", "a", "http:a", "http:/a", "ftp://a", "://a", "x://http://a"] {
            #expect(WebURL.scheme(of: text) == nil, "\(text)")
        }
    }
}
