import HTML
import Testing

@Suite("A piece of a page")
struct HTMLTests {
    static let hostile: [(text: String, escaped: String)] = [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("\"><img src=x onerror=alert(1)>", "&quot;&gt;&lt;img src=x onerror=alert(1)&gt;"),
        ("' onload='x", "&#39; onload=&#39;x"),
        ("'\u{301} onload='x", "&#39;\u{301} onload=&#39;x"),
        ("\"\u{301} x=\"", "&quot;\u{301} x=&quot;"),
        ("<\u{338}b>", "&lt;\u{338}b&gt;"),
        ("`x`", "&#96;x&#96;"),
        ("&lt;", "&amp;lt;"),
        ("a\u{202E}b\u{0}c\u{1B}[31m\u{7F}\u{85}\u{2028}\u{E000}", "a�b�c�[31m����"),
        ("a\tb\r\nc", "a�b�\nc"),
        ("{{csrf}} \\(name)", "{{csrf}} \\(name)"),
        ("ä→日本 – “x”", "ä→日本 – “x”"),
    ]

    @Test("what is put in is text, between tags and in attributes", arguments: hostile)
    func escaping(_ text: String, _ escaped: String) {
        let page: HTML = "<p title=\"\(text)\" class='a \(text)'>\(text)</p><title>\(text[...])</title>"
        #expect(page.text == "<p title=\"\(escaped)\" class='a \(escaped)'>\(escaped)</p><title>\(escaped)</title>")
    }

    @Test("numbers are digits, and a literal that is put in is text like any other")
    func numbers() {
        #expect(("<p>\(3) \(UInt64.max) \("<b>")</p>" as HTML).text == "<p>3 18446744073709551615 &lt;b&gt;</p>")
    }

    @Test("a piece goes into another one under its own word, between tags only")
    func nesting() {
        let row: HTML = "<li>\("<")</li>"
        let none: HTML? = nil
        #expect(("<ul>\(alreadyHTML: row)\(alreadyHTML: none)</ul>" as HTML).text == "<ul><li>&lt;</li></ul>")
        #expect(("<ul>\(alreadyHTML: [row, row])</ul>" as HTML).text == "<ul><li>&lt;</li><li>&lt;</li></ul>")
        #expect([row, row].joined(separator: " <br> ").text == "<li>&lt;</li> <br> <li>&lt;</li>")
        #expect(("<a title=\"\(alreadyHTML: row)\">" as HTML).text == "<a title=\"�\">")
        #expect(("<\(alreadyHTML: row)>" as HTML).text == "<�>")
    }

    @Test("an attribute with a condition is there or not")
    func attributes() {
        let none: String? = nil
        let page: HTML = """
            <p\(attribute: "class", "a\"b")\(attribute: "id", none)\(attribute: "hidden", isSet: true)\
            \(attribute: "open", isSet: false)>
            """
        #expect(page.text == "<p class=\"a&quot;b\" hidden>")
        #expect(("<a\(attribute: "href", "javascript:alert(1)")>" as HTML).text == "<a href=\"#\">")
        #expect(("<a\(attribute: "onclick", "alert(1)")>" as HTML).text == "<a onclick=\"�\">")
        #expect(("<p>\(attribute: "class", "<b>")</p>" as HTML).text == "<p> class=\"&lt;b&gt;\"</p>")
    }

    static let harmless = [
        "/", "/login/a", "?x=1:2", "#top", "page.css", "a/b:c", "http://h/", "HTTPS://h:1/a?b#c", "", "https:",
    ]

    @Test("a link leads to this site, or where http and https lead", arguments: harmless)
    func links(_ address: String) {
        let page: HTML = "<a href=\"\(address)\">x</a>"
        #expect(page.text == "<a href=\"\(address)\">x</a>")
    }

    static let harmful = [
        "javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "\u{1}javascript:alert(1)",
        "java\nscript:alert(1)", "java\tscript:alert(1)", "data:text/html,x", "vbscript:x", "blob:x",
        "file:///etc/passwd",
        "javascript\u{0}:x", "ʜttp://x", "httpx://h", "//evil.test/", "/\\evil.test/", "\\\\evil.test/",
        "/\t/evil.test",
        "\n//evil.test", "intent://x", "view-source:http://h", ":",
    ]

    @Test("a link to anywhere else becomes a link to nowhere", arguments: harmful)
    func badLinks(_ address: String) {
        #expect(("<a href=\"\(address)\" class=\"c\">\(1)</a>" as HTML).text == "<a href=\"#\" class=\"c\">1</a>")
        for page: HTML in [
            "<a HREF='\(address)'>", "<form action=\"\(address)\">", "<img alt=\"\" src=\"\(address)\">",
            "<button formaction=\"\(address)\">", "<svg><use xlink:href=\"\(address)\"></use></svg>",
            "<a\nhref = \"\(address)\">",
        ] { #expect(page.text.contains("\"#\"") || page.text.contains("'#'"), "\(page.text)") }
    }

    @Test("a link of several parts is judged as a whole")
    func linkOfParts() {
        #expect(("<a href=\"/login/\("a b\"")\">" as HTML).text == "<a href=\"/login/a b&quot;\">")
        #expect(("<a href=\"/\("/evil.test")\">" as HTML).text == "<a href=\"#\">")
        #expect(("<a href=\"\("java")\("script:x")\">" as HTML).text == "<a href=\"#\">")
        #expect(("<a href=\"\("java")script:x\">" as HTML).text == "<a href=\"#\">")
        #expect(
            ("<a href=\"\("https")://\("h")/\" title=\"\("javascript:x")\">" as HTML).text
                == "<a href=\"https://h/\" title=\"javascript:x\">")
    }

    @Test("a value in a place where nothing is safe is replaced")
    func unsafePlaces() {
        let text = "x onload=alert(1)"
        let pages: [(HTML, String)] = [
            ("<\(text)>", "<�>"), ("<a \(text)>", "<a �>"), ("<a href=\(text)>", "<a href=�>"),
            ("<a title=a\(text)>", "<a title=a�>"), ("<a title= \(text)>", "<a title= �>"),
            ("<!-- \(text) -->", "<!-- � -->"), ("<script>\(text)</script>\(text)", "<script>�</script>\(text)"),
            ("<style media=\"a\">\(text) a>b{}</style>\(text)", "<style media=\"a\">� a>b{}</style>\(text)"),
            ("<p style=\"\(text)\">", "<p style=\"�\">"), ("<p onclick=\"\(text)\">", "<p onclick=\"�\">"),
            ("<p ONclick='\(text)'>", "<p ONclick='�'>"), ("<iframe srcdoc=\"\(text)\">", "<iframe srcdoc=\"�\">"),
            ("</\(text)>", "</�>"), ("<a title=\"\(text)\"\(text)>", "<a title=\"\(text)\"�>"),
            ("<br/>\(text)<a b/>\(text)", "<br/>\(text)<a b/>\(text)"),
            ("<!DOCTYPE html>\(text)", "<!DOCTYPE html>\(text)"),
            ("<script src=\"/a\" defer></script>\(text)", "<script src=\"/a\" defer></script>\(text)"),
        ]
        for (page, expected) in pages { #expect(page.text == expected) }
    }

    @Test("a piece of a page that ends inside a tag is refused")
    func halfPieces() {
        for page: HTML in ["<a", "<a href=\"", "<a href=\"\("x")", "<!-- ", "<script>", "<a b='c"] {
            #expect(page.text == "�")
        }
    }
}
