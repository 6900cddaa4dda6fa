import Playground

/// Variables by which a configuration file refers to the playground in its own process. Its ports and its secret are
/// known only after its start.
enum PlaygroundVariables {
    static let authorizationServer = "HEIMDALLR_PLAYGROUND_AUTH"
    static let api = "HEIMDALLR_PLAYGROUND_API"
    static let clientID = "HEIMDALLR_PLAYGROUND_CLIENT_ID"
    static let clientSecret = "HEIMDALLR_PLAYGROUND_CLIENT_SECRET"

    /// Starts the playground.
    /// - Parameter environment: receives the playground's variables.
    static func start(addingTo environment: inout [String: String]) async throws -> Playground {
        let credentials = PlaygroundCredentials()
        // Secrets are read from the process's environment when they are used. It must not change once there are
        // threads, and the playground starts the first ones.
        ProcessEnvironment.set(clientSecret, to: credentials.clientSecret)
        let playground = try await Playground.start(credentials: credentials)
        add(
            authorizationServer: playground.authorizationServer, api: playground.apiAuthority,
            credentials: credentials, to: &environment)
        return playground
    }

    /// For a check, which starts nothing: the same variables with placeholder ports.
    static func addPlaceholders(to environment: inout [String: String]) {
        add(
            authorizationServer: "http://127.0.0.1:1", api: "127.0.0.1:1", credentials: PlaygroundCredentials(),
            to: &environment)
    }

    private static func add(
        authorizationServer: String, api: String, credentials: PlaygroundCredentials,
        to environment: inout [String: String]
    ) {
        environment[Self.authorizationServer] = authorizationServer
        environment[Self.api] = api
        environment[clientID] = credentials.clientID
        environment[clientSecret] = credentials.clientSecret
    }
}
