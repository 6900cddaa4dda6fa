import Administration
import Configuration
import HTTPMessage
import Heimdallr
import WireText

/// Checks each step of `client: auto`, up to the first failure.
struct EnrolmentCheck: Sendable {
    let auto: AutoSettings
    let client: Heimdallr
    let http: any HeimdallrHTTPClient
    let redirectURI: String
    let pkce: PKCE?
    /// The challenge that the running proxy got last. A server may send one only at a path that programs know.
    let seen: (url: String, metadata: String?)?

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

    /// Sends the API a request without a token, and gives the client the challenge of the API's answer. Without one, the
    /// client gets the challenge that the running proxy got.
    private func refusal() async -> Finding {
        let url = seen?.url ?? auto.resource
        let request = HeimdallrHTTPRequest(url: url, timeout: ConnectionCheck.limit, maxBodyBytes: 1 << 20)
        let response: HeimdallrHTTPResponse
        do { response = try await http.send(request) } catch {
            let error = error as? HeimdallrHTTPClientError ?? .other
            let advice = Advice(client.status()).sentence(for: error, of: url)
            return .failed("API", "\(error)", advice, isConsequence: true)
        }
        let values = response.headers.filter { $0.name.lowercased() == "www-authenticate" }.map { Array($0.value.utf8) }
        let bearer = Challenge.readable(values).challenges.first { $0.scheme == Challenge.bearer }
        guard bearer != nil || seen?.metadata != nil else {
            let place = url == auto.resource ? "" : " at \(ForeignText.printable(url))"
            return .skipped("API", "the API answered \(response.status)\(place) without a Bearer challenge")
        }
        let metadata = bearer == nil ? seen?.metadata : bearer?.value(of: "resource_metadata")
        client.challenged(
            ResourceChallenge(url: url, metadata: metadata, scope: bearer?.value(of: "scope")), hadToken: false)
        let text = bearer == nil ? "the running proxy got a challenge of the API" : "the API asks for a token"
        return .good("API", text + (metadata == nil ? "" : ", and names its metadata"))
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
