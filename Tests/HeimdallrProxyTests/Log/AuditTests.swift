import Administration
import Configuration
import Foundation
import Logging
import Proxy
@testable import Reactor
import Synchronization
import TestSupport
import Testing

@testable import HeimdallrProxy

@Suite struct AuditLineTests {
    private func line(_ change: (inout RequestRecord) -> Void = { _ in }) -> String {
        var record = RequestRecord()
        record.startedAt = WallTime(seconds: 1_772_355_907, nanoseconds: 12_000_000)
        record.audit = .given
        record.status = 200
        record.upstream = "api.example.com"
        record.rule = 2
        record.client = "billing"
        change(&record)
        return String(decoding: AuditLine.bytes(record), as: UTF8.self)
    }

    @Test func `a line says who, whose, where and what came of it`() {
        #expect(
            line {
                $0.user = "alice"
                $0.certificate = "CN=worker"
                $0.listener = SocketAddress(.ipv4(address: 0x7F00_0001, port: 8080))
                $0.address = SocketAddress(.ipv4(address: 0x7F00_0001, port: 5000))
            }
                == #"{"time":"2026-03-01T09:05:07.012Z","audit":"given","status":200,"upstream":"api.example.com","#
                + #""rule":"upstreams[2]","client":"billing","user":"alice","certificate":"CN=worker","listener":"127.0.0.1:8080","#
                + #""peer":"127.0.0.1:5000"}"# + "\n")
        let denied = line {
            $0.audit = .denied
            $0.status = 403
            $0.reason = "not-covered"
            $0.upstream = nil
            $0.rule = nil
            $0.client = nil
            $0.peer = PeerCredentials(user: 1000, group: 1, process: 1)
        }
        #expect(
            denied
                == #"{"time":"2026-03-01T09:05:07.012Z","audit":"denied","status":403,"reason":"not-covered","uid":1000}"#
                + "\n")
        #expect(
            String(decoding: AuditLine.bytes(dropped: 7, WallTime(seconds: 0, nanoseconds: 0)), as: UTF8.self)
                == #"{"time":"1970-01-01T00:00:00.000Z","audit":"dropped","count":7}"# + "\n")
    }

    @Test(arguments: ["a\nb", "a\"b", "a\\", "\u{2028}", "\u{1B}[31m", "\u{0}", "\",\"audit\":\"given"])
    func `no name breaks a line of the audit stream`(name: String) throws {
        let line = line { $0.user = name }
        #expect(line.filter { $0.isNewline }.count == 1 && line.hasSuffix("}\n"))
        #expect(!line.unicodeScalars.dropLast().contains { $0.value < 0x20 || $0.value == 0x2028 })
        let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        #expect(object["user"] as? String == name)
        #expect(object.count == 7)
    }
}

@Suite struct AuditStreamTests {
    private let folder: TemporaryDirectory
    private var path: String { folder.path + "/audit.jsonl" }
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    init() throws { folder = try TemporaryDirectory() }

    private func statuses(_ name: String = "audit.jsonl") throws -> [Int] {
        try folder.read(name).split(separator: "\n").map { line in
            let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            return try #require(object["status"] as? Int ?? object["count"] as? Int)
        }
    }

    private func record(_ status: Int) -> RequestRecord {
        var record = RequestRecord()
        record.status = status
        return record
    }

    @Test func `the file is the owner's, appended to, and goes on elsewhere when it was moved away`() throws {
        let stream = try AuditStream(.file(path), logger: logger)
        stream.write(record(1))
        try stream.reopen()
        stream.write(record(2))
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        stream.close()
        #expect(try statuses() == [1, 2])

        let second = try AuditStream(.file(path), logger: logger)
        second.write(record(3))
        try FileManager.default.moveItem(atPath: path, toPath: path + ".1")
        // Nobody has said so yet.
        second.write(record(4))
        try second.reopen()
        second.write(record(5))
        second.close()
        #expect(try statuses("audit.jsonl.1") == [1, 2, 3, 4])
        #expect(try statuses() == [5])
        #expect(second.counts.written == 3 && second.counts.dropped == 0)
    }

