import HTTPMessage

/// Receivers of events that need the attention of a person.
public struct HooksSettings: Sendable, Equatable {
    /// URL that receives each event by POST, as JSON.
    public var webhook: String?
    /// A program and its arguments. The program runs for each event, without a shell.
    public var command: [String] = []
    /// Whether `webhook` may be an http:// URL.
    public var allowPlaintext = false
}

extension Section {
    func hooksSettings() -> HooksSettings {
        defer { finish() }
        var settings = HooksSettings()
        settings.webhook = value("webhook") { text throws(BadValue) in
            _ = try WebURL(value: text, example: "https://alerts.example.com/heimdallr")
            return text
        }
        settings.command = command("command")
        read("allow_plaintext", into: &settings.allowPlaintext, Grammar.boolean)
        if let webhook = settings.webhook, WebURL.scheme(of: webhook) == .http, !settings.allowPlaintext {
            refusePlaintext("webhook", "an http:// URL would tell the network which client is in trouble")
        }
        need(
            "webhook", "command", saying: "\(path): write `webhook`, `command` or both, or leave the section out")
        return settings
    }
}
