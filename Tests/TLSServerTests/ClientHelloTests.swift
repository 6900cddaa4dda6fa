import TLSServer
import TestSupport
import Testing

@Suite("a ClientHello is read without libssl")
struct ClientHelloTests {
    /// The first bytes of libssl's client.
    private static func hello(_ name: String? = "one.test") throws -> [UInt8] {
        let client = try MemoryClient(name: name)
        client.goOn()
        return client.take()
    }

    /// The same message in records of other sizes.
    private static func cut(_ hello: [UInt8], into size: Int) -> [UInt8] {
        var records: [UInt8] = []
        for start in stride(from: 5, to: hello.count, by: size) {
            let part = hello[start..<min(start + size, hello.count)]
            records += [0x16, 3, 1, UInt8(part.count >> 8), UInt8(part.count & 255)] + part
        }
        return records
    }

    private static func read(_ bytes: [UInt8]) -> ClientHello { ClientHello(parsing: bytes.span) }

    @Test func `a ClientHello is read with its server name, in lower case`() throws {
        #expect(Self.read(try Self.hello()) == .whole(serverName: "one.test"))
        #expect(Self.read(try Self.hello("API.Example.com")) == .whole(serverName: "api.example.com"))
        #expect(Self.read(try Self.hello(nil)) == .whole(serverName: nil))
    }

    @Test func `a ClientHello that is cut anywhere waits for more, and leaves later bytes alone`() throws {
        let hello = try Self.hello()
        for count in hello.indices { #expect(Self.read(Array(hello[..<count])) == .partial, "\(count)") }
        #expect(Self.read(hello + [0x16, 3, 3, 0, 0]) == .whole(serverName: "one.test"))
    }

    @Test(arguments: [1, 2, 3, 4, 5, 37, 100, 200])
    func `a ClientHello is read from records of any size`(size: Int) throws {
        let hello = Self.cut(try Self.hello(), into: size)
        #expect(Self.read(hello) == .whole(serverName: "one.test"))
        for count in hello.indices { #expect(Self.read(Array(hello[..<count])) == .partial, "\(count)") }
    }

    @Test func `no flipped byte of a ClientHello, alone or with a cut, does harm`() throws {
        let hello = try Self.hello()
        var changed = 0
        for index in hello.indices {
            for flip: UInt8 in [1, 0x80, 0xff] {
                var bytes = hello
                bytes[index] ^= flip
                if Self.read(bytes) != .whole(serverName: "one.test") { changed += 1 }
                for size in [1, 64] { _ = Self.read(Self.cut(bytes, into: size)) }
                _ = Self.read(Array(bytes[..<(index + 1)]))
                _ = Self.read(Array(bytes[index...]))
            }
        }
        #expect(changed > 100)
    }

    @Test func `bytes that are no ClientHello are refused`() throws {
        var two = try Self.hello()
        two[5] = 2
        var version = try Self.hello()
        version[1] = 2
        var name = try Self.hello("one.test")
        let dot = try #require(name.indices.first { name[$0...].starts(with: "one.test".utf8) })
        name[dot] = 0
        let others: [[UInt8]] = [
            two, version, name, Array("GET / HTTP/1.1\r\n\r\n".utf8), [0x17, 3, 3], [0x16, 3, 1, 0, 0, 1],
            [0x16, 3, 1, 0, 4, 1, 0, 0, 0], [0x16, 3, 1, 0, 4, 1, 1, 0, 0],
        ]
        for bytes in others { #expect(Self.read(bytes) == .malformed, "\(bytes)") }
    }

    @Test func `an endless ClientHello is refused`() {
        let begin: [UInt8] = [0x16, 3, 1, 0x40, 0, 1, 0, 0x40, 0]
        let most = begin + [UInt8](repeating: 0, count: ClientHello.maxBytes - begin.count - 1)
        #expect(Self.read(most) == .partial)
        #expect(Self.read(most + [0]) == .malformed)
    }
}
