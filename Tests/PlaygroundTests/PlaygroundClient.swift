import Foundation
import Playground
import TestSupport
import Testing

/// Runs the body with a playground, and stops it.
func withPlayground(_ body: (Playground) async throws -> Void) async throws {
    let playground = try await Playground.start()
    do { try await body(playground) } catch {
        await playground.stop()
        throw error
    }
    await playground.stop()
}

extension Playground {
    /// Sends a request to one of the two servers, as a plain client.
    func send(
        _ method: String, _ url: String, fields: [String: String] = [:], body: String = ""
    ) async throws -> RawResponse {
        let parts = url.dropFirst("http://".count).split(separator: "/", maxSplits: 1)
        let authority = try #require(parts.first)
        let port = try #require(authority.split(separator: ":").last.flatMap { UInt16($0) })
        var head = "\(method) /\(parts.count > 1 ? parts[1] : "") HTTP/1.1\r\nHost: \(authority)\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        head += "Content-Length: \(body.utf8.count)\r\n\r\n"
        return try await RawClient.exchange(port: port, head + body, method: method)
    }

    /// Posts a form to the authorization server.
    /// - Parameter secret: of the client that sends it; `nil`: a browser does.
    func post(
        _ path: String, _ form: String, secret: String?, type: String = "application/x-www-form-urlencoded"
    ) async throws -> RawResponse {
        var fields = ["Content-Type": type]
        if let secret {
            fields["Authorization"] = "Basic " + Data("\(credentials.clientID):\(secret)".utf8).base64EncodedString()
        }
        return try await send("POST", "\(authorizationServer)/\(path)", fields: fields, body: form)
    }

    /// Posts a form to the authorization server, as its client.
    func post(_ path: String, _ form: String) async throws -> RawResponse {
        try await post(path, form, secret: credentials.clientSecret)
    }
}

extension RawResponse {
    var json: [String: Any] {
        get throws { try #require(try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]) }
    }
}
