import Glibc
import TestSupport
import Testing

@testable import Enclosure

@Suite("messages between launcher and enclosed process")
struct EnclosureLinkTests {
    private func pair() throws -> (Int32, Int32) {
        var ends: [Int32] = [-1, -1]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        return (ends[0], ends[1])
    }

    @Test func `words and descriptors cross a link as they were sent`() throws {
        let (one, other) = try pair()
        let left = EnclosureLink(one)
        let right = EnclosureLink(other)
        let sent =
            left.send([])
            && left.send(["", "ä word", ""], descriptors: Array(repeating: STDIN_FILENO, count: EnclosureLink.most))
        #expect(sent)
        let empty = right.receive()?.words
        #expect(empty == [])
        guard let message = right.receive() else { throw TestFailure("no message") }
        #expect(message.words == ["", "ä word", ""])
        #expect(message.descriptors.count == EnclosureLink.most)
        for descriptor in message.descriptors {
            #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
            close(descriptor)
        }
    }

    @Test(
        arguments: [
            [], [1, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF], [0, 0, 0, 1], [2, 0, 0, 0, 65], [2, 0, 0, 0, 65, 66],
        ] as [[UInt8]])
    func `bytes that are no message end the link`(bytes: [UInt8]) throws {
        let (one, other) = try pair()
        _ = unsafe write(one, bytes, bytes.count)
        close(one)
        let link = EnclosureLink(other)
        let isNone = link.receive() == nil
        #expect(isNone)
    }
}
