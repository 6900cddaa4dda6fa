// The example of docs/library.md. A test holds the two together.
// begin
import Heimdallr
import HeimdallrCurl

/// The body of one protected resource, with a token that is fetched, kept and refreshed as need be.
func fetchInvoices(from api: String, tokenEndpoint: String, http: any HeimdallrHTTPClient) async throws -> String {
    var configuration = HeimdallrConfiguration(tokenEndpoint: tokenEndpoint)
    configuration.scope = ["billing.read"]
    configuration.allowPlaintext = tokenEndpoint.hasPrefix("http://127.0.0.1:")
    let secret = SecretFileProvider(path: "/run/secrets/billing")
    let heimdallr = try Heimdallr(
        configuration: configuration,
        credentials: OAuthClientSecretCredentials(identifier: "billing-sidecar", secret: secret), httpClient: http)
    let request = HeimdallrHTTPRequest(url: api + "/v1/invoices")
    let answer = try await heimdallr.authenticateRequest(request) { try await http.send($0) }
    return String(decoding: answer.body, as: UTF8.self)
}
// end
