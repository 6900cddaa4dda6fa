import Glibc
import Reactor
import Testing

@testable import Enclosure

@Suite("the enclosure's plan, filter and refusals")
struct EnclosurePlanTests {
    @Test func `a plan survives the way to the process inside`() throws {
        let database = try #require(SocketAddress(numericHost: "198.18.0.7", port: 5432))
        let six = try #require(SocketAddress(numericHost: "2001:db8::1", port: 443))
        let plan = EnclosurePlan(ports: [443, 80, 8443], allowed: [database, six])
        #expect(EnclosurePlan(plan.words) == plan)
        #expect(plan.listeners.count == 12)
        // One rule for a port at every address, and one for an address alone.
        #expect(plan.rules.count == 7)
        #expect(plan.rules.filter { $0.address != nil }.map(\.address) == [database, six])
        #expect(EnclosurePlan(["tcp", "0.0.0.0"]) == nil)
        #expect(EnclosurePlan(["sctp", "0.0.0.0", "80"]) == nil)
        #expect(EnclosurePlan(["tcp", "name.test", "80"]) == nil)
        #expect(EnclosurePlan(["tcp", "0.0.0.0", "80000"]) == nil)
    }

    @Test func `hidden paths survive the way to the process inside, and two lists become one`() throws {
        var mounts = EnclosureMounts()
        mounts.hiddenFiles = ["/a", "/b"]
        mounts.shown = ["/c/d"]
        #expect(EnclosureMounts(mounts.words) == mounts)
        #expect(EnclosureMounts(EnclosureMounts().words) == EnclosureMounts())
        #expect(EnclosureMounts(["/a", "--"]) == nil)
        var other = EnclosureMounts()
        other.hiddenFiles = ["/b", "/e"]
        other.hiddenFolders = ["/c"]
        let both = mounts.joined(with: other)
        #expect(both.hiddenFiles == ["/a", "/b", "/e"] && both.hiddenFolders == ["/c"] && both.shown == ["/c/d"])
    }

    // MARK: The filter

    /// Runs the filter as the kernel does, for one call. Returns 0 for an allowed one, or the error number.
    private func judge(_ call: UInt32, _ arguments: [UInt64] = [], architecture: UInt32 = native) throws -> UInt32 {
        var data = [call, architecture, 0, 0]
        for argument in arguments + Array(repeating: 0, count: 6 - arguments.count) {
            data += [UInt32(truncatingIfNeeded: argument), UInt32(truncatingIfNeeded: argument >> 32)]
        }
        let program = EnclosureFilter.program
        var (place, loaded) = (0, UInt32(0))
        for _ in 0..<program.count {
            let instruction = program[place]
            let value = UInt32(truncatingIfNeeded: instruction >> 32)
            let (whenTrue, whenFalse) = (Int(instruction >> 16 & 255), Int(instruction >> 24 & 255))
            place += 1
            switch instruction & 0xFFFF {
            case 0x20: loaded = data[Int(value / 4)]
            case 0x15: place += loaded == value ? whenTrue : whenFalse
            case 0x35: place += loaded >= value ? whenTrue : whenFalse
            case 0x06: return value == 0x7FFF_0000 ? 0 : value & 0xFFFF
            default: Issue.record("unknown instruction \(instruction)")
            }
        }
        throw SystemError("the filter has no end", code: 0)
    }

    #if arch(x86_64)
        private static let native: UInt32 = 0xC000_003E
        private let socket: UInt32 = 41
        private let ioctl: UInt32 = 16
        private let foreign: UInt32 = 0x4000_0003
        private let foreignSocket: UInt32 = 359
        private let foreignIoctl: UInt32 = 54
    #else
        private static let native: UInt32 = 0xC000_00B7
        private let socket: UInt32 = 198
        private let ioctl: UInt32 = 29
        private let foreign: UInt32 = 0x4000_0028
        private let foreignSocket: UInt32 = 281
        private let foreignIoctl: UInt32 = 54
    #endif

    @Test func `sockets are of the families that a network namespace has`() throws {
        for family in 0..<64 as Range<UInt64> {
            let isAllowed = [1, 2, 10, 16, 17].contains(family)
            let expected = isAllowed ? 0 : UInt32(EAFNOSUPPORT)
            #expect(try judge(socket, [family]) == expected)
            // The kernel reads an int: the upper half must not hide a family.
            #expect(try judge(socket, [family | 1 << 32]) == expected)
            #expect(try judge(foreignSocket, [family], architecture: foreign) == expected)
        }
    }

    @Test func `no known way around the filter of system calls is left, and other calls pass`() throws {
        #expect(try judge(425) == UInt32(ENOSYS))
        #expect(try judge(425, architecture: foreign) == UInt32(ENOSYS))
        for command in [0x5412, 0x541C] as [UInt64] {
            #expect(try judge(ioctl, [0, command]) == UInt32(EPERM))
            #expect(try judge(ioctl, [0, command | 7 << 32]) == UInt32(EPERM))
            #expect(try judge(foreignIoctl, [0, command], architecture: foreign) == UInt32(EPERM))
        }
        #if arch(x86_64)
            let (keys, foreignKeys): ([UInt32], [UInt32]) = ([248, 249, 250], [286, 287, 288])
        #else
            let (keys, foreignKeys): ([UInt32], [UInt32]) = ([217, 218, 219], [309, 310, 311])
        #endif
        for call in keys { #expect(try judge(call) == UInt32(ENOSYS)) }
        for call in foreignKeys { #expect(try judge(call, architecture: foreign) == UInt32(ENOSYS)) }
        #expect(try judge(ioctl, [0, 0x5413]) == 0)
        #expect(try judge(0) == 0)
        #expect(try judge(0, architecture: 0x1234) == UInt32(ENOSYS))
        #if arch(x86_64)
            #expect(try judge(0x4000_0000 | 41, [40]) == UInt32(ENOSYS))
            #expect(try judge(102, [1], architecture: foreign) == UInt32(ENOSYS))
        #endif
    }

    // MARK: Refusals

    @Test(arguments: [
        (EnclosureFault(.namespaces, ENOSPC), EnclosureRefusal.Machine(), "user.max_user_namespaces"),
        (.init(.namespaces, EPERM), .init(hasFilter: true), "seccomp"),
        (.init(.namespaces, EPERM), .init(allowsUsers: false), "kernel.unprivileged_userns_clone=1"),
        (.init(.namespaces, EPERM), .init(), "chroot"),
        (.init(.namespaces, EINVAL), .init(), "CONFIG_USER_NS"),
        (.init(.identity, EACCES), .init(restrictsUsers: true), "AppArmor"),
        (.init(.routes, EPERM), .init(restrictsUsers: true), "userns,"),
        (.init(.sockets, EADDRINUSE), .init(), "socket: Address already in use"),
    ])
    func `a refusal names its cause and what to do`(
        fault: EnclosureFault, machine: EnclosureRefusal.Machine, word: String
    ) {
        let refusal = EnclosureRefusal(fault, machine)
        #expect(refusal.description.contains(word), "\(refusal)")
        #expect(refusal.programFault == nil)
    }

    @Test func `the program's own fault is told as such`() {
        let refusal = EnclosureRefusal(["fault", "execvp", "\(ENOENT)"])
        #expect(refusal.programFault == ENOENT)
        #expect(EnclosureRefusal(["fault", "nonsense", "2"]) == .gone)
        #expect(EnclosureRefusal([]) == .gone)
    }
}
