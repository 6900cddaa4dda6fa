import Heimdallr

/// Fault of a client in a few words, for a narrow screen.
enum ShortCause {
    /// Returns `nil` for a client without a fault.
    static func text(_ client: HeimdallrStatus) -> String? {
        if let error = client.lastError { return text(error) }
        if client.state == .needsAuthentication {
            return client.isTokenRefused
                ? "An API refuses the token"
                : client.isServedAfterLoss ? "The sign-in has ended" : "Nobody is signed in"
        }
        return client.storeFault == nil ? nil : "Tokens are kept in memory only"
    }

    private static func text(_ error: HeimdallrError) -> String {
        switch error {
        case .tokenEndpointUnavailable(let fault, _), .clientRefused(let fault, _): text(fault)
        case .rejectedByResource: "The API refuses the tokens"
        case .needsAuthentication: "Nobody is signed in"
        case .deadlineExceeded: "No token in time"
        case .cancelled, .stopped: "Stopped"
        }
    }

    private static func text(_ fault: TokenEndpointFault) -> String {
        switch fault {
        case .network(let error): text(error)
        case .status(let status, _), .redirect(let status): "The server answers \(status)"
        case .webPage, .discovery(.webPage): "A firewall or a web page answers"
        case .limited: "The server limits requests"
        case .answer: "The server’s answer is unusable"
        case .refused(let error): "Refused: \(error.code.rawValue)"
        case .secret: "The secret can’t be read"
        case .store: "The store is unavailable"
        case .discovery(.network(let error)), .discovery(.unreachable(_, _, let error)),
            .discovery(.server(_, .network(let error))):
            text(error)
        case .discovery: "The server’s metadata is unusable"
        case .stuck: "No answer in time"
        }
    }

    private static func text(_ error: HeimdallrHTTPClientError) -> String {
        switch error {
        case .connect: "No connection to the server"
        case .nextProxy(407): "The next proxy wants a login"
        case .nextProxy: "The next proxy refuses"
        case .cut: "The server closed the connection"
        case .shortage: "The proxy’s machine can’t make the connection"
        case .dns: "The server’s name can’t be resolved"
        case .tls: "TLS with the server failed"
        case .timeout: "No answer in time"
        case .http2Only: "The server speaks HTTP/2 only"
        case .bodyTooLarge, .other: "The server’s answer is unusable"
        }
    }
}
