import Cryptography
import Heimdallr
import Reactor
import Reports
import Synchronization

/// State that both admin listeners share, and the sources of the data that they show.
final class AdminModel: Sendable {
    private final class Current: Sendable {
        let sources: Mutex<AdministrationSources>

        init(_ sources: AdministrationSources) { self.sources = Mutex(sources) }
    }

    private let current: Current
    var sources: AdministrationSources { current.sources.withLock { $0 } }
    let tokens: TokenMetrics
    let feed = EventFeed()
    let logins: PendingLogins
    let addresses: LoginAddresses
    private let begin = ContinuousClock.now
    private let draining = Atomic(false)
    /// Limits forced refreshes, which wait for a new token.
    let refreshes = ConcurrencyLimit(16)
    private let quitting = Atomic(false)
    private let statusRendering = SharedRendering<StatusTexts>()
    private let metricsRendering = SharedRendering<String>()
    private let loop = Mutex<EventLoop?>(nil)

    init(
        sources: AdministrationSources, tokens: TokenMetrics,
        addresses: LoginAddresses = LoginAddresses(host: "127.0.0.1", origins: OriginPolicy(hosts: [])),
        pendingLogins: (any PendingLoginStore)? = nil
    ) {
        let current = Current(sources)
        self.current = current
        logins = PendingLogins(
            shared: pendingLogins, clients: { current.sources.withLock { $0.clients.map(\.heimdallr) } })
        self.addresses = addresses
        self.tokens = tokens
    }

    func replace(_ sources: AdministrationSources) { current.sources.withLock { $0 = sources } }

    /// Sets the loop whose lag the metrics show.
    func watch(_ loop: EventLoop) { self.loop.withLock { $0 = loop } }

    func beginDraining() { draining.store(true, ordering: .relaxed) }

    /// Stops the proxy as SIGTERM does, but only once: a second signal would cut requests in flight.
    func quit() {
        guard !isDraining, !quitting.exchange(true, ordering: .relaxed) else { return }
        sources.quit?()
    }

    /// Whether all event loops of the proxy respond. If a loop hangs, the process has to be restarted.
    func isAlive(within limit: Duration = .seconds(3)) async -> Bool {
        let answer = FirstOutcome<Bool>()
        let timer = Task {
            if (try? await Task.sleep(for: limit)) != nil { answer.end(.success(false)) }
        }
        Task { [pulse = sources.pulse] in
            await pulse()
            answer.end(.success(true))
            timer.cancel()
        }
        return (try? await withCheckedThrowingContinuation { answer.await($0) }) ?? false
    }

    private var clients: [ReadinessAnswer.Client] {
        sources.clients.map {
            let status = $0.heimdallr.status()
            return ReadinessAnswer.Client(
                status: status, isUnattended: $0.isUnattended, signIn: signIn(of: $0),
                issuer: $0.issuer ?? status.enrolment?.issuer, tokenEndpoint: $0.tokenEndpoint,
                lastRequest: $0.lastRequest(), file: $0.file())
        }
    }

    func signIn(of client: AdministrationSources.Client) -> SignInWay {
        let sendsBrowsers = [.browser, .implicit].contains(client.heimdallr.loginMethod)
        return SignInWay(
            client: client.heimdallr.name, method: client.heimdallr.loginMethod,
            url: signsInHere(client.heimdallr.name) ? addresses.loginURL(of: client) : nil,
            redirectURI: sendsBrowsers ? addresses.redirectURI(of: client) : nil, status: client.heimdallr.status())
    }

    func signIn(of name: String) -> SignInWay {
        sources.client(named: name).map { signIn(of: $0) } ?? SignInWay(client: name, method: nil, url: nil)
    }

    func readiness(isStrict: Bool) async -> ReadinessAnswer {
        await BlockingWork.run { [self] in
            ReadinessAnswer(
                clients, isDraining: isDraining, isStrict: isStrict, refusal: sources.reloads.refusal,
                storeFault: sources.storeFault())
        }
    }

    private var isDraining: Bool { draining.load(ordering: .relaxed) }

    func status() async -> StatusPage {
        let clients = await BlockingWork.run { [self] in self.clients }
        let sources = sources
        var page = StatusPage(
            version: sources.version, uptime: begin.duration(to: .now), isDraining: isDraining, clients: clients,
            traffic: await sources.traffic(), rules: sources.ruleTable, refusal: sources.reloads.refusal)
        page.untrusting = sources.untrusting()
        page.storeFault = sources.storeFault()
        page.audit = sources.audit()
        page.log = sources.log()
        page.hasConfigurationChanged = await sources.hasConfigurationChanged()
        page.unusedFiles = await sources.unusedFiles()
        return page
    }

    // Reports on thousands of clients take long. They are written outside the loops and the threads that `async` code
    // shares.

    /// Both forms of the answer of `/status`.
    struct StatusTexts: Sendable {
        let json: String
        let plain: String
        let isUnwell: Bool
    }

    func statusTexts() async -> StatusTexts {
        await statusRendering.page { [self] in
            let page = await status()
            return await BlockingWork.run {
                StatusTexts(json: page.json.document, plain: page.text, isUnwell: page.isUnwell)
            }
        }
    }

    private var ownLoop: (name: String, lag: Histogram)? {
        get async {
            guard let loop = loop.withLock({ $0 }), let lag = try? await loop.run({ loop.lag }) else { return nil }
            return (loop.name, Histogram(nanoseconds: LoopLag.bounds, counts: lag.counts, sum: lag.nanoseconds))
        }
    }

    func metrics() async -> String {
        await metricsRendering.page { [self] in
            let sources = sources
            var traffic = await sources.traffic()
            if let own = await ownLoop { traffic.loops.append(own) }
            return await BlockingWork.run { [self, traffic] in
                var page = MetricsPage(
                    traffic: traffic, clients: sources.clients.map { $0.heimdallr.status() }, tokens: tokens,
                    now: WallClock.now(), reloads: sources.reloads)
                page.version = sources.version
                page.process = .current
                page.certificates = sources.certificates()
                page.audit = sources.audit()
                page.log = sources.log()
                page.spans = sources.spans()
                return page.text
            }
        }
    }
}
