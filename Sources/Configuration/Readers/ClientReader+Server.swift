import Heimdallr
import WireText

// Settings for servers that differ from the standards. They are the same for `client: auto`.
extension ClientReader {
    private enum IDToken: String, CaseIterable { case auto, off }

    static func readServer(_ section: Section, into settings: inout ClientSettings) {
        settings.pkce = section.value("pkce", Grammar.word)
        var idToken = IDToken.auto
        section.read("id_token", into: &idToken, Grammar.word)
        settings.usesIDToken = idToken == .auto
        settings.tokenMember = section.value("token_member") { text throws(BadValue) in
            let names = text.split(separator: ".", omittingEmptySubsequences: false)
            let isPlain = names.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(isNameByte) }
            return try Grammar.checked(
                text, isPlain && names.count <= 8,
                BadValue(
                    "write the member's name behind the names around it, such as authed_user.access_token",
                    matching: #"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){0,7}$"#))
        }
    }

    /// Warns of values that were copied from a server's documentation.
    static func warnOfTemplates(_ section: Section, _ settings: ClientSettings) {
        for (key, value) in [
            ("issuer", settings.issuer), ("token_endpoint", settings.tokenEndpoint),
            ("authorization_endpoint", settings.authorizationEndpoint),
            ("device_authorization_endpoint", settings.deviceAuthorizationEndpoint), ("client_id", settings.clientID),
        ] {
            guard section.has(key), let value, let word = Template.word(in: value) else { continue }
            section.warn(key, "\(word) stands for your own value: write that in its place")
        }
    }

    /// Refuses a client without PKCE and without authentication, and warns of a client without PKCE.
    static func checkPKCE(_ section: Section, _ settings: ClientSettings) {
        guard settings.pkce == .off else { return }
        if settings.authMethod == .none {
            section.error(
                "pkce",
                "this client has no secret and no key, so a stolen code would suffice for a token: leave this out")
        } else {
            section.warn(
                "pkce",
                "without PKCE a stolen code is easier to use: write this only if the server refuses `code_verifier`")
        }
    }

    /// A name of a grant: RFC 6749 appendix A.10.
    static func isGrantName(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { isNameByte($0) || $0 == UInt8(ascii: ".") }
    }

    static let grantNames = ValueKind.text(matching: "^[A-Za-z0-9._-]+$")

    private static func isNameByte(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || byte == ASCII.hyphen || byte == ASCII.underscore
    }
}
