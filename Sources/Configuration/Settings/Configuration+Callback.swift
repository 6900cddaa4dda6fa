import HTTPMessage

extension Configuration {
    /// Returns the port of a redirect URI on loopback at which nobody listens; `nil` if the admin port may answer there.
    /// An admin port that other machines can reach may have any other port outside, as that of a container.
    func foreignCallbackPort(of client: ClientSettings) -> UInt16? {
        guard let uri = client.redirectURI, let parts = try? WebURL(uri), parts.scheme == .http,
            case .tcp(let host, let port)? = admin?.listen, port != 0, parts.port != port, Grammar.isLoopback(host),
            admin?.url.map({ uri.hasPrefix($0 + "/") }) != true
        else { return nil }
        return parts.port
    }
}
