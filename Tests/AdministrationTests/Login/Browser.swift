import Foundation
import TestSupport

/// Raw requests, as a browser would send them.
struct Browser {
    let admin: AdministeredProxy
    /// By name.
    var cookies: [String: String] = [:]
    /// The URL in the address bar.
    var host: String

    init(_ admin: AdministeredProxy) {
        self.admin = admin
        host = "127.0.0.1:\(admin.adminPort)"
    }

    /// A link of the proxy's page, or the address bar.
    static let own = [
        ("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document"),
    ]
    /// A link or a redirect of another site.
    static let foreign = [
        ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document"),
    ]

    mutating func send(
        _ method: String, _ target: String, _ fields: [(String, String)] = Browser.own, body: String? = nil,
        type: String = "application/x-www-form-urlencoded"
    ) async throws -> RawResponse {
        var head = "\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        if !cookies.isEmpty {
            head += "Cookie: " + cookies.map { "\($0.key)=\($0.value)" }.joined(separator: "; ") + "\r\n"
        }
        if let body { head += "Content-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\n" }
        let answer = try await RawClient.exchange(
            port: admin.adminPort, head + "Connection: close\r\n\r\n" + (body ?? ""), method: method)
        for field in answer.fields where field.name.lowercased() == "set-cookie" {
            let pair = field.value.prefix { $0 != ";" }.split(separator: "=", maxSplits: 1)
            if pair.count == 2 { cookies[String(pair[0])] = String(pair[1]) }
        }
        return answer
    }

    mutating func get(_ target: String, _ fields: [(String, String)] = Browser.own) async throws -> RawResponse {
        try await send("GET", target, fields)
    }

    /// Sends a form of the page, with its token.
    mutating func press(_ target: String, _ fields: [(String, String)] = Browser.own) async throws -> RawResponse {
        let page = try await get("/")
        guard let token = page.text.firstMatch(of: /name="csrf" value="([^"]+)"/)?.1 else {
            throw TestFailure("no form: \(page.text)")
        }
        return try await send("POST", target, fields, body: "csrf=\(token)")
    }

    /// Begins a login.
    /// - Returns: the parameters of the authorization request.
    mutating func begin(
        _ target: String = "/login/api", _ fields: [(String, String)] = Browser.own
    ) async throws -> [String: String] {
        let answer = try await get(target, fields)
        guard answer.status == 303, let location = answer.field("Location") else {
            throw TestFailure("\(answer.status): \(answer.text)")
        }
        return Self.parameters(location)
    }

    static func parameters(_ url: String) -> [String: String] {
        let items = URLComponents(string: url)?.queryItems ?? []
        return Dictionary(items.map { ($0.name, $0.value ?? "") }) { one, _ in one }
    }
}

extension AdministeredProxy {
    /// With a client that somebody signs in at a browser. Nobody listens where the browser is sent: the test is the browser.
    static func signedInAtABrowser(
        _ endpoint: TokenEndpoint? = nil, admin: String = "", grant: String = "authorization_code", more: String = ""
    ) async throws -> AdministeredProxy {
        try await AdministeredProxy(
            endpoint ?? TokenEndpoint([.token(accessToken, refreshToken: refreshToken)]), admin: admin,
            client: """
                grant_type: \(grant)
                authorization_endpoint: http://127.0.0.1:1/authorize
                """ + "\n" + more)
    }

    /// The client's state, as `/status` says it.
    func state(_ fields: [(String, String)] = []) async throws -> String {
        let text = try await get("/status", fields).text
        return text.firstMatch(of: /"state": "([a-z_]+)"/).map { String($0.1) } ?? text
    }

    /// Waits for the state.
    func reaches(_ state: String) async throws {
        try await eventually("\(state): \(proxy.log)") { try await self.state() == state }
    }
}
