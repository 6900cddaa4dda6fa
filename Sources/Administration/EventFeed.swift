import Cryptography
import Heimdallr
import Reports
import Synchronization
import WireText

/// Sends each event to all readers of `/events`, as server-sent events. A slow reader loses its oldest events. The
/// server disconnects a reader that reads nothing.
/// https://html.spec.whatwg.org/multipage/server-sent-events.html
final class EventFeed: Sendable {
    static let maxReaders = 32
    /// Minimum age of the oldest reader before a new reader replaces it at the limit. TCP does not show whether the
    /// oldest reader is still active. An active reader connects again (`retry`).
    static let safeTime = Duration.seconds(30)
    /// Limit of frames that wait for a single reader.
    private static let backlog = 256

    private struct State {
        var nextID: UInt64 = 0
        var readers: [UInt64: Reader] = [:]
        var isFinished = false
    }

    private struct Reader {
        let frames: AsyncStream<[UInt8]>.Continuation
        let since: ContinuousClock.Instant
    }

    private let state = Mutex(State())

    /// - Returns: frames, the first with the reconnection time; `nil` after `finish`, or at the limit if no reader
    ///   is older than `safeTime`.
    func subscribe(now: ContinuousClock.Instant = .now) -> AsyncStream<[UInt8]>? {
        let (stream, continuation) = AsyncStream.makeStream(
            of: [UInt8].self, bufferingPolicy: .bufferingNewest(Self.backlog))
        let (id, replaced) = state.withLock { state -> (UInt64?, Reader?) in
            guard !state.isFinished else { return (nil, nil) }
            var replaced: Reader?
            if state.readers.count >= Self.maxReaders {
                guard let oldest = state.readers.min(by: { $0.key < $1.key }),
                    oldest.value.since.duration(to: now) >= Self.safeTime
                else { return (nil, nil) }
                replaced = state.readers.removeValue(forKey: oldest.key)
            }
            state.nextID += 1
            state.readers[state.nextID] = Reader(frames: continuation, since: now)
            return (state.nextID, replaced)
        }
        replaced?.frames.finish()
        guard let id else { return nil }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.readers.removeValue(forKey: id) }
        }
        continuation.yield(Array("retry: 3000\n\n".utf8))
        return stream
    }

    func send(_ event: HeimdallrEvent, _ signIn: SignInWay) {
        send(frame: Self.frame(event, signIn, at: WallClock.now()))
    }

    func send(_ request: RecentRequest) { send(frame: "event: request\ndata: \(request.json.line)\n\n") }

    var hasReaders: Bool { state.withLock { !$0.readers.isEmpty } }

    /// Sends a comment to all readers. A failed write reveals a reader that has left.
    func beat() { send(frame: ":\n\n") }

    private func send(frame: String) {
        let readers = state.withLock { $0.readers.values.map(\.frames) }
        let bytes = Array(frame.utf8)
        for reader in readers { reader.yield(bytes) }
    }

    /// Ends all streams. No reader can subscribe afterwards.
    func finish() {
        let readers = state.withLock { state in
            state.isFinished = true
            return state.readers.values.map(\.frames)
        }
        for reader in readers { reader.finish() }
    }

    /// - Parameter time: in seconds since 1970.
    static func frame(_ event: HeimdallrEvent, _ signIn: SignInWay, at time: Int64) -> String {
        "event: \(event.name)\ndata: \(json(event, signIn, at: time).line)\n\n"
    }

    static func json(_ event: HeimdallrEvent, _ signIn: SignInWay, at time: Int64) -> JSON {
        var members: [JSON.Member] = [
            .init("event", .string(event.name)), .init("client", .string(event.client)),
            .init("time", .string(RFC3339.text(Int(time)))),
        ]
        let way: [JSON.Member] = [.init("advice", .string(signIn.advice)), .init("login_url", JSON(signIn.url))]
        switch event.kind {
        case .needsAuthentication:
            let reason = signIn.status?.needsAuthenticationBecause
            members += (reason.map { [.init("reason", .string($0))] } ?? []) + way
        case .moreConsentNeeded(let scope):
            members += [
                .init("reason", "more consent needed"), .init("scope", JSON(scope)),
            ]
            members += way
        case .refreshTokenEnding(let expiresIn):
            members += [.init("refresh_token_expires_in_seconds", JSON(expiresIn))] + way
        case .tokenAcquired(let expiresIn, let stored):
            members += [.init("expires_in_seconds", JSON(expiresIn)), .init("stored", .bool(stored))]
            let status = signIn.status
            let persons = [("signed_in_as", status?.signedInAs), ("formerly_signed_in_as", status?.formerlySignedInAs)]
            members += persons.compactMap { name, person in person.map { .init(name, .string($0)) } }
        case .tokenRefreshed(let expiresIn):
            members.append(.init("expires_in_seconds", JSON(expiresIn)))
        case .tokenLost(let reason): members.append(.init("reason", .string(reason.rawValue)))
        case .tokenFailed(let error):
            members += [
                .init("message", .string(error.description)),
                .init("advice", .string(Sentence.plain(Advice(signIn).sentence(for: error)))),
                .init("retry_after_seconds", JSON(error.retryAfter)),
            ]
        case .loginFailed(let error):
            members += [
                .init("sign_in", true), .init("message", .string(error.description)),
                .init("advice", .string(Sentence.plain(Advice(signIn).sentence(for: error) ?? signIn.advice))),
            ]
        }
        return .object(members)
    }
}
