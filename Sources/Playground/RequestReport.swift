import HTTPTypes
import Hummingbird

/// What the API says about a request. The token is shown by its first characters and its length, wherever it stands.
struct RequestReport: Sendable {
    let json: JSON

    init(request: Request, bodyBytes: Int, token: String, scope: String) {
        let shown = Self.fingerprint(of: token)
        func masked(_ text: String) -> JSON { .string(text.replacing(token, with: shown)) }

        var names: [String] = []
        var values: [String: String] = [:]
        for field in request.headers {
            let name = field.name.rawName
            if let earlier = values[name] {
                // RFC 9110, section 5.3.
                values[name] = "\(earlier), \(field.value)"
            } else {
                names.append(name)
                values[name] = field.value
            }
        }
        json = .object([
            ("message", "The token was accepted. This is what arrived:"),
            ("method", .string(request.method.rawValue)),
            ("path", masked(request.head.path ?? "")),
            ("host", masked(request.head.authority ?? "")),
            ("token", .string(shown)),
            ("scope", .string(scope)),
            ("body_bytes", .number(bodyBytes)),
            ("headers", .object(names.map { ($0, masked(values[$0] ?? "")) })),
        ])
    }

    /// Enough to tell two tokens apart, too little to use one.
    static func fingerprint(of token: String) -> String {
        token.utf8.count < 16
            ? "… (\(token.utf8.count) characters)" : "\(token.prefix(4))… (\(token.utf8.count) characters)"
    }
}
