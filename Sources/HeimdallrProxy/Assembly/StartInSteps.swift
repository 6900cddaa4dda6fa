/// Starts thousands of clients a few at a time. A client holds some 16 KiB while its first token request waits for a
/// slot, and such holes in the heap would stay for the life of the process. A program's request starts its client at once.
enum StartInSteps {
    /// Number of clients that may be without a first outcome.
    static let window = 64
    /// Time after which clients whose servers hang no longer delay the others.
    static let patience = Duration.milliseconds(250)

    /// - Parameters:
    ///   - patience: the longest wait for `window` clients.
    ///   - begin: starts a client; returns whether to go on.
    static func run<Client>(
        _ clients: [Client], patience: Duration = patience, begin: (Client) -> Bool, hasSettled: (Client) -> Bool
    ) async {
        var open: [Client] = []
        for client in clients {
            guard begin(client) else { return }
            open.append(client)
            let deadline = ContinuousClock.now + patience
            while open.count == window {
                open.removeAll(where: hasSettled)
                guard open.count == window else { break }
                if ContinuousClock.now < deadline { try? await Task.sleep(for: .milliseconds(2)) } else { open = [] }
            }
        }
    }
}
