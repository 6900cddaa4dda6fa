import Administration
import Configuration
import FileSystem
import Heimdallr
import Logging
import Reactor
import Synchronization

/// Keeps a client's token in a file, for programs outside the proxy. The file is whole at each look, and missing when the
/// token has ended. Any thread.
final class TokenFile: Sendable {
    private struct State {
        var task: Task<Void, Never>?
        /// The token in the file; `nil`: there is no file.
        var written: Secret?
        var fault: String?
        var isRenewing = false
        var isSuccessor = false
        /// Earliest time of the next renewal, after a failed one.
        var renewAfter = ContinuousClock.now
    }

    private let settings: TokenFileSettings
    private let heimdallr: Heimdallr
    private let logger: Logger
    private let exported: @Sendable (ExportReport) -> Void
    private let file: PublishedFile
    private let state = Mutex(State())
    private let wakes: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation

    /// Time before the end at which a new token is requested: kubectl reads a file up to 50 s late. A token of a short
    /// life is renewed after a quarter of it.
    private static let lead = Duration.seconds(75)
    private static let pause = Duration.seconds(5)
    /// Readers need some time for their use of the token.
    private static let margin = Duration.milliseconds(500)

    init(
        _ settings: TokenFileSettings, _ heimdallr: Heimdallr, _ logger: Logger,
        exported: @escaping @Sendable (ExportReport) -> Void
    ) {
        (self.settings, self.heimdallr, self.logger, self.exported) = (settings, heimdallr, logger, exported)
        file = PublishedFile(FileSystem.absolute(settings.path))
        (wakes, wake) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Begins to write the file, once the client has a token.
    /// - Parameter isSuccessor: whether a former client's token is in the file, which stays until this client knows its own.
    func start(isSuccessor: Bool = false) {
        state.withLock { $0.isSuccessor = isSuccessor }
        heimdallr.observe { [wake] _ in wake.yield() }
        let task = Task { [self] in
            var alarm: Task<Void, Never>?
            // The client starts in a moment. A file of a killed process is removed if there is no token then.
            var next = Duration.seconds(1)
            repeat {
                alarm?.cancel()
                alarm = Task { [wake, next] in
                    if (try? await Task.sleep(for: next)) != nil { wake.yield() }
                }
                for await _ in wakes { break }
                if !Task.isCancelled { next = await look() }
            } while !Task.isCancelled
            alarm?.cancel()
        }
        state.withLock { $0.task = task }
    }

    /// Ends the writing.
    /// - Parameter keepsFile: whether a successor writes the same file.
    func stop(keepsFile: Bool = false) async {
        let task = state.withLock { $0.task }
        task?.cancel()
        wake.finish()
        await task?.value
        if !keepsFile { await BlockingWork.run { [self] in remove() } }
    }

    var report: TokenFileReport {
        state.withLock { TokenFileReport(path: settings.path, isWritten: $0.written != nil, fault: $0.fault) }
    }

    /// Writes or removes the file, and begins a renewal that is due.
    /// - Returns: time until the next look.
    private func look() async -> Duration {
        do {
            guard let token = try heimdallr.exportedTokenNow(margin: Self.margin) else {
                if state.withLock({ $0.isSuccessor }), !heimdallr.hasSettled { return .seconds(1) }
                await BlockingWork.run { [self] in remove() }
                return Self.pause
            }
            try await BlockingWork.run { [self] in try write(token) }
            return renewal(of: token)
        } catch {
            await BlockingWork.run { [self] in remove() }
            note((error as? ExportFault)?.sentence ?? "\(error)")
            return Self.pause
        }
    }

    private func write(_ token: ExportedToken) throws {
        guard state.withLock({ $0.written }) != token.value else { return }
        let format = TokenFormat.named(settings.format) ?? .plain
        let text = try format.text(token, for: TokenAsked())
        var group: UInt32?
        if let name = settings.group {
            group = FileSystem.groupID(of: name)
            guard group != nil else { throw ExportFault("there is no group \(name)") }
        }
        try file.replace(with: Array(text.utf8), mode: UInt32(settings.mode), group: group)
        state.withLock { $0.written = token.value }
        note(nil)
        exported(
            ExportReport(
                client: heimdallr.name, format: settings.format, end: token.endText, file: settings.path))
    }

    /// Returns the time until the token's renewal, or else its end. Begins a renewal that is due.
    private func renewal(of token: ExportedToken) -> Duration {
        guard let left = token.timeLeft, let life = token.life else { return .seconds(3600) }
        let due = left - min(Self.lead, life * 3 / 4)
        let toEnd = max(left - Self.margin, .milliseconds(10))
        guard due <= .zero else { return min(due, toEnd) }
        let isFree = state.withLock { state in
            guard !state.isRenewing, state.renewAfter <= .now else { return false }
            state.isRenewing = true
            return true
        }
        if isFree {
            Task { [self] in
                let renewed = try? await heimdallr.refreshedToken(waiting: .seconds(30))
                state.withLock { state in
                    state.isRenewing = false
                    state.renewAfter = .now + (renewed == nil ? max(Self.pause, left / 4) : .zero)
                }
                wake.yield()
            }
        }
        return min(toEnd, Self.pause)
    }

    private func remove() {
        do throws(FileSystem.Fault) {
            try file.remove()
            state.withLock { $0.written = nil }
        } catch { note("\(error)") }
    }

    /// Logs a new fault, and its end.
    private func note(_ fault: String?) {
        let former = state.withLock { state in
            defer { state.fault = fault }
            return state.fault
        }
        guard former != fault else { return }
        let fields: Logger.Metadata = ["client": "\(heimdallr.name)", "file": "\(settings.path)"]
        guard let fault else { return logger.notice("the token file is written again", metadata: fields) }
        logger.error("the token file can't be written", metadata: fields.merging(["reason": "\(fault)"]) { $1 })
    }
}
