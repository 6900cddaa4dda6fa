import CLinux
import FileSystem
import Glibc

/// What the program may not ask of the kernel. seccomp(2).
///
/// A filter of `socket` keeps out what is no part of a network namespace, such as AF_VSOCK. io_uring could make sockets
/// around it. TIOCSTI types into the terminal that the program shares with a shell outside.
enum EnclosureFilter {
    /// Numbers of the filtered calls on an architecture: its `AUDIT_ARCH` value, `socket`, `ioctl`, `socketcall`.
    private struct Calls {
        let architecture: UInt32
        let socket: UInt32
        let ioctl: UInt32
        var socketcall: UInt32?
        /// `add_key`, `request_key` and `keyctl`: the kernel starts a program outside for a key that it lacks.
        let keys: [UInt32]
    }

    #if arch(x86_64)
        private static let nativeKeys: [UInt32] = [248, 249, 250]
    #else
        private static let nativeKeys: [UInt32] = [217, 218, 219]
    #endif

    private static var calls: [Calls] {
        var all = [
            Calls(
                architecture: heimdallr_architecture, socket: heimdallr_call_socket, ioctl: heimdallr_call_ioctl,
                keys: nativeKeys)
        ]
        #if arch(x86_64)
            // i386 programs.
            all.append(
                Calls(architecture: 0x4000_0003, socket: 359, ioctl: 54, socketcall: 102, keys: [286, 287, 288]))
        #elseif arch(arm64)
            // 32-bit ARM programs.
            all.append(Calls(architecture: 0x4000_0028, socket: 281, ioctl: 54, keys: [309, 310, 311]))
        #endif
        return all
    }

    /// The same on all architectures.
    private static let ioUringSetup: UInt32 = 425
    /// AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET. The last needs rights that the program does not have.
    private static let families: [UInt32] = [1, 2, 10, 16, 17]
    /// TIOCSTI, TIOCLINUX.
    private static let keys: [UInt32] = [0x5412, 0x541C]

    /// The filter's instructions, each a struct sock_filter.
    static var program: [UInt64] {
        var program = [load(offset: 4)]
        for calls in Self.calls {
            let section = section(calls)
            program += [jump(unless: calls.architecture, past: section.count)] + section
        }
        return program + [answer(refused: ENOSYS)]
    }

    /// The instructions for calls of one architecture; ends with an answer.
    private static func section(_ calls: Calls) -> [UInt64] {
        var section = [load(offset: 0)]
        #if arch(x86_64)
            // x32 calls have this bit.
            if calls.socketcall == nil { section += refuse(ENOSYS, ifAtLeast: 0x4000_0000) }
        #endif
        section += refuse(ENOSYS, if: [ioUringSetup] + (calls.socketcall.map { [$0] } ?? []) + calls.keys)
        // The first argument's lower half.
        let families =
            [load(offset: 16)] + Self.families.flatMap { [jump(unless: $0, past: 1), allow] }
            + [answer(refused: EAFNOSUPPORT)]
        section += [jump(unless: calls.socket, past: families.count)] + families
        // The second argument's lower half.
        let keys = [load(offset: 24)] + refuse(EPERM, if: Self.keys) + [allow]
        return section + [jump(unless: calls.ioctl, past: keys.count)] + keys + [allow]
    }

    private static func refuse(_ code: Int32, if numbers: [UInt32]) -> [UInt64] {
        numbers.flatMap { [jump(unless: $0, past: 1), answer(refused: code)] }
    }

    private static func refuse(_ code: Int32, ifAtLeast number: UInt32) -> [UInt64] {
        // BPF_JMP | BPF_JGE | BPF_K
        [instruction(0x35, whenTrue: 0, whenFalse: 1, number), answer(refused: code)]
    }

    // MARK: Instructions

    /// BPF_LD | BPF_W | BPF_ABS: loads a word of struct seccomp_data.
    private static func load(offset: UInt32) -> UInt64 { instruction(0x20, offset) }
    /// BPF_JMP | BPF_JEQ | BPF_K: skips `count` instructions unless the loaded word is `value`.
    private static func jump(unless value: UInt32, past count: Int) -> UInt64 {
        instruction(0x15, whenTrue: 0, whenFalse: UInt8(count), value)
    }
    /// BPF_RET | BPF_K with SECCOMP_RET_ALLOW, and with SECCOMP_RET_ERRNO.
    private static let allow = instruction(0x06, 0x7FFF_0000)
    private static func answer(refused code: Int32) -> UInt64 { instruction(0x06, 0x0005_0000 | UInt32(code)) }

    private static func instruction(
        _ code: UInt64, whenTrue: UInt8 = 0, whenFalse: UInt8 = 0, _ value: UInt32
    ) -> UInt64 {
        code | UInt64(whenTrue) << 16 | UInt64(whenFalse) << 24 | UInt64(value) << 32
    }

    static func install() throws(EnclosureFault) {
        let program = program
        try check(.filter, unsafe heimdallr_filter_calls(program, UInt16(program.count)))
    }
}

/// Descriptors that the program may inherit: files, pipes, terminals, Unix sockets. Not those that lead out, and not
/// folders: they would show what the enclosure hides.
enum InheritedDescriptors {
    /// Closes such descriptors. A folder among the standard ones becomes /dev/null.
    /// - Parameter kept: descriptors that this process still needs.
    static func close(but kept: [Int32]) {
        for number in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where isFolder(number) {
            let nothing = unsafe open("/dev/null", O_RDWR | O_CLOEXEC)
            if nothing >= 0 { dup2(nothing, number) } else { Glibc.close(number) }
        }
        for number in FileSystem.names(in: "/proc/self/fd").compactMap({ Int32($0) })
        where number > STDERR_FILENO && !kept.contains(number) && leadsOut(number) {
            Glibc.close(number)
        }
    }

    private static func isFolder(_ descriptor: Int32) -> Bool {
        var status = stat()
        return unsafe fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    private static func leadsOut(_ descriptor: Int32) -> Bool {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { return false }
        switch status.st_mode & S_IFMT {
        case S_IFSOCK:
            var domain: Int32 = -1
            var length = socklen_t(MemoryLayout<Int32>.size)
            return unsafe getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &length) < 0 || domain != AF_UNIX
        // /dev/net/tun: major 10, minor 200.
        case S_IFCHR: return status.st_rdev == 10 << 8 | 200
        case S_IFREG: return heimdallr_is_namespace(descriptor) != 0
        case S_IFIFO, S_IFBLK: return false
        // Folders, and anonymous inodes: io_uring, BPF, pidfd.
        default: return true
        }
    }
}
