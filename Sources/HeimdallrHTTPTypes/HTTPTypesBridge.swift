import HTTPTypes
import Heimdallr

extension Heimdallr {
    /// Puts a token on `request`. If there is none, waits for a token, at most for `limit`.
    /// - Throws: `HeimdallrError`. The request is then unchanged.
    public func authenticate(
        _ request: inout HTTPRequest, waiting limit: Duration = .seconds(30)
    ) async throws(HeimdallrError) {
        credential(for: try await accessToken(waiting: limit)).put(on: &request)
    }

    /// Sends `request` with a token in place of its own credential. After a 401 because of the token (RFC 6750 section
    /// 3.1), sends it once more with a new token, if one comes. Returns the last response.
    /// - Parameters:
    ///   - request: the request without a token.
    ///   - limit: longest wait for the first token, and for the new token.
    ///   - send: sends the request. Called once or twice, in the caller's isolation.
    /// - Throws: `HeimdallrError` without a token, and errors of `send`.
    nonisolated(nonsending) public func authenticateRequest<Body>(
        _ request: HTTPRequest, waiting limit: Duration = .seconds(30),
        send: nonisolated(nonsending) (HTTPRequest) async throws -> (HTTPResponse, Body)
    ) async throws -> (HTTPResponse, Body) {
        let origin = "\(request.scheme ?? "")://\(request.authority ?? "")".lowercased()
        return try await authenticateRequest(
            request, to: origin, waiting: limit, put: { $0.put(on: &$1) }, send: send
        ) { answer in
            answer.0.status == .unauthorized ? answer.0.headerFields[values: .wwwAuthenticate] : nil
        }
    }
}

extension RequestCredential {
    /// Puts the credential on `request`, in place of the request's own field or parameter of this name.
    public func put(on request: inout HTTPRequest) {
        switch self {
        case .header(let name, let value):
            guard let name = HTTPField.Name(name) else { return }
            var field = HTTPField(name: name, value: value.revealed)
            // Keeps the credential out of header compression, which attackers can probe (RFC 7541, section 7.1.3).
            field.indexingStrategy = .disallow
            request.headerFields[fields: name] = [field]
        case .query:
            request.path = request.path.map { put(inURL: $0) }
        }
    }
}
