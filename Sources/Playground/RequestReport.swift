import HTTPServer
import WireText

/// The API's report about a request. Tokens are shortened to their first characters and their length everywhere.
struct RequestReport: Sendable {
    let json: JSON

    init(request: ServerRequest, token: String, scope: String) {
        let shown = Self.fingerprint(of: token)
        func masked(_ text: String) -> JSON { .string(text.replacing(token, with: shown)) }

        var names: [String] = []
        var values: [String: String] = [:]
        // Host has its own line.
        for (name, value) in request.fields where name.lowercased() != "host" {
            if let earlier = values[name] {
                // RFC 9110, section 5.3.
                values[name] = "\(earlier), \(value)"
            } else {
                names.append(name)
                values[name] = value
            }
        }
        json = .object([
            .init("message", "The token was accepted. This is what arrived:"),
            .init("method", .string(request.method)),
            .init("path", masked(request.path + (request.query.map { "?\($0)" } ?? ""))),
            .init("host", masked(request.authority)),
            .init("token", .string(shown)),
            .init("scope", .string(scope)),
            .init("body_bytes", .number(request.bodyLength)),
            .init("headers", .object(names.map { .init($0, masked(values[$0] ?? "")) })),
        ])
    }

    /// Enough to distinguish two tokens, too little to use one.
    static func fingerprint(of token: String) -> String {
        token.utf8.count < 16
            ? "… (\(token.utf8.count) characters)" : "\(token.prefix(4))… (\(token.utf8.count) characters)"
    }
}
