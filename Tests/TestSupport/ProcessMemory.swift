import Foundation
import Glibc

/// The memory of a running process, read from outside: proc_pid_maps(5), proc_pid_mem(5). Needs the same user, or root
/// if the process is not dumpable.
public struct ProcessMemory: Sendable {
    /// Place where a text was found.
    public struct Finding: Sendable, CustomStringConvertible {
        /// The kernel's name, such as `[heap]` or `[stack]`; empty for memory without a name.
        public var region: String
        public var address: UInt
        /// The bytes around the text, with dots for unprintable bytes.
        public var surroundings: String

        public var description: String { "\(String(address, radix: 16)) \(region): \(surroundings)" }
    }

    private let pid: Int32

    public init(of pid: Int32) { self.pid = pid }

    /// - Throws: when no memory of the process can be read.
    public func findings(of text: String) async throws -> [Finding] { try await offPool { try search(text) } }

    private func search(_ text: String) throws -> [Finding] {
        let needle = Data(text.utf8)
        let maps = try String(contentsOfFile: "/proc/\(pid)/maps", encoding: .utf8)
        let memory = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/\(pid)/mem"))
        defer { try? memory.close() }
        var findings: [Finding] = []
        var count = 0
        for line in maps.split(separator: "\n") {
            let words = line.split(separator: " ", omittingEmptySubsequences: true)
            let bounds = words[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            // Some of the kernel's own pages can't be read. They hold no data of the process.
            guard bounds.count == 2, words[1].hasPrefix("rw"), words.count < 6 || !words[5].hasPrefix("[v") else {
                continue
            }
            let region = words.count > 5 ? String(words[5]) : ""
            // Stacks and arenas are reserved in large pieces, whose pages are mostly untouched.
            let piece: UInt = 1 << 20
            var start = bounds[0]
            while start < bounds[1] {
                let overlap = min(UInt(needle.count), start - bounds[0])
                let end = min(start + piece, bounds[1])
                try memory.seek(toOffset: UInt64(start - overlap))
                if let bytes = try? memory.read(upToCount: Int(end - start + overlap)) {
                    count += bytes.count
                    findings += Self.find(needle, in: bytes, region, from: start - overlap)
                }
                start = end
            }
        }
        guard count > 0 else { throw TestFailure("no memory of process \(pid) could be read") }
        return findings
    }

    private static func find(_ needle: Data, in bytes: Data, _ region: String, from address: UInt) -> [Finding] {
        var findings: [Finding] = []
        var start = bytes.startIndex
        while let found = Self.first(needle, in: bytes[start...]) {
            let around = bytes[
                max(bytes.startIndex, found.lowerBound - 60)..<min(bytes.endIndex, found.upperBound + 30)]
            let text = String(decoding: around.map { $0 >= 0x20 && $0 < 0x7F ? $0 : 0x2E }, as: UTF8.self)
            findings.append(
                Finding(
                    region: region, address: address + UInt(found.lowerBound - bytes.startIndex), surroundings: text))
            start = found.upperBound
        }
        return findings
    }

    /// Searches by memmem(3). In Swift this takes seconds in a debug build.
    private static func first(_ needle: Data, in bytes: Data) -> Range<Data.Index>? {
        let offset: Int? = unsafe bytes.withUnsafeBytes { bytes in
            unsafe needle.withUnsafeBytes { needle in
                guard let base = bytes.baseAddress, let pattern = needle.baseAddress,
                    let found = unsafe memmem(base, bytes.count, pattern, needle.count)
                else { return nil }
                return unsafe UnsafeRawPointer(found) - base
            }
        }
        return offset.map { bytes.startIndex + $0..<bytes.startIndex + $0 + needle.count }
    }
}

// The C library has this function, but Swift's module of the library does not.
@_silgen_name("memmem") private func memmem(
    _ bytes: UnsafeRawPointer, _ count: Int, _ pattern: UnsafeRawPointer, _ length: Int
) -> UnsafeMutableRawPointer?
