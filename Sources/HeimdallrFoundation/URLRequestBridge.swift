import Foundation
import FoundationNetworking
import Heimdallr

extension Heimdallr {
    /// Puts a token on `request`. If there is none, waits for a token, at most for `limit`.
    /// - Throws: `HeimdallrError`. The request is then unchanged.
    public func authenticate(
        _ request: inout URLRequest, waiting limit: Duration = .seconds(30)
    ) async throws(HeimdallrError) {
        credential(for: try await accessToken(waiting: limit)).put(on: &request)
    }

    /// Sends `request` with a token in place of its own credential. After a 401 because of the token (RFC 6750 section
    /// 3.1), sends it once more with a new token, if one comes. Returns the last response.
    /// - Parameters:
    ///   - request: the request without a token.
    ///   - limit: longest wait for the first token, and for the new token.
    ///   - send: sends the request. Called once or twice, in the caller's isolation. For example `session.data(for:)`.
    /// - Throws: `HeimdallrError` without a token, and errors of `send`.
    nonisolated(nonsending) public func authenticateRequest<Body>(
        _ request: URLRequest, waiting limit: Duration = .seconds(30),
        send: nonisolated(nonsending) (URLRequest) async throws -> (Body, URLResponse)
    ) async throws -> (Body, URLResponse) {
        let url = request.url
        let origin = "\(url?.scheme ?? "")://\(url?.host ?? ""):\(url?.port ?? 0)".lowercased()
        return try await authenticateRequest(
            request, to: origin, waiting: limit, put: { $0.put(on: &$1) }, send: send
        ) { answer in
            guard let response = answer.1 as? HTTPURLResponse, response.statusCode == 401 else { return nil }
            // Foundation joins several fields into one value, with commas.
            return response.value(forHTTPHeaderField: "WWW-Authenticate").map { [$0] } ?? []
        }
    }
}

extension RequestCredential {
    /// Puts the credential on `request`, in place of the request's own field or parameter of this name.
    public func put(on request: inout URLRequest) {
        switch self {
        case .header(let name, let value):
            request.setValue(value.revealed, forHTTPHeaderField: name)
        case .query:
            guard let url = request.url, let signed = URL(string: put(inURL: url.absoluteString)) else { return }
            request.url = signed
        }
    }
}
