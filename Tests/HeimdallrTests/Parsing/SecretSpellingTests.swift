import Testing

@testable import Heimdallr

@Suite("a secret that a server echoes is not shown, however it is spelt")
struct SecretSpellingTests {
    private static let secret = Secret("s3/cr t+%41&=\"\\é")

    @Test(arguments: [
        "s3/cr t+%41&=\"\\é", "s3%2Fcr%20t%2B%2541%26%3D%22%5C%C3%A9", "s3%2fcr%20t%2b%2541%26%3d%22%5c%c3%a9",
        "s3%2Fcr+t%2b%2541%26=%22%5C%c3%A9", "%73%33%2f%63%72%20%74%2b%25%34%31%26%3d%22%5c%c3%a9",
        "s3/cr%20t+%2541&=\"\\é", "s3%252fcr%2520t%252B%252541%2526%253d%2522%255c%25c3%25a9",
        "s3\\/cr t+%41\\u0026\\u003D\\\"\\\\é", "s3&#47;cr t&#x2B;%41&amp;&#61;&quot;\\é", "s3%2fcr+t+%41&=\"\\é",
    ])
    func `a secret is hidden in every spelling that a server may give it`(spelling: String) {
        #expect(
            ServerText.sanitize("the secret \(spelling) is wrong", hiding: [Self.secret])
                == "the secret <redacted> is wrong")
        #expect(ServerText.sanitize("\(spelling)\(spelling)", hiding: [Self.secret]) == "<redacted><redacted>")
    }

    @Test(arguments: [
        "s3/cr t+%41&=\"\\", "s3/cr", "%", "%2", "&#", "\\u00", "100%", "&#99999999999999999999;", "&;", "%25%25%25",
    ])
    func `a text that is not the secret stays as it is`(text: String) {
        #expect(ServerText.sanitize(text, hiding: [Self.secret]) == text)
    }

    @Test func `a secret that begins another one does not keep it from being hidden`() {
        #expect(
            ServerText.sanitize("token-and-more", hiding: [Secret("token"), Secret("token-and-more")]) == "<redacted>")
    }

    @Test func `a percent sign beside a secret is read in both ways`() {
        #expect(ServerText.sanitize("%2541", hiding: [Secret("%41")]) == "<redacted>")
        #expect(ServerText.sanitize("x%2541y", hiding: [Secret("xAy")]) == "<redacted>")
        #expect(ServerText.sanitize("%41", hiding: [Secret("%41")]) == "<redacted>")
    }

    @Test func `many readings of a text take no long time`() {
        let secret = Secret(String(repeating: "%", count: 2000))
        let text = String(repeating: "%25", count: 5000)
        let begin = ContinuousClock.now
        _ = ServerText.sanitize(text, hiding: [secret])
        #expect(ContinuousClock.now - begin < .seconds(20))
    }

    @Test func `a secret that is a letter of the mark is not looked for in marks`() {
        let letters = "edcart<>".map { Secret(String($0)) }
        let begin = ContinuousClock.now
        let shown = ServerText.sanitize(
            String(repeating: "e", count: 16_384), hiding: (0..<100).flatMap { _ in letters })
        #expect(ContinuousClock.now - begin < .seconds(20))
        #expect(shown.unicodeScalars.count <= 257)
        #expect(ServerText.sanitize("x1y", hiding: [Secret("1"), Secret("e"), Secret("e")]) == "x<redacted>y")
    }

    @Test(arguments: ["", "x", "%41"])
    func `a secret longer than what is searched is hidden`(_ before: String) {
        let secret = (0..<5000).map { String($0) }.joined(separator: "/")
        let text = String(repeating: before, count: 60) + secret + " is wrong"
        for spelling in [text, text.replacing("/", with: "%2F"), text.replacing("/", with: "\\/")] {
            let shown = ServerText.sanitize(spelling, hiding: [Secret(secret)])
            #expect(shown.hasSuffix("<redacted>"))
        }
    }

    @Test func `secrets that overlap are hidden whole`() {
        #expect(ServerText.sanitize("abcdefg", hiding: [Secret("abc"), Secret("cdef")]) == "<redacted>g")
    }
}
