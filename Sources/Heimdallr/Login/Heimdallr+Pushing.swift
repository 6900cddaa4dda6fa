internal import WireText

/// Use of pushed authorization requests (RFC 9126), so that the browser carries only a reference.
public enum PushedAuthorization: String, Sendable, Hashable, CaseIterable {
    /// Pushed if the server supports pushing. If its metadata requires pushing, a login that can't push fails.
    case auto
    /// Never pushed: the browser carries the whole request.
    case off
    /// Always pushed: a login that can't push fails.
    case required
}

// Pushed authorization requests: RFC 9126.
extension Heimdallr {
    /// Returns the address for the browser, with the whole request or a reference to a pushed request.
    /// - Parameter opensAtOnce: whether a browser opens the address now. If not, no request is pushed: it would expire.
    func address(
        _ endpoint: String, _ request: AuthorizationRequest, _ metadata: ServerMetadata?, opensAtOnce: Bool
    ) async throws(LoginError) -> String {
        let whole = AuthorizationRequest.url(endpoint, request.parameters)
        let configuration = requests.configuration
        guard configuration.pushedAuthorization != .off else { return whole }
        let isRequired = requiresPushing(metadata)
        let isOffered =
            configuration.pushedAuthorizationEndpoint != nil
            || metadata?.named(.pushedAuthorization, throughAlias: configuration.usesMutualTLS) != nil
        guard isRequired || isOffered else { return whole }
        guard opensAtOnce else {
            guard !isRequired else { throw .pushingRequired }
            return whole
        }
        do throws(LoginError) {
            let reference = try await push(request, to: try await url(.pushedAuthorization, in: metadata))
            // OpenID Connect Core section 6.1, and many servers, require response_type beside the reference.
            return AuthorizationRequest.url(
                endpoint,
                [
                    FormParameter("response_type", request.responseType),
                    FormParameter("client_id", requests.credentials.identifier),
                    FormParameter("request_uri", reference),
                ])
        } catch {
            // After a refusal, the server would refuse the browser's request, too. After other faults, the browser
            // carries the request, unless pushing is required.
            if case .refused(let refusal) = error { throw .pushRefused(refusal) }
            if isRequired { throw error }
            return whole
        }
    }

    /// Whether a login whose request can't be pushed fails.
    private func requiresPushing(_ metadata: ServerMetadata?) -> Bool {
        switch requests.configuration.pushedAuthorization {
        case .auto: metadata?.requiresPushing ?? false
        case .off: false
        case .required: true
        }
    }

    /// Returns the endpoint for pushed requests, if a login fails without it.
    func pushingEndpoints() async -> [Endpoint] {
        requiresPushing(try? await requests.directory.metadata()) ? [.pushedAuthorization] : []
    }

    /// Sends the request, and returns its reference: RFC 9126 section 2.
    private func push(_ request: AuthorizationRequest, to url: String) async throws(LoginError) -> String {
        let response = try await post(request.parameters, to: url, .pushedAuthorization)
        guard let reference = (try? JSONParser.parse(response.body))?["request_uri"]?.string, !reference.isEmpty,
            reference.utf8.count <= 2048, reference.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw .endpoint(.answer(.notAnObject)) }
        return reference
    }
}
