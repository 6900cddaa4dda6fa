import FileSystem
import Glibc
import Reactor

/// The reason why a program was not enclosed, and so not started.
public struct EnclosureRefusal: Error, Sendable, Equatable, CustomStringConvertible {
    /// The cause, and what to do.
    public let description: String
    /// The error number if the program itself could not be run; `nil` if the enclosure failed.
    public var programFault: Int32?

    /// The process inside ended, for example by a signal.
    static let gone = EnclosureRefusal(description: "the process ended before the program started")

    public init(description: String) { self.description = description }

    /// Reads a fault that the process inside has sent.
    init(_ words: [String]) {
        guard words.count == 3, words[0] == EnclosureProcess.Message.fault.rawValue,
            let step = EnclosureStep(rawValue: words[1]), let code = Int32(words[2])
        else {
            self = .gone
            return
        }
        self.init(EnclosureFault(step, code), Machine.this)
    }

    init(_ fault: EnclosureFault, _ machine: Machine) {
        let call = SystemError(fault.step.rawValue, code: fault.code)
        description = "\(Self.cause(fault, machine)) (\(call))"
        programFault = fault.step == .program ? fault.code : nil
    }

    /// What the machine says of namespaces.
    struct Machine: Sendable {
        /// `Seccomp` of /proc/self/status: 2 for a filter, as containers have.
        var hasFilter = false
        /// Values of kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns; `nil` where
        /// the kernel has none.
        var allowsUsers: Bool?
        var restrictsUsers: Bool?

        static var this: Machine {
            let status = String(
                decoding: (try? FileSystem.read("/proc/self/status", limit: 1 << 16)) ?? [], as: UTF8.self)
            return Machine(
                hasFilter: status.contains("\nSeccomp:\t2"),
                allowsUsers: sysctl("unprivileged_userns_clone").map { $0 != "0" },
                restrictsUsers: sysctl("apparmor_restrict_unprivileged_userns").map { $0 == "1" })
        }

        private static func sysctl(_ name: String) -> String? {
            guard let bytes = try? FileSystem.read("/proc/sys/kernel/\(name)", limit: 64) else { return nil }
            return String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        }
    }

    /// The cause and the remedy, by the first row that fits.
    private static func cause(_ fault: EnclosureFault, _ machine: Machine) -> String {
        let isRefused = fault.code == EPERM || fault.code == EACCES
        switch fault.step {
        case .namespaces where fault.code == ENOSPC:
            return "the limit of namespaces is reached, or is 0: raise user.max_user_namespaces, "
                + "user.max_net_namespaces and user.max_mnt_namespaces (sysctl)"
        case .namespaces where isRefused && machine.hasFilter:
            return "the container's seccomp profile forbids user namespaces: run it with a profile that allows "
                + "unshare(CLONE_NEWUSER), or with CAP_SYS_ADMIN"
        case .namespaces where isRefused && machine.allowsUsers == false:
            return "this kernel allows user namespaces only to root: set kernel.unprivileged_userns_clone=1 (sysctl)"
        case .identity where isRefused && machine.restrictsUsers == true,
            .routes where isRefused && machine.restrictsUsers == true,
            .namespaces where isRefused && machine.restrictsUsers == true:
            return "AppArmor restricts user namespaces: install the package's profile, which has `userns,`, or set "
                + "kernel.apparmor_restrict_unprivileged_userns=0 (sysctl)"
        case .namespaces where isRefused:
            return "the kernel refuses user namespaces here, as in a chroot: start it outside of the chroot"
        case .namespaces where fault.code == EINVAL:
            return "this kernel has no user namespaces: one with CONFIG_USER_NS is needed"
        case .program:
            return "can't run the program"
        default:
            return "the program can't be enclosed on this machine"
        }
    }
}
