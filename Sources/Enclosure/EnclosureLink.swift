import CLinux
import Glibc

/// One end of the connection between the launcher and the process inside: messages of words, and descriptors. unix(7).
///
/// A message is its number of bytes, then its words, each closed by a zero byte. Closes its descriptor when freed.
struct EnclosureLink: ~Copyable {
    private let descriptor: Int32

    /// Limit of descriptors in a message: SCM_MAX_FD of unix(7).
    static let most = 253
    /// Limit of a message's bytes. An environment is below 6 MiB (execve(2)).
    private static let limit = 8 << 20

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Blocks until the message is sent.
    /// - Parameter descriptors: at most `most`.
    /// - Returns: whether it was sent. If not, the other end is closed.
    func send(_ words: [String], descriptors: [Int32] = []) -> Bool {
        Self.send(words, descriptors, to: descriptor)
    }

    static func send(_ words: [String], _ descriptors: [Int32] = [], to descriptor: Int32) -> Bool {
        var bytes: [UInt8] = []
        for word in words { bytes += Array(word.utf8) + [0] }
        let count = UInt32(truncatingIfNeeded: bytes.count)
        bytes = unsafe withUnsafeBytes(of: count) { unsafe Array($0) } + bytes
        var start = 0
        while start < bytes.count {
            let passed = start == 0 ? descriptors : []
            let sent = unsafe bytes.withUnsafeBytes { buffer in
                unsafe heimdallr_send_descriptors(
                    descriptor, buffer.baseAddress.map { unsafe $0 + start }, buffer.count - start, passed,
                    Int32(passed.count))
            }
            if sent > 0 { start += sent } else if errno != EINTR { return false }
        }
        return true
    }

    /// Blocks until a message has come.
    /// - Returns: `nil` if the other end is closed, or has sent something else.
    func receive() -> (words: [String], descriptors: [Int32])? {
        var descriptors: [Int32] = []
        guard let head = read(Self.headSize, &descriptors), case let count = Self.count(head.span),
            count <= Self.limit, let bytes = read(count, &descriptors), let words = Self.words(bytes[...])
        else {
            for one in descriptors { close(one) }
            return nil
        }
        return (words, descriptors)
    }

    /// Number of bytes in front of a message's words.
    static let headSize = MemoryLayout<UInt32>.size

    /// Returns the number of bytes behind this head, which has the order of all machines that the proxy runs on.
    static func count(_ head: Span<UInt8>) -> Int {
        var count = 0
        for index in 0..<headSize { count |= Int(head[index]) << (8 * index) }
        return count
    }

    /// Returns the words of a message without its head; `nil` if the last one is not closed.
    static func words(_ bytes: ArraySlice<UInt8>) -> [String]? {
        guard bytes.last ?? 0 == 0 else { return nil }
        return bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast()
            .map { String(decoding: $0, as: UTF8.self) }
    }

    private func read(_ count: Int, _ descriptors: inout [Int32]) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var start = 0
        while start < count {
            var passed = [Int32](repeating: -1, count: Self.most)
            var number: Int32 = 0
            let received = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe heimdallr_receive_descriptors(
                    descriptor, buffer.baseAddress.map { unsafe $0 + start }, count - start, &passed, &number)
            }
            if received < 0, errno == EINTR { continue }
            guard received > 0 else { return nil }
            descriptors += passed.prefix(Int(number))
            start += received
        }
        return bytes
    }
}
