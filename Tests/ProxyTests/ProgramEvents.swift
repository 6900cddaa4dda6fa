import Heimdallr
import TestSupport

/// The names of a client's events, from now until it is shut down.
final class ProgramEvents: Sendable {
    private let seen = Recorder<String>()
    var names: [String] { seen.all }

    init(_ client: Heimdallr) {
        let stream = client.events()
        Task { [seen] in
            for await event in stream { seen.append(event.name) }
        }
    }
}
