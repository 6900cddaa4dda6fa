import CLinux
import Glibc

/// The process that encloses itself and then becomes the program: this executable, started again, so that it has one
/// thread. It follows its launcher by messages, and ends when the launcher does.
public struct EnclosureProcess: ~Copyable {
    /// First argument of the process. No person would type it.
    public static let name = "heimdallr-enclosure"

    private let link: EnclosureLink
    private let number: Int32
    private let report: (Enclosure.Lack) -> Void

    /// - Parameters:
    ///   - link: descriptor of the connection to the launcher.
    ///   - report: called with what this machine does not give.
    public init(link: Int32, report: @escaping (Enclosure.Lack) -> Void = { _ in }) {
        _ = fcntl(link, F_SETFD, FD_CLOEXEC)
        self.link = EnclosureLink(link)
        number = link
        self.report = report
    }

    /// Encloses this process, which has one thread, and replaces it by the program. The environment is the program's, but
    /// for what the launcher sends.
    /// - Parameter program: the program, searched in `PATH`, then its arguments.
    /// - Returns: the reason why not, which the launcher has been told.
    public func become(_ program: [String]) -> EnclosureRefusal {
        do throws(EnclosureFault) {
            return try enclose(program)
        } catch {
            let words = [Message.fault.rawValue, error.step.rawValue, "\(error.code)"]
            _ = link.send(words)
            return EnclosureRefusal(words)
        }
    }

    /// The steps, in the order of `EnclosureStep`. Returns only if the launcher has gone, or refuses.
    private func enclose(_ program: [String]) throws(EnclosureFault) -> EnclosureRefusal {
        guard let words = link.receive()?.words else { return .gone }
        if words.first == Message.refused.rawValue { return EnclosureRefusal(description: words.dropFirst().joined()) }
        guard let plan = EnclosurePlan(words) else { return .gone }

        let (user, group) = (geteuid(), getegid())
        try check(.namespaces, unshare(heimdallr_enclosure_namespaces))

        guard link.send([Message.unshared.rawValue]), let answer = link.receive()?.words.first else { return .gone }
        if answer == Message.mapOwn.rawValue { try EnclosureIdentity.map(user: user, group: group) }
        // A process that forbids dumps can't write its maps. From here on it can.
        _ = heimdallr_forbid_dumps()

        try EnclosureNetwork.setUp(plan)

        let sockets = try EnclosureSockets.open(plan)
        guard pass(sockets) else { return .gone }
        guard let settings = link.receive()?.words,
            let mounts = link.receive().flatMap({ EnclosureMounts($0.words) })
        else { return .gone }

        // The network is closed without mounts, too. With some of them, nobody would know what is hidden.
        if (try? EnclosureMounts.separate()) != nil { try mounts.apply() } else { lack(.mounts) }

        if geteuid() == 0 {
            do throws(EnclosureFault) { try EnclosureMounts.protectKernel() } catch {
                lack(.readOnlyKernel)
            }
        }

        try check(.capabilities, heimdallr_drop_capabilities())

        try EnclosureFilter.install()

        InheritedDescriptors.close(but: [number])

        throw Self.replaceProcess(program, settings)
    }

    private func lack(_ lack: Enclosure.Lack) {
        report(lack)
        _ = link.send([Message.lack.rawValue, lack.rawValue])
    }

    /// Sends the sockets with their places in the plan, and closes the own copies.
    private func pass(_ sockets: [(place: Int, descriptor: Int32)]) -> Bool {
        var rest = sockets[...]
        repeat {
            let part = rest.prefix(EnclosureLink.most)
            rest = rest.dropFirst(part.count)
            let words = [Message.sockets.rawValue] + part.map { "\($0.place)" }
            guard link.send(words, descriptors: part.map(\.descriptor)) else { return false }
            for one in part { close(one.descriptor) }
        } while !rest.isEmpty
        return link.send([Message.opened.rawValue])
    }

    /// execvp(3). Returns the fault.
    private static func replaceProcess(_ program: [String], _ settings: [String]) -> EnclosureFault {
        for setting in settings {
            guard let sign = setting.firstIndex(of: "=") else { continue }
            unsafe setenv(String(setting[..<sign]), String(setting[setting.index(after: sign)...]), 1)
        }
        var arguments: [UnsafeMutablePointer<CChar>?] = unsafe program.map { unsafe strdup($0) }
        unsafe arguments.append(nil)
        if let first = unsafe arguments[0] { _ = unsafe execvp(first, arguments) }
        return EnclosureFault(.program)
    }

    /// First words of the messages between launcher and process.
    enum Message: String {
        case refused, unshared, mapped, sockets, opened, lack, fault
        case mapOwn = "map own"
    }
}
