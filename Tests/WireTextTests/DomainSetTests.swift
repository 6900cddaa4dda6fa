import Testing
import WireText

@Suite struct `A set of domains` {
    @Test func `a set of domains covers its domains and the names below them`() {
        let domains = DomainSet(["example.com", "other.test"])
        for name in ["example.com", "a.example.com", "b.c.other.test"] { #expect(domains.covers(name), "\(name)") }
        for name in ["", "com", "notexample.com", "example.com.test", "example.com.", ".com"] {
            #expect(!domains.covers(name), "\(name)")
        }
        #expect(!DomainSet([]).covers("com"))
    }

    @Test func `a set of domains leaves out domains below others`() {
        #expect(
            DomainSet(["a.example.com", "example.com", "b.a.example.com", "test"]).names == ["example.com", "test"])
    }
}
