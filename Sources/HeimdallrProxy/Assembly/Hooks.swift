import Configuration
import CurlTransport
import Glibc
import Heimdallr
import HeimdallrCurl
import Logging
import Proxy
import Reactor
import Reports
import WireText

/// Runs the configuration's hooks when a person is needed, or a token is lost. Hooks receive no secrets.
struct Hooks: Sendable {
    private let settings: HooksSettings
    private let httpClient: any HeimdallrHTTPClient
    private let logger: Logger
    private let signIn: @Sendable (String) -> SignInHint
    /// Environment of the command: that of this process, without the variables of the configuration.
    private let environment: [String: String]

    /// Time limits of a command, and of one attempt to reach the webhook.
    static let commandTime = Duration.seconds(30)
    static let webhookTime = Duration.seconds(10)
    /// Pauses before further attempts to reach the webhook.
    private static let pauses: [Duration] = [.seconds(1), .seconds(5)]

    /// - Returns: `nil` if the configuration has no hooks.
    init?(
        _ configuration: Configuration, on loop: EventLoop, logger: Logger,
        signIn: @escaping @Sendable (String) -> SignInHint
    ) {
        guard let settings = configuration.hooks else { return nil }
        self.settings = settings
        self.logger = logger
        self.signIn = signIn
        let options = PoolOptions(
            connectTimeout: Self.webhookTime, maxConnections: 2, TLSSettings(),
            anchors: configuration.trustAnchorsFile)
        httpClient = CurlHTTPClient(BufferedClient(options: options, loop: loop))
        environment = ChildEnvironment.of(ProcessEnvironment.all, configuration)
    }

    /// Runs both hooks if the event concerns people. Returns when the hooks are done or have failed. The caller makes
    /// one call at a time for each client.
    func tell(_ event: HeimdallrEvent, of client: Heimdallr) async {
        guard let notice = notice(event, client) else { return }
        let body = Array((notice.json.text(.compact) + "\n").utf8)
        if let url = settings.webhook { await post(body, to: url, notice) }
        if !settings.command.isEmpty { await run(body, notice) }
    }

    struct Notice: Equatable {
        var event: String
        var client: String
        var time: String
        var loginURL: String?
        var whatToDo: String?
        var reason: String?
        /// Remaining time of a sign-in that ends soon.
        var expiresInSeconds: Int64?

        /// Members, sorted by name. Members without a value are left out.
        var json: JSON {
            let members: [(name: String, value: JSON?)] = [
                ("client", .string(client)), ("event", .string(event)),
                ("expires_in_seconds", expiresInSeconds.map { .number(Int($0)) }),
                ("login_url", loginURL.map { .string($0) }), ("reason", reason.map { .string($0) }),
                ("time", .string(time)), ("what_to_do", whatToDo.map { .string($0) }),
            ]
            return .object(members.compactMap { name, value in value.map { JSON.Member(name, $0) } })
        }
    }

    private func notice(_ event: HeimdallrEvent, _ client: Heimdallr) -> Notice? {
        let hint = signIn(event.client)
        var notice = Notice(
            event: event.name, client: event.client, time: RFC3339.text(WallTime.now.seconds), loginURL: hint.url)
        switch event.kind {
        case .needsAuthentication:
            notice.whatToDo = hint.advice
            notice.reason = client.status().needsAuthenticationBecause
        case .moreConsentNeeded(let scope):
            notice.whatToDo = hint.advice
            notice.reason =
                scope.isEmpty ? "the API wants a new sign-in" : "more consent needed: \(scope.joined(separator: " "))"
        case .refreshTokenEnding(let left):
            notice.whatToDo = hint.advice
            notice.reason = "the sign-in ends soon"
            notice.expiresInSeconds = left.components.seconds
        case .tokenLost(let reason):
            // Without an error, the token expired because it was unused (rule 10), so nobody needs to act.
            if reason == .expired, client.status().lastError == nil { return nil }
            notice.reason = reason.rawValue
        case .tokenAcquired, .tokenRefreshed, .tokenFailed, .loginFailed: return nil
        }
        return notice
    }

    private func post(_ body: [UInt8], to url: String, _ notice: Notice) async {
        let request = HeimdallrHTTPRequest(
            method: "POST", url: url,
            headers: [HeimdallrHTTPField(name: "Content-Type", value: "application/json")], body: body,
            timeout: Self.webhookTime, maxBodyBytes: 64 * 1024)
        var failure = ""
        for pause in [.zero] + Self.pauses {
            guard (try? await Task.sleep(for: pause)) != nil else { return }
            do {
                let answer = try await httpClient.send(request)
                if (200..<300).contains(answer.status) { return }
                failure = "it answered \(answer.status)"
                guard answer.status >= 500 || answer.status == 429 || answer.status == 408 else { break }
            } catch { failure = (error as? HeimdallrHTTPClientError)?.description ?? "the exchange failed" }
        }
        log("the webhook could not be called", notice, failure)
    }

    private func run(_ body: [UInt8], _ notice: Notice) async {
        var environment = environment
        environment["HEIMDALLR_EVENT"] = notice.event
        environment["HEIMDALLR_CLIENT"] = notice.client
        environment["HEIMDALLR_LOGIN_URL"] = notice.loginURL ?? ""
        environment["HEIMDALLR_REASON"] = notice.reason ?? ""
        do throws(SystemCallError) {
            let command = try KeptCommand(settings.command, environment: environment, hookInput: body)
            switch await Self.end(of: command) {
            case .ended(.exited(0)): break
            case .ended(let ending): log("the hook's command failed", notice, ending.inWords)
            case .notStarted(let number): throw SystemCallError(number: number)
            }
        } catch { log("the hook's command could not be run", notice, error.sentence) }
    }

    /// Waits for the end of the command and all its descendants. When its time is over, the keeper sends SIGTERM, and
    /// SIGKILL a second later.
    private static func end(of command: borrowing KeptCommand) async -> CommandKeeper.Report {
        let deadline = ContinuousClock.now + commandTime
        var isEnding = false
        while true {
            if let report = command.report() { return report }
            if !isEnding, ContinuousClock.now > deadline || Task.isCancelled {
                command.end()
                isEnding = true
            }
            // Sleeps in a detached task, because a sleep in a cancelled task returns at once.
            await Task.detached { try? await Task.sleep(for: .milliseconds(50)) }.value
        }
    }

    private func log(_ sentence: StaticString, _ notice: Notice, _ reason: String) {
        logger.warning(
            "\(sentence)",
            metadata: ["client": "\(notice.client)", "event": "\(notice.event)", "reason": "\(reason)"])
    }
}

extension ChildProgram.Ending {
    /// The ending in words, to follow a colon.
    var inWords: String {
        switch self {
        case .exited(127): "it could not be found or run"
        case .exited(let code): "it ended with exit code \(code)"
        case .signalled(let number): "signal \(number) ended it"
        }
    }
}
