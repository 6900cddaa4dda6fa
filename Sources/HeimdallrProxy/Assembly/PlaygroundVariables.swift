import Playground

/// Variables with which a configuration file refers to the playground in this process. Each start of the
/// playground chooses new ports and a new secret.
enum PlaygroundVariables {
    static let clientSecret = "HEIMDALLR_PLAYGROUND_CLIENT_SECRET"

    /// - Parameter environment: receives the playground's variables.
    static func start(addingTo environment: inout [String: String]) async throws -> Playground {
        let credentials = PlaygroundCredentials()
        // Secrets are read from the process's environment when they are used. The environment must not change after the
        // first thread has started, and the playground starts threads.
        ProcessEnvironment.set(clientSecret, to: credentials.clientSecret)
        let playground = try await Playground.start(credentials: credentials)
        environment.merge(all(playground.authorizationServer, playground.apiAuthority, credentials)) { $1 }
        return playground
    }

    /// Adds the same variables with placeholder ports, for a command that starts nothing.
    static func addPlaceholders(to environment: inout [String: String]) {
        environment.merge(all("http://127.0.0.1:1", "127.0.0.1:1", PlaygroundCredentials())) { $1 }
    }

    private static func all(
        _ authorizationServer: String, _ api: String, _ credentials: PlaygroundCredentials
    ) -> [String: String] {
        [
            "HEIMDALLR_PLAYGROUND_AUTH": authorizationServer, "HEIMDALLR_PLAYGROUND_API": api,
            "HEIMDALLR_PLAYGROUND_CLIENT_ID": credentials.clientID, clientSecret: credentials.clientSecret,
        ]
    }
}
