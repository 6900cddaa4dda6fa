/// Receivers of events that need a person.
public struct HooksSettings: Sendable, Equatable {
    /// Receives each event by POST, as JSON.
    public var webhook: String?
    /// Runs for each event: a program and its arguments, never a shell.
    public var command: [String] = []
    /// Allows an http:// webhook.
    public var allowPlaintext = false

    public init() {}
}

extension Section {
    func hooksSettings() -> HooksSettings {
        defer { finish() }
        var settings = HooksSettings()
        settings.webhook = value("webhook", Grammar.webhook)
        settings.command = command("command")
        read("allow_plaintext", into: &settings.allowPlaintext, Grammar.boolean)
        if let webhook = settings.webhook, webhook.lowercased().hasPrefix("http:"), !settings.allowPlaintext {
            error(
                "webhook",
                "an http:// URL would tell the network which client is in trouble: write https://, or "
                    + "\(spelling(of: "allow_plaintext", as: "true")) if that is meant")
        }
        need(
            "webhook", "command", saying: "\(path): write `webhook`, `command` or both, or leave the section out")
        return settings
    }
}

extension Grammar {
    /// URL of the webhook, without a fragment or a user name.
    static func webhook(_ text: String) throws(Misfit) -> String {
        let parts = try URLParts(text, example: "https://alerts.example.com/heimdallr")
        guard parts.scheme == "https" || parts.scheme == "http" else { throw Misfit("write an https:// URL") }
        guard parts.userinfo == nil else { throw Misfit("write the URL without a user name", quotes: false) }
        guard parts.fragment == nil else { throw Misfit("write the URL without a fragment (from # on)") }
        return text
    }
}
