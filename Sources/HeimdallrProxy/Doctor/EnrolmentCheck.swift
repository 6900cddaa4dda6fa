import Administration
import Configuration
import HTTPMessage
import Heimdallr

/// Checks each step of `client: auto`, up to the first failure.
struct EnrolmentCheck: Sendable {
    let auto: AutoSettings
    let client: Heimdallr
    let http: any HeimdallrHTTPClient
    let redirectURI: String
    let pkce: ClientSettings.PKCE?

    func findings() async -> [Finding] {
        let refusal = await refusal()
        guard refusal.outcome != .failed else { return [refusal] }
        do throws(LoginError) {
            let offer = try await client.signInOffer(redirectURI: redirectURI)
            return [refusal] + findings(offer)
        } catch {
            let advice = Advice(client.status()).sentence(for: error) ?? "ask the API's operator"
            return [refusal, .failed("chain", "\(error)", advice)]
        }
    }

    /// Sends the API a request without a token, and gives the client the challenge of the API's answer.
    private func refusal() async -> Finding {
        let request = HeimdallrHTTPRequest(url: auto.resource, timeout: ConnectionCheck.limit, maxBodyBytes: 1 << 20)
        let response: HeimdallrHTTPResponse
        do { response = try await http.send(request) } catch {
            return .failed(
                "API", "\(error as? HeimdallrHTTPClientError ?? .other)", "check `host` and `url`", isConsequence: true)
        }
        let values = response.headers.filter { $0.name.lowercased() == "www-authenticate" }.map { Array($0.value.utf8) }
        guard let bearer = Challenge.readable(values).challenges.first(where: { $0.scheme == Challenge.bearer }) else {
            return .skipped("API", "the API answered \(response.status) without a Bearer challenge")
        }
        client.challenged(
            ResourceChallenge(
                url: auto.resource, metadata: bearer.value(of: "resource_metadata"), scope: bearer.value(of: "scope")),
            hadToken: false)
        let named = bearer.value(of: "resource_metadata") != nil
        return .good("API", "the API asks for a token" + (named ? ", and names its metadata" : ""))
    }

    private func findings(_ offer: SignInOffer) -> [Finding] {
        var findings = [
            Finding.good(
                "resource", offer.document.map { "\($0) names \(offer.issuer)" } ?? "none; `issuer` is configured"),
            .good(
                "server",
                "the server's metadata names the same issuer, "
                    + (pkce == nil ? "and lists PKCE with S256" : "and `pkce: \(pkce?.rawValue ?? "")` is configured")),
        ]
        for (name, host) in offer.foreignEndpoints.sorted(by: { $0.key < $1.key }) {
            findings.append(
                .warning(
                    "server", "the server's \(name) is at another address: \(host)",
                    "make sure that this address belongs to the server"))
        }
        let words = offer.client.words
        let advice = "register a client at the server, and type its id on the sign-in page, or write `client_id`"
        return findings + [offer.client == .wanted ? .warning("client", words, advice) : .good("client", words)]
    }
}
