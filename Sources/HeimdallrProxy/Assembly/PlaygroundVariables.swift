import Playground

/// How a configuration file refers to the playground of its own process, whose ports and secret nobody knows before it
/// starts.
enum PlaygroundVariables {
    static let authorizationServer = "HEIMDALLR_PLAYGROUND_AUTH"
    static let api = "HEIMDALLR_PLAYGROUND_API"
    static let clientID = "HEIMDALLR_PLAYGROUND_CLIENT_ID"
    static let clientSecret = "HEIMDALLR_PLAYGROUND_CLIENT_SECRET"

    /// Starts the playground.
    /// - Parameter environment: gets the playground's variables.
    static func start(addingTo environment: inout [String: String]) async throws -> Playground {
        let credentials = PlaygroundCredentials()
        // Secrets are read where they are used, from the process's environment, which must not change once there are
        // threads; the playground starts the first ones.
        ProcessEnvironment.set(clientSecret, to: credentials.clientSecret)
        let playground = try await Playground.start(credentials: credentials)
        add(
            authorizationServer: playground.authorizationServer, api: playground.apiAuthority,
            credentials: credentials, to: &environment)
        return playground
    }

    /// For a check, which starts nothing: the same names with ports that nobody listens on.
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
