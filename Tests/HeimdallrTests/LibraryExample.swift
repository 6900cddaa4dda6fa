// The example of docs/library.md. A test holds the two together.
// begin
import Heimdallr

/// The body of one protected resource, with a token that is fetched, kept and refreshed as need be.
func fetchInvoices(from api: String, tokenEndpoint: String, http: any HeimdallrHTTPClient) async throws -> String {
    var configuration = HeimdallrConfiguration(tokenEndpoint: tokenEndpoint)
    configuration.scope = ["billing.read"]
    configuration.allowPlaintext = tokenEndpoint.hasPrefix("http://127.0.0.1:")
    let secret = SecretFileProvider(path: "/run/secrets/billing")
    let heimdallr = try Heimdallr(
        configuration: configuration,
        credentials: OAuthClientSecretCredentials(identifier: "billing-sidecar", secret: secret), httpClient: http)
    var request = HeimdallrHTTPRequest(url: api + "/v1/invoices")
    try await heimdallr.authenticate(&request)
    return String(decoding: try await http.send(request).body, as: UTF8.self)
}
// end
