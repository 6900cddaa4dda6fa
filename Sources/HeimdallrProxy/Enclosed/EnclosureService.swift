import Configuration
import Enclosure
import Logging
import Reactor

/// Serves the programs of `exec --enclose` that have no proxy of their own. Each passes its sockets over a connection to a
/// Unix socket beside the admin socket, for the same user and root, and is served until its process ends. Any thread.
final class EnclosureService: Sendable {
    private let loop: EventLoop
    private let arrivals: LoopBound<EnclosureArrivals>

    /// Returns the path of the socket beside this admin socket.
    static func path(beside adminSocket: String) -> String { adminSocket + ".enclose" }

    /// - Parameter app: the proxy, with the current configuration.
    /// - Throws: `SystemError` if the socket can't be opened.
    init(beside adminSocket: String, for app: RunningApp) async throws {
        let loop = try EventLoop.start(name: "enclosures")
        self.loop = loop
        let socket = try ListeningSocket.open(path: Self.path(beside: adminSocket), mode: 0o600)
        let starts = EnclosureStarts()
        arrivals = try await loop.run { [weak app] in
            let arrivals = try EnclosureArrivals(socket, on: loop) { stream, peer, words in
                guard let app, let enclosure = try? Enclosure(accepted: stream, from: peer) else { return }
                guard starts.begin(peer.user) else { return enclosure.refuse(EnclosureStarts.refusal) }
                Task {
                    await Self.serve(enclosure, words, of: peer, for: app, on: loop)
                    starts.end(peer.user)
                }
            }
            return LoopBound(arrivals, on: loop)
        }
    }

    func end() {
        loop.execute { [arrivals] in arrivals.value.close() }
        loop.stop()
    }

    private static func serve(
        _ enclosure: Enclosure, _ words: [String], of process: PeerCredentials, for app: RunningApp, on loop: EventLoop
    ) async {
        let (logger, server, settings) = (app.shared.logger, app.server, app.configuration)
        let fields: Logger.Metadata = [
            "uid": .stringConvertible(process.user), "pid": .stringConvertible(process.process),
        ]
        guard let greeting = EnclosureGreeting(words) else {
            return enclosure.refuse("the running proxy is of another version: run both from the same file")
        }
        if let fault = greeting.fault(settings) { return enclosure.refuse(fault) }
        do {
            let process = try ProcessEnd(of: process.process)
            let program = try await BlockingWork.run { () throws(EnclosureRefusal) in
                try EnclosedProgram(enclosure, allowed: greeting.allowed, settings)
            }
            do {
                try await program.serve(by: server, user: greeting.user, on: loop, logger)
                try await process.watch(on: loop) { program.end(server) }
            } catch {
                program.end(server)
                throw error
            }
            let mounts = HiddenPaths.mounts(
                settings, file: nil, environment: ProcessEnvironment.all, trust: app.shared.interception.files?.folder
            )
            .joined(with: greeting.mounts)
            let lacks = try await BlockingWork.run { () throws(EnclosureRefusal) in try program.start(mounts) }
            var fields = fields
            if !lacks.isEmpty { fields["without"] = "\(lacks.map(\.rawValue).joined(separator: ", "))" }
            logger.info("a program is enclosed", metadata: fields)
        } catch {
            logger.warning(
                "a program could not be enclosed", metadata: fields.merging(["reason": "\(error)"]) { $1 })
        }
    }
}

/// What a process of `exec --enclose` says first.
struct EnclosureGreeting {
    /// User of `proxy.users` that the program is; `nil` for none.
    let user: String?
    let allowed: [AllowedAddress]
    /// What the program's user does not want it to see, beside what the proxy hides.
    let mounts: EnclosureMounts

    private static let version = "heimdallr-enclosure 1"

    init(user: String?, allowed: [AllowedAddress], mounts: EnclosureMounts) {
        self.user = user
        self.allowed = allowed
        self.mounts = mounts
    }

    var words: [String] {
        [Self.version, user ?? "", "\(allowed.count)"] + allowed.map { "\($0.authority)" } + mounts.words
    }

    /// Reads `words`; `nil` for those of another version.
    init?(_ words: [String]) {
        guard words.count >= 3, words[0] == Self.version, let count = Int(words[2]), count >= 0,
            count <= words.count - 3, let mounts = EnclosureMounts(Array(words.dropFirst(3 + count)))
        else { return nil }
        user = words[1].isEmpty ? nil : words[1]
        allowed = words.dropFirst(3).prefix(count).compactMap { AllowedAddress($0) }
        guard allowed.count == count else { return nil }
        self.mounts = mounts
    }

    /// Returns the reason why this configuration has no such program; `nil` if there is none.
    func fault(_ settings: Configuration) -> String? {
        guard let user else {
            return settings.proxy.users.isEmpty ? nil : "proxy.users requires a user: add --user NAME"
        }
        return settings.proxy.users[user] == nil ? "the running proxy has no such user in proxy.users" : nil
    }
}
