/// Receivers of events that need a person.
public struct HooksSettings: Sendable, Equatable {
    /// Receives each event by POST, as JSON.
    public var webhook: String?
    /// Runs for each event: a program and its arguments, never a shell.
    public var command: [String] = []
    /// Allows an http:// webhook.
    public var allowPlaintext = false
}

extension Section {
    func hooksSettings() -> HooksSettings {
        defer { finish() }
        var settings = HooksSettings()
        settings.webhook = value("webhook") { text throws(Misfit) in
            _ = try URLParts(web: text, example: "https://alerts.example.com/heimdallr")
            return text
        }
        settings.command = command("command")
        read("allow_plaintext", into: &settings.allowPlaintext, Grammar.boolean)
        if let webhook = settings.webhook, webhook.lowercased().hasPrefix("http:"), !settings.allowPlaintext {
            refusePlaintext("webhook", "an http:// URL would tell the network which client is in trouble")
        }
        need(
            "webhook", "command", saying: "\(path): write `webhook`, `command` or both, or leave the section out")
        return settings
    }
}
