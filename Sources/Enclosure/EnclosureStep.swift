import Glibc

/// The steps that enclose a program and can fail, in their order. Each needs rights that a later step gives up.
enum EnclosureStep: String, Sendable {
    case namespaces = "unshare"
    case identity = "uid_map"
    case routes = "netlink"
    case sockets = "socket"
    case mounts = "mount"
    case readOnlyKernel = "mount_setattr"
    case capabilities = "capset"
    case filter = "seccomp"
    case program = "execvp"
}

/// A step that failed, with the kernel's error number.
struct EnclosureFault: Error, Equatable {
    let step: EnclosureStep
    let code: Int32

    init(_ step: EnclosureStep, _ code: Int32 = errno) {
        self.step = step
        self.code = code
    }
}

/// Throws the kernel's error as a fault of this step.
func check(_ step: EnclosureStep, _ result: Int32) throws(EnclosureFault) {
    guard result >= 0 else { throw EnclosureFault(step) }
}
