import HTTPMessage
import Heimdallr

// Settings of clients with a grant that needs a person.
extension ClientReader {
    /// Reports settings with which a login would fail. Warns if the login's id token could not be verified.
    func checkLogin(_ grant: Grant) {
        if grant == .deviceCode {
            needEndpoint("device_authorization_endpoint", "ask for the codes")
        } else {
            needEndpoint("authorization_endpoint", "send the browser to")
            checkPushing()
        }
        if grant == .authorizationCode { Self.checkPKCE(section, settings) }
        if settings.scope.contains("openid"), settings.usesIDToken, !section.has("issuer") {
            section.warn("scope", "without `issuer` the id token can't be checked, and no signed-in person is shown")
        }
    }

    /// Checks the settings of pushed authorization requests (RFC 9126).
    private func checkPushing() {
        switch settings.pushedAuthorization {
        case .auto: break
        case .off:
            if section.has("pushed_authorization_request_endpoint") {
                section.error(
                    "pushed_authorization_request_endpoint",
                    "with `par: off` nothing is sent there: leave it out, or write `par: auto`")
            }
        case .required: needEndpoint("pushed_authorization_request_endpoint", "push the login's request to")
        }
    }

    /// Only a verified id token says who has signed in.
    func checkExpectation() {
        guard section.has("expect"),
            !settings.scope.contains("openid") || !settings.usesIDToken || !section.has("issuer")
        else { return }
        section.error(
            "expect",
            "this needs `issuer`, the scope `openid`, and no `id_token: off`: only an id token says who has signed in")
    }

    private func needEndpoint(_ key: String, _ purpose: String) {
        let name = section.shownName(of: key)
        section.need(key, "issuer", saying: "\(name) is missing: write the URL to \(purpose), or `issuer`")
    }

    /// Checks that name and password are both configured, or neither. Without them, a person types both.
    func checkPassword() {
        for (key, other) in [("username", "password"), ("password", "username")] {
            section.refuse(
                key, without: other,
                saying: "this needs `\(other)` too; without both, a person types them in at a login")
        }
    }

    // MARK: Values

    /// An issuer, which has no query (RFC 8414, section 2).
    static func issuer(_ text: String) throws(BadValue) -> String {
        let url = try Grammar.endpoint(text)
        guard !url.contains("?") else { throw BadValue("write the issuer without a query (from ? on)") }
        if let issuer = withoutWellKnown(url) {
            throw BadValue("this is the URL of the issuer's metadata, not the issuer: write \(issuer)")
        }
        return url
    }

    /// Returns the issuer whose metadata has this URL; `nil` for any other URL. OpenID Connect Discovery (section 4)
    /// appends the well-known part. RFC 8414 (section 3.1) inserts it before the issuer's path.
    private static func withoutWellKnown(_ url: String) -> String? {
        guard let url = try? WebURL(url) else { return nil }
        let segments = url.path.split(separator: "/", omittingEmptySubsequences: false)
        guard let index = segments.firstIndex(of: ".well-known") else { return nil }
        // The segments after the document's name are the issuer's path, with an optional slash at the end.
        var rest = segments[index...].dropFirst(2)
        if rest.elementsEqual([""]) { rest = [] }
        let path = segments[..<index] + rest
        return url.start + path.joined(separator: "/")
    }

    /// A redirect URI: https, http on loopback, or a private scheme (RFC 8252, section 7).
    static func redirectURI(_ text: String) throws(BadValue) -> String {
        guard Grammar.isAbsoluteURI(text), let colon = text.firstIndex(of: ":") else {
            throw BadValue("write an absolute URI such as http://127.0.0.1:8081/callback", fits: Grammar.absoluteURIs)
        }
        guard !text.contains("#") else { throw BadValue("write the URI without a fragment (from # on)") }
        let scheme = text[..<colon]
        guard scheme == scheme.lowercased() else { throw BadValue("write the scheme in lower case, as browsers do") }
        guard scheme == "https" || scheme == "http" else { return text }
        let parts = try WebURL(value: text, example: "http://127.0.0.1:8081/callback", allowing: .userInfo)
        guard parts.userInfo == nil else { throw BadValue("write the URI without a user name") }
        try Grammar.checkSpelling(parts, "the host")
        guard scheme == "https" || parts.authority.host.isThisMachine else {
            throw BadValue("a code would cross the network in plain text: write https://, or a loopback address")
        }
        let names = (parts.query ?? "").split(separator: "&").map { $0.prefix { $0 != "=" } }
        if let name = names.first(where: { RedirectURI.answerNames.contains($0) }) {
            throw BadValue("write the URI without \(name) in its query: the server's answer adds this parameter")
        }
        return text
    }
}
