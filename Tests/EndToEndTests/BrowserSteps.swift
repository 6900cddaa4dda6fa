import Foundation
import TestSupport

/// Steps of a person in Chromium: see Fixtures/browse.py. The profile lasts as long as this value.
struct BrowserSteps {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    /// - Returns: the lines that the steps print.
    @discardableResult
    func callAsFunction(_ steps: [String]) async throws -> [String] {
        let script = "\(Repository.root)/Tests/EndToEndTests/Fixtures/browse.py"
        let process = try ChildProcess(
            [try Repository.python(), script, folder.path(of: "profile")] + steps,
            environment: ["HOME": folder.path, "http_proxy": nil, "https_proxy": nil, "SE_OFFLINE": "true"])
        guard try await process.ended(within: .seconds(180)) == .exited(0) else {
            throw TestFailure(process.transcript)
        }
        return process.output.split(separator: "\n").map(String.init)
    }
}

/// An authorization server with a page, and a chat with links, at one address.
struct PlayedWeb {
    let origin: RecordingOrigin
    var url: String { origin.url }

    static let accessToken = "played-access-token"

    /// - Parameter token: the token endpoint's answer.
    init(token: String = #"{"access_token":"played-access-token","token_type":"Bearer","expires_in":3600}"#) throws {
        origin = try RecordingOrigin { exchange in
            let request = try exchange.readBody()
            let url = URLComponents(string: "http://x" + request.target)
            let query = Dictionary((url?.queryItems ?? []).map { ($0.name, $0.value ?? "") }) { first, _ in first }
            let page: String
            switch url?.path {
            case "/token":
                try exchange.respond(200, fields: [("Content-Type", "application/json")], body: token)
                return
            case "/authorize":
                let back = "\(query["redirect_uri"] ?? "")?code=C&amp;state=\(query["state"] ?? "")"
                page = "<h1>Provider</h1><a href=\"\(back)\">Allow</a>"
            case "/chat": page = "<h1>Chat</h1><a href=\"\(query["to"] ?? "")\">Look</a>"
            default: page = "<h1>Nothing</h1>"
            }
            try exchange.respond(
                200, fields: [("Content-Type", "text/html")], body: "<!doctype html><title>x</title>\(page)")
        }
    }

    /// Lines of a client that signs in here.
    var client: String {
        "grant_type: authorization_code\nauthorization_endpoint: \(url)/authorize\nrevocation_endpoint: \(url)/revoke"
    }

    /// Steps of a person who gets a link in a chat.
    func link(to address: String) -> [String] { ["open:\(url)/chat?to=\(address)", "click:Look"] }
}
