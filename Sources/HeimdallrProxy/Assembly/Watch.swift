import Administration
import Configuration
import Heimdallr
import Logging
import Proxy
import Reactor
import Reports
import Synchronization

/// Observers of all events: the log, and the hooks of the configuration in use. Any thread.
final class Watch: Sendable {
    private struct State {
        var hooks: Hooks?
        var source: (settings: HooksSettings?, trustAnchors: String?)
        /// Observers by client.
        var observers: [ObjectIdentifier: [EventObserver]] = [:]
    }

    let signIns = SignInDirectory()
    let failures = UpstreamFailures()
    let untrusting = UntrustingPrograms()
    private let logger: Logger
    private let logWriter: LogWriter
    private let repairs: Repairs
    private let state = Mutex(State(source: (nil, nil)))

    private let isForOneProgram: Bool

    init(logger: Logger, logWriter: LogWriter, repairs: Repairs, isForOneProgram: Bool = false) {
        self.isForOneProgram = isForOneProgram
        self.repairs = repairs
        self.logger = logger
        self.logWriter = logWriter
    }

    func observer(_ configuration: Configuration, audit: AuditStream?) -> ProxyObserver {
        var observer = ProxyObserver()
        observer.signIn = { [signIns] in signIns.hint(for: $0) }
        // A proxy of one program tells at its end what it refused.
        observer.keepsRequests = configuration.admin?.showsRequests ?? isForOneProgram
        if configuration.log.access {
            observer.accessLog = { [logWriter] in logWriter.write(AccessLog.line($0, logWriter.format)) }
        }
        if let audit { observer.audit = { audit.write($0) } }
        observer.upstreamFailed = { [logger, failures] failure in
            failures.note(failure)
            EventLog.write(failure, to: logger)
        }
        observer.limitReached = { [logger] in EventLog.write($0, to: logger) }
        observer.connectEnded = { [logger] target, advice in
            logger.warning(
                "a CONNECT was closed",
                metadata: ["target": "\(String(decoding: target, as: UTF8.self))", "what_to_do": "\(advice)"])
        }
        observer.handshakeFailed = { [logger, untrusting] failure in
            untrusting.note(failure)
            EventLog.write(failure, to: logger)
        }
        observer.acceptFailed = { [logger] error in
            logger.error("a connection could not be accepted", metadata: ["reason": "\(error)"])
        }
        observer.userSecretLost = { [logger] user, error in
            logger.warning(
                "a user of proxy.users is refused: the secret can't be read",
                metadata: ["user": "\(user)", "reason": "\(error)"])
        }
        observer.credentialFailed = { [logger] entry, error in
            logger.warning(
                "a credential can't be read; its last good value stays in use, if there is one",
                metadata: ["entry": "\(entry)", "reason": "\(error)"])
        }
        observer.credentialRefused = { [logger] in EventLog.write($0, to: logger) }
        observer.userFailed = { [logger] peer, user, count in
            logger.warning(
                "wrong passwords of proxy.users",
                metadata: ["peer": "\(peer)", "user": "\(user ?? "(unknown)")", "wrong": .stringConvertible(count)])
        }
        return observer
    }

    /// Sets the hooks for the events from now on. If their settings are unchanged, the current hooks stay.
    func setHooks(_ configuration: Configuration, on loop: EventLoop) {
        let (settings, anchors) = (configuration.hooks, configuration.trustAnchorsFile)
        guard state.withLock({ $0.source.settings != settings || $0.source.trustAnchors != anchors }) else { return }
        let hooks = Hooks(configuration, on: loop, logger: logger) { [signIns] in signIns.hint(for: $0) }
        state.withLock { state in
            state.hooks = hooks
            state.source = (settings, anchors)
        }
    }

    /// Observes a client. Called before the client is started.
    func add(_ client: RunningClient) {
        let (heimdallr, notes) = (client.heimdallr, client.notes)
        signIns.add(heimdallr)
        let observers = [
            heimdallr.observe { [logger, signIns, repairs] event in
                if case .tokenAcquired = event.kind { repairs.tokenCame(to: event.client) }
                EventLog.write(event, of: heimdallr, last: notes.current, to: logger) { signIns.hint(for: $0) }
            },
            heimdallr.observe { [weak self] event in
                guard let hooks = self?.state.withLock({ $0.hooks }) else { return }
                await hooks.tell(event, of: heimdallr)
            },
        ]
        state.withLock { $0.observers[ObjectIdentifier(heimdallr)] = observers }
    }

    /// Stops tracking a client that was shut down. Its last events are still told.
    func remove(_ client: RunningClient) {
        signIns.remove(client.heimdallr)
        state.withLock { $0.observers[ObjectIdentifier(client.heimdallr)] = nil }
    }

    /// Cancels all observers and waits until running hook commands have ended.
    func end() async {
        let observers = state.withLock { $0.observers.values.flatMap(\.self) }
        for observer in observers { observer.cancel() }
        for observer in observers { await observer.ended() }
    }
}

/// Returns hints for signing a client in, for the log, the proxy's answers and hooks. `set` is called once the
/// administration listens. Any thread.
final class SignInDirectory: Sendable {
    /// A weak reference, because the administration refers to the proxy, which refers to this object.
    private struct Reference {
        weak var administration: Administration?
        var clients: [String: Heimdallr] = [:]
    }

    private let reference = Mutex(Reference())

    func set(_ administration: Administration?) { reference.withLock { $0.administration = administration } }

    func add(_ client: Heimdallr) { reference.withLock { $0.clients[client.name] = client } }

    func remove(_ client: Heimdallr) {
        reference.withLock { if $0.clients[client.name] === client { $0.clients[client.name] = nil } }
    }

    func hint(for name: String) -> SignInHint {
        let (administration, client) = reference.withLock { ($0.administration, $0.clients[name]) }
        if let administration { return administration.signIn(name) }
        guard let status = client?.status(), status.loginMethod == nil else {
            return SignInHint(
                advice: "the configuration has no admin section, so nobody can sign in; write admin: {} into it",
                url: nil)
        }
        return SignInHint(
            advice: Advice(status).sentence(for: HeimdallrError.needsAuthentication), url: nil,
            wasLost: status.needsAuthenticationBecause != nil)
    }
}
