import Testing
import WireText

@testable import Enclosure

@Suite("names: the enclosure's own name system")
struct NameAnswerTests {
    private let names = EnclosedNames()

    /// A query with the recursion bit, and one question.
    private func query(_ name: String, type: UInt16 = 1, recordClass: UInt16 = 1) -> [UInt8] {
        [0xAB, 0xCD, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0] + question(name, type, recordClass)
    }

    private func question(_ name: String, _ type: UInt16, _ recordClass: UInt16 = 1) -> [UInt8] {
        name.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0] + type.bigEndianBytes
            + recordClass.bigEndianBytes
    }

    private func answer(_ query: [UInt8]) throws -> [UInt8] { try #require(NameReply.bytes(to: query, from: names)) }

    @Test func `an address is a name's for the whole run, however its letters are written`() throws {
        let first = try answer(query("api.test"))
        #expect(Array(first.suffix(4)) == [198, 18, 0, 1])
        #expect(try Array(answer(query("other.test")).suffix(4)) == [198, 18, 0, 2])
        let again = try answer(query("API.Test"))
        #expect(Array(again.suffix(4)) == [198, 18, 0, 1])
        // The question comes back as it was asked.
        #expect(again.count == first.count && Array(again[12..<26]) == question("API.Test", 1))
        #expect(Array(first[..<12]) == [0xAB, 0xCD, 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0])
        #expect(Array(first[26...]) == [0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 0, 1])
    }

    @Test(arguments: [UInt16(28), 15, 16, 33, 65, 255, 5, 2])
    func `a name has nothing but an address, and no name is said not to exist`(type: UInt16) throws {
        let answer = try answer(query("api.test", type: type))
        #expect(answer[3] & 15 == 0 && Array(answer[6..<8]) == [0, 0])
        #expect(try self.answer(query("api.test", recordClass: 3))[3] & 15 == 0)
    }

    @Test func `localhost is this machine, and an address leads back to its name`() throws {
        #expect(try Array(answer(query("localhost")).suffix(4)) == [127, 0, 0, 1])
        #expect(try Array(answer(query("a.localhost", type: 28)).suffix(2)) == [0, 1])
        _ = try answer(query("api.test"))
        let name = Array(question("api.test", 0)[..<10])
        #expect(try Array(answer(query("1.0.18.198.in-addr.arpa", type: 12)).suffix(10)) == name)
        #expect(try answer(query("9.0.18.198.in-addr.arpa", type: 12))[7] == 0)
        #expect(try answer(query("1.0.0.999.in-addr.arpa", type: 12))[7] == 0)
    }

    @Test func `when the table is full, further names fail and known ones stay`() throws {
        for number in 0..<EnclosedNames.most { _ = names.address(of: "n\(number).test") }
        #expect(try answer(query("one.more.test"))[3] & 15 == 2)
        #expect(try Array(answer(query("n0.test")).suffix(4)) == [198, 18, 0, 1])
        // The last one is within 198.18.0.0/15.
        #expect(try Array(answer(query("n\(EnclosedNames.most - 1).test")).suffix(4)) == [198, 19, 0, 0])
    }

    @Test func `a packet that is no query of one good name gets a refusal or nothing, and makes no entry`() throws {
        #expect(NameReply.bytes(to: [], from: names) == nil)
        #expect(NameReply.bytes(to: Array(query("api.test")[..<11]), from: names) == nil)
        var isAnswer = query("api.test")
        isAnswer[2] |= 0x80
        #expect(NameReply.bytes(to: isAnswer, from: names) == nil)
        var update = query("api.test")
        update[2] = 5 << 3
        #expect(try answer(update)[3] & 15 == 4)
        var two = query("api.test")
        two[5] = 2
        let bad = [
            two, query("with space.test"), query("ä.test"), query(""), query("a\"b.test"),
            Array(query("api.test").dropLast()), [0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xC0, 12, 0, 1, 0, 1],
            query(Array(repeating: String(repeating: "a", count: 63), count: 5).joined(separator: ".")),
        ]
        for query in bad { #expect(try answer(query)[3] & 15 == 1) }
        #expect(names.name(ofNumber: 0xC612_0001) == nil)
    }

    @Test func `no bytes of a name query are fatal`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            var query = query("api.test")
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                query[Int.random(in: query.indices, using: &random)] = .random(in: .min ... .max, using: &random)
            }
            let cut = Array(query.prefix(Int.random(in: 0...query.count, using: &random)))
            if let answer = NameReply.bytes(to: cut, from: names) { #expect(answer.count <= 512) }
        }
    }
}
