import HTTPMessage
import WireText

/// A program's request to a token endpoint that the proxy answers itself (`issue`). Pure.
struct ProgramTokenRequest {
    /// One reading of the program's credentials. HTTP Basic allows two: the grammar of RFC 6749, section 2.3.1, encodes both
    /// parts, and many programs send them as they are.
    struct Sender: Equatable {
        var id: String
        /// `nil` if the program sent none.
        var secret: String?
    }

    private(set) var senders: [Sender] = []
    /// The person that the program names; `nil` for none.
    private(set) var subject: String?
    /// Scopes as asked; `nil` for none.
    let scope: String?
    /// Scopes that an entry must have.
    private(set) var scopes: [String] = []
    let refreshToken: String?

    private enum Grant: String {
        case clientCredentials = "client_credentials"
        case refreshToken = "refresh_token"
        case assertion = "urn:ietf:params:oauth:grant-type:jwt-bearer"
        case password
    }

    /// Words that ask for no permission (OpenID Connect Core, sections 5.4 and 11).
    private static let plainScopes = ["openid", "profile", "offline_access"]

    init(_ head: RequestHead, _ bytes: Span<UInt8>, body: [UInt8]) throws(Problem) {
        guard let values = Self.values(head, bytes, body), let word = values["grant_type"] else {
            throw Problem(.tokenRequestMalformed)
        }
        guard let grant = Grant(rawValue: word) else { throw Problem(.tokenRequestGrantType) }
        scope = values["scope"]
        refreshToken = grant == .refreshToken ? values["refresh_token"] : nil
        senders = try Self.senders(head, bytes, values)
        var asked = scope
        switch grant {
        case .clientCredentials: break
        case .refreshToken: if refreshToken == nil { throw Problem(.tokenRequestMalformed) }
        case .password:
            guard let user = values["username"], values["password"] != nil else {
                throw Problem(.tokenRequestMalformed)
            }
            subject = user
        case .assertion:
            guard let text = values["assertion"] else { throw Problem(.tokenRequestMalformed) }
            // An id token could not be made: programs check its signature.
            guard let claims = Self.claims(text), let issuer = claims["iss"]?.string, claims["target_audience"] == nil
            else { throw Problem(.tokenRequestGrant) }
            if senders.isEmpty { senders = [Sender(id: issuer)] }
            for name in ["sub", "scope"] where claims[name] != nil && claims[name]?.string == nil {
                throw Problem(.tokenRequestGrant)
            }
            if let named = claims["sub"]?.string, !senders.contains(where: { $0.id == named }) { subject = named }
            asked = asked ?? claims["scope"]?.string
        }
        if senders.isEmpty { throw Problem(.tokenRequestClient) }
        scopes = (asked ?? "").split(separator: " ").map { String($0) }.filter { !Self.plainScopes.contains($0) }
    }

    // MARK: Parameters

    /// Returns the parameters of a form or of a JSON object; `nil` if they can't be read, or one is repeated.
    private static func values(_ head: RequestHead, _ bytes: Span<UInt8>, _ body: [UInt8]) -> [String: String]? {
        let type = head.index(of: .contentType).map { bytes[head.fields[$0].value].text.lowercased() } ?? ""
        guard type.hasPrefix("application/json") else { return FormText.fields(body) }
        guard case .object(let members)? = try? JSONParser.parse(body) else { return nil }
        // A parameter of another type must not look like none.
        guard members.allSatisfy({ !known.contains($0) || $1.string != nil || $1 == .null }) else { return nil }
        return members.compactMapValues(\.string)
    }

    private static let known: Set = [
        "grant_type", "scope", "client_id", "client_secret", "client_assertion", "refresh_token", "assertion",
        "username", "password",
    ]

    /// Returns the claims of a JWT (RFC 7519). Its signature is not checked: the program's key is a dummy.
    private static func claims(_ text: String) -> JSONValue? {
        let parts = text.utf8.split(separator: ASCII.dot, omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = Base64.decode(Array(parts[1]), as: .url),
            case .object(let members)? = try? JSONParser.parse(bytes)
        else { return nil }
        return .object(members)
    }

    // MARK: The program

    private static func senders(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ values: [String: String]
    ) throws(Problem) -> [Sender] {
        let fields = head.fields.filter { $0.known == .authorization && !$0.isHopByHop }
        guard fields.count < 2 else { throw Problem(.tokenRequestMalformed) }
        if let field = fields.first, bytes[field.value].extracting(first: 6).equalsIgnoringCase(basic) {
            guard let sent = BasicCredentials(bytes[field.value]) else { throw Problem(.tokenRequestClient) }
            let plain = Sender(id: sent.user, secret: String(decoding: sent.password, as: UTF8.self))
            var senders = [plain]
            if let id = PercentEncoding.form.decode(plain.id.utf8),
                let secret = PercentEncoding.form.decode((plain.secret ?? "").utf8),
                id != plain.id || secret != plain.secret
            {
                senders.append(Sender(id: id, secret: secret))
            }
            // Some programs repeat the ID in the body. Two different ones would leave open which counts.
            if let id = values["client_id"] { senders.removeAll { $0.id != id } }
            if let secret = values["client_secret"] { senders.removeAll { $0.secret != secret } }
            guard !senders.isEmpty, values["client_assertion"] == nil else { throw Problem(.tokenRequestMalformed) }
            return senders
        }
        guard let assertion = values["client_assertion"] else {
            return values["client_id"].map { [Sender(id: $0, secret: values["client_secret"])] } ?? []
        }
        guard let id = claims(assertion)?["sub"]?.string, id == values["client_id"] ?? id else {
            throw Problem(.tokenRequestClient)
        }
        return [Sender(id: id)]
    }

    private static let basic = Array("basic ".utf8)
}
