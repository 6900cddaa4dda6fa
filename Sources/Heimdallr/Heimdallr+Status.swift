extension Heimdallr {
    /// How the client is doing now. Never waits, sends nothing and starts no refresh.
    public func status() -> HeimdallrStatus {
        let now = clock.now()
        var status = look {
            $0.status(client: name, grantType: exchange.grant.type, loginMethod: exchange.grant.loginMethod, now: now)
        }
        let facts = exchange.trace.facts
        status.issuer = exchange.configuration.issuer
        status.lastAddress = facts.address
        status.ambiguousEncoding = facts.ambiguousEncoding
        if let callers { status.note(callers.overview, now: now) }
        if status.expiresIn != nil { status.noteScope(wanted: exchange.configuration.scope) }
        return status
    }
}
