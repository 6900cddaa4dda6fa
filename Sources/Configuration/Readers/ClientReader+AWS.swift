import Heimdallr

// Keys of AWS's Security Token Service.
extension ClientReader {
    func readAWS(_ grant: Grant?) -> AWSSettings? {
        let region = section.value("region", SigV4Reader.region)
        let (id, secret, session) = SigV4Reader.accessKeys(section)
        let token = section.secret("web_identity_token", audience: "sts.amazonaws.com")
        let role = section.value("role_arn") { text throws(BadValue) in
            try Grammar.checked(
                text, text.hasPrefix("arn:") && text.contains(":role/") && Grammar.isVisible(text),
                BadValue("write the role's ARN, such as arn:aws:iam::123456789012:role/NAME", matching: "^arn:.+:role/")
            )
        }
        var name = AWSSettings.usualSessionName
        section.read("role_session_name", into: &name, Grammar.printable)
        let externalID = section.value("external_id", Grammar.printable)
        let duration = section.value("duration", Grammar.duration(.seconds(900)...Section.day * 3 / 2))
        guard grant == .aws, let region else { return nil }
        var identity: AWSSettings.Identity?
        if let token { identity = .webIdentity(token) }
        if let id, let secret { identity = .keys(id: id, secret: secret, session: session) }
        guard let identity else { return nil }
        var settings = AWSSettings(identity: identity, region: region, role: role)
        (settings.sessionName, settings.externalID, settings.duration) = (name, externalID, duration)
        return settings
    }

    func checkAWS() {
        section.refuse(
            [
                "issuer", "client_id", "client_secret", "token_endpoint_auth_method", "scope", "resource", "audience",
                "authorization_details", "params", "revocation_endpoint", "dpop", "token_member",
            ], saying: "AWS's token service knows the keys or the web identity only: leave it out")
        section.need(
            "access_key_id", "web_identity_token", for: "grant_type",
            saying: "AWS needs `access_key_id` and `secret_access_key`, or `web_identity_token` and `role_arn`")
        section.refuse("access_key_id", without: "secret_access_key", saying: "write `secret_access_key` too")
        section.refuse("secret_access_key", without: "access_key_id", saying: "write `access_key_id` too")
        section.refuse(
            "access_key_id", with: "web_identity_token", saying: "leave out the keys or `web_identity_token`")
        section.refuse(
            "web_identity_token", without: "role_arn", saying: "a web identity takes a role: write `role_arn`")
        section.refuse("external_id", without: "role_arn", saying: "this belongs to `role_arn`: write that, too")
        section.refuse("role_session_name", without: "role_arn", saying: "this belongs to `role_arn`: write that, too")
    }
}
