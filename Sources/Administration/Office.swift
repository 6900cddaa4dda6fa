import FoundationEssentials
import Heimdallr
import Synchronization

/// What both listeners answer from: the sources, and what was counted of them.
final class Office: Sendable {
    let sources: AdministrationSources
    let tokens: TokenMetrics
    let feed = EventFeed()
    private let begin = ContinuousClock.now
    private let draining = Atomic(false)

    init(sources: AdministrationSources, tokens: TokenMetrics) {
        self.sources = sources
        self.tokens = tokens
    }

    func beginDraining() { draining.store(true, ordering: .relaxed) }

    private var clients: [Readiness.Client] {
        sources.clients.map { Readiness.Client(status: $0.heimdallr.status(), isUnattended: $0.isUnattended) }
    }

    func readiness(isStrict: Bool) -> Readiness {
        Readiness(clients, isDraining: draining.load(ordering: .relaxed), isStrict: isStrict)
    }

    func status() async -> StatusPage {
        StatusPage(
            version: sources.version, uptime: begin.duration(to: .now), isDraining: draining.load(ordering: .relaxed),
            clients: clients, traffic: await sources.traffic())
    }

    func metrics() async -> String {
        MetricsPage(
            traffic: await sources.traffic(), clients: clients.map(\.status), tokens: tokens, now: Date()
        ).text
    }
}
