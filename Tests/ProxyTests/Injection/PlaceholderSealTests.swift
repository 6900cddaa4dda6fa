import Configuration
import Cryptography
import Testing
import WireText

@testable import Proxy

@Suite("A placeholder is good for one client and one caller, until its end") struct PlaceholderSealTests {
    private static func key(_ byte: UInt8) -> SecretBytes { SecretBytes([UInt8](repeating: byte, count: 32)) }

    private let seal = PlaceholderSeal(keys: [key(1)])

    private func refusal(
        _ text: [UInt8], _ seal: PlaceholderSeal? = nil, client: String = "billing", caller: String = "user alice",
        now: Int64 = 1000
    ) -> PlaceholderSeal.Refusal? {
        do throws(PlaceholderSeal.Refusal) {
            try (seal ?? self.seal).open(text.span, client: client, caller: caller, now: now)
            return nil
        } catch {
            return error
        }
    }

    @Test func `the same client and caller may use it until its end, and a moment longer`() throws {
        let text = try seal.seal(client: "billing", caller: "user alice", end: 1000)
        #expect(refusal(text) == nil)
        #expect(refusal(text, now: 1000 + PlaceholderSeal.grace) == nil)
        #expect(refusal(text, now: 1001 + PlaceholderSeal.grace) == .ended)
    }

    @Test func `another client, another caller and another key are told apart`() throws {
        let text = try seal.seal(client: "billing", caller: "user alice", end: 2000)
        #expect(refusal(text, client: "crm") == .elsewhere)
        #expect(refusal(text, caller: "user bob") == .foreign)
        #expect(refusal(text, caller: "") == .foreign)
        #expect(refusal(text, PlaceholderSeal(keys: [Self.key(2)])) == .foreign)
        // An ended one of another caller is that caller's all the same.
        #expect(refusal(text, caller: "user bob", now: 9000) == .foreign)
    }

    @Test func `while keys change, each of them opens and the first one seals`() throws {
        let old = try seal.seal(client: "billing", caller: "user alice", end: 2000)
        let both = PlaceholderSeal(keys: [Self.key(2), Self.key(1)])
        #expect(refusal(old, both) == nil)
        let new = try both.seal(client: "billing", caller: "user alice", end: 2000)
        #expect(refusal(new, PlaceholderSeal(keys: [Self.key(2)])) == nil)
        #expect(refusal(new, seal) == .foreign)
    }

    @Test(arguments: ["", String(repeating: "client", count: 1000)])
    func `a placeholder is short text of token68, whatever the names, and names nobody`(name: String) throws {
        let text = try seal.seal(client: name, caller: "user \(name)", end: .max)
        #expect(text.starts(with: PlaceholderSeal.prefix) && text.count < 200)
        #expect(text.allSatisfy { ASCII.isAlphanumeric($0) || "-._~+/".utf8.contains($0) })
        #expect(refusal(text, client: name, caller: "user \(name)") == nil)
    }

    @Test func `no changed byte is accepted, nor any part`() throws {
        let text = try seal.seal(client: "billing", caller: "user alice", end: 2000)
        for index in text.indices.dropFirst(PlaceholderSeal.prefix.count) {
            for byte in Array("Aa0_-=+ ".utf8) where byte != text[index] {
                var changed = text
                changed[index] = byte
                #expect(refusal(changed) == .foreign)
            }
        }
        for count in text.indices { #expect(refusal(Array(text[..<count])) == .foreign) }
        #expect(refusal(text + [0x41]) == .foreign)
    }

    @Test func `callers are equal at each listener, and no two of them by their texts`() {
        var alice = Caller()
        alice.user = "alice"
        var atSocket = alice
        atSocket.uid = 1000
        atSocket.listener = .unix(path: "/run/proxy.sock", mode: nil)
        #expect(alice.identity == atSocket.identity)
        var process = Caller()
        process.uid = 1000
        var named = Caller()
        named.user = "uid 1000"
        #expect(process.identity != named.identity)
        #expect(Caller().identity.isEmpty)
    }
}