    @Test func `an audit file that is no plain file is refused with what to do, and a pipe holds nobody`() throws {
        try folder.write("", to: "target")
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: folder.path + "/target")
        #expect(unsafe mkfifo(folder.path + "/pipe", 0o600) == 0)
        for wrong in [path, folder.path + "/pipe", folder.path, folder.path + "/none/audit", "/dev/null"] {
            let fault = #expect(throws: AuditFault.self) { _ = try AuditStream(.file(wrong), logger: logger) }
            #expect(fault?.description.contains("audit.file: \(wrong) can't be opened: ") == true)
            #expect(fault?.description.contains("Name a file that the proxy's user may write to") == true)
        }
    }

    @Test func `a file that others can write to, or that has another name, is refused with what to do`() throws {
        try folder.write("", to: "audit.jsonl")
        func fault() -> String? {
            do throws(AuditFault) {
                try AuditStream(.file(path), logger: logger).close()
                return nil
            } catch { return error.description }
        }
        for (mode, isRefused) in [(0o640, false), (0o644, false), (0o620, true), (0o602, true), (0o666, true)] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            let fault = fault()
            #expect((fault != nil) == isRefused, "\(mode): \(fault ?? "")")
            #expect(fault?.contains("\(path) is not written to: ") != false && fault?.contains("chmod go-w") != false)
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        try FileManager.default.linkItem(atPath: path, toPath: folder.path + "/other")
        #expect(fault()?.contains("it has 2 names (hard links): move it away") == true)
        try FileManager.default.removeItem(atPath: folder.path + "/other")
        #expect(fault() == nil)
        // One that stays open is not exchanged for such a file.
        let stream = try AuditStream(.file(path), logger: logger)
        try FileManager.default.moveItem(atPath: path, toPath: path + ".1")
        try folder.write("", to: "audit.jsonl")
        try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: path)
        #expect(throws: AuditFault.self) { try stream.reopen() }
        stream.close()
    }

    @Test func `an audit file belongs to the proxy's user or root`() {
        func fault(owner: UInt32, user: UInt32) -> String? {
            AppendedFile.fault(owner: owner, mode: 0o100600, links: 1, user: user)
        }
        #expect(fault(owner: 7, user: 7) == nil)
        #expect(fault(owner: 0, user: 7) == nil)
        #expect(fault(owner: 8, user: 7)?.hasPrefix("it belongs to user 8, ") == true)
        #expect(fault(owner: 7, user: 0)?.contains("give it to user 0") == true)
    }

    @Test func `an audit file that can't be opened again stays as it was`() throws {
        let stream = try AuditStream(.file(path), logger: logger)
        try FileManager.default.moveItem(atPath: path, toPath: path + ".1")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(throws: AuditFault.self) { try stream.reopen() }
        stream.write(record(1))
        stream.close()
        #expect(try statuses("audit.jsonl.1") == [1])
    }

    /// A disk that has room for so many bytes.
    private final class Disk: LineOutput {
        let state = Mutex((room: 0, bytes: [UInt8](), refusals: 0))

        func take(_ bytes: [UInt8]) -> (count: Int, failure: SystemCallError?) {
            state.withLock { state in
                let count = min(state.room, bytes.count)
                state.room -= count
                if count < bytes.count { state.refusals += 1 }
                state.bytes += bytes[..<count]
                return (count, count < bytes.count ? SystemCallError(number: ENOSPC) : nil)
            }
        }
    }

    @Test func `lines that a full disk loses are counted, and told once there is room`() async throws {
        let disk = Disk()
        disk.state.withLock { $0.room = 10 }
        let writer = LogWriter(format: .json, output: disk) { dropped, _ in Array("missing: \(dropped)\n".utf8) }
        for _ in 0..<3 {
            writer.write(Array("line\n".utf8))
            writer.flush()
        }
        #expect(disk.state.withLock { String(decoding: $0.bytes, as: UTF8.self) } == "line\nline\n")
        // The disk refuses the line about the lost line, too. That line is not counted.
        try await eventually("the line and the line about it are refused") {
            disk.state.withLock { $0.refusals } >= 2
        }
        #expect(writer.counts.dropped == 1)
        disk.state.withLock { $0.room = 1000 }
        try await eventually("it is said") {
            disk.state.withLock { String(decoding: $0.bytes, as: UTF8.self) } == "line\nline\nmissing: 1\n"
        }
        writer.write(Array("line\n".utf8))
        writer.close()
        #expect(disk.state.withLock { String(decoding: $0.bytes, as: UTF8.self) }.hasSuffix("missing: 1\nline\n"))
        #expect(writer.counts == .init(written: 3, dropped: 1))
    }

    @Test func `a disk that stays full does not hold up the end`() async throws {
        let writer = LogWriter(format: .json, output: Disk())
        writer.write(Array("line\n".utf8))
        let begin = ContinuousClock.now
        writer.close()
        #expect(ContinuousClock.now - begin < .seconds(1))
        #expect(writer.counts == .init(written: 0, dropped: 1))
    }
}
