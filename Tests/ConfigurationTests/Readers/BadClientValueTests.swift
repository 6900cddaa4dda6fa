import Configuration
import Testing

@Suite("A value of a client that does not fit is refused with its place and what to write instead")
struct BadClientValueTests {
    /// By a key, the message. The key stands in line 5, column 5, in a client that is good without it.
    static let client: KeyValuePairs<String, String> = [
        "issuer: https://i.example?a=b":
            "5:13: clients.a.issuer: write the issuer without a query (from ? on), not \"https://i.example?a=b\"",
        "redirect_uri: http://127.0.0.1/cb":
            "5:19: clients.a.redirect_uri: this belongs to `grant_type: authorization_code` and `implicit`: leave it out, or change `grant_type`",
        "authorization_endpoint: https://i.example":
            "5:29: clients.a.authorization_endpoint: this belongs to `grant_type: authorization_code` and `implicit`: leave it out, or change `grant_type`",
        "device_authorization_endpoint: https://i.example":
            "5:36: clients.a.device_authorization_endpoint: this belongs to `grant_type: device_code`: leave it out, or change `grant_type`",
        "grant_type: urn:ietf:params:oauth:grant-type:jwt-bearer":
            "2:3: clients.a: `grant_type: jwt-bearer` needs `assertion`",
        "grant_type: saml2-bearer": "2:3: clients.a: `grant_type: saml2-bearer` needs `assertion`",
        "assertion: ${SECRET}":
            "5:16: clients.a.assertion: this belongs to `grant_type: jwt-bearer` and `saml2-bearer`: leave it out, or change `grant_type`",
        "grant_type: client_credential":
            "5:17: clients.a.grant_type: write client_credentials, not \"client_credential\"",
        "grant_type: my grant":
            "5:17: clients.a.grant_type: write client_credentials, authorization_code, device_code, password, refresh_token, jwt-bearer, saml2-bearer, token-exchange, github_app, aws, or another grant's name or URI, not \"my grant\"",
        "grant_type: token-exchange": "2:3: clients.a: `grant_type: token-exchange` needs `subject_token`",
        "grant_type: token-exchange\n    subject_token: ${SECRET}\n    params: {subject_token: x}":
            "7:14: clients.a.params: \"subject_token\" has a separate key: write `subject_token:` beside `params`",
        "grant_type: token-exchange\n    subject_token: ${SECRET}\n    subject_token_type: acces_token":
            "7:25: clients.a.subject_token_type: write access_token, not \"acces_token\"",
        "grant_type: token-exchange\n    subject_token: ${SECRET}\n    requested_token_type: bearer":
            "7:27: clients.a.requested_token_type: write one of access_token, refresh_token, id_token, saml1, saml2, jwt, or a URI, not \"bearer\"",
        "grant_type: token-exchange\n    subject_token: ${SECRET}\n    actor_token_type: jwt":
            "7:23: clients.a.actor_token_type: this needs `actor_token` too (RFC 8693, section 2.1)",
        "actor_token: ${SECRET}":
            "5:18: clients.a.actor_token: this belongs to `grant_type: token-exchange`: leave it out, or change `grant_type`",
        "authorization_details: [{actions: [read]}]":
            "5:29: clients.a.authorization_details: each entry needs a `type`, a text (RFC 9396, section 2)",
        "authorization_details: [{type: 1}]":
            "5:29: clients.a.authorization_details: each entry needs a `type`, a text (RFC 9396, section 2)",
        "authorization_details: payment":
            "5:28: clients.a.authorization_details: write a list of mappings, each with a `type` (RFC 9396), not a single value",
        "authorization_details: [{type: a, x: \(String(repeating: "[", count: 18) + String(repeating: "]", count: 18))}]":
            "5:57: clients.a.authorization_details.x: this is nested deeper than 16 levels",
        "authorization_details: [{type: a, x: \(String(repeating: "y", count: 16 * 1024))}]":
            "5:28: clients.a.authorization_details: these are longer than 16 KiB as JSON: leave out what the server does not need",
        "params: {authorization_details: x}":
            "5:14: clients.a.params: \"authorization_details\" has a separate key: write `authorization_details:` beside `params`",
        "token_endpoint_auth_method: basic":
            "5:33: clients.a.token_endpoint_auth_method: write client_secret_basic, not \"basic\"",
        "token_endpoint_auth_method: client_secret_post":
            "5:33: clients.a.token_endpoint_auth_method: client_secret_post needs `client_secret`",
        "token_endpoint_auth_method: private_key_jwt":
            "5:33: clients.a.token_endpoint_auth_method: private_key_jwt needs `client_key`, or `client_assertion` made elsewhere",
        "token_endpoint_auth_method: client_secret_jwt":
            "5:33: clients.a.token_endpoint_auth_method: client_secret_jwt needs `client_secret`",
        "token_endpoint_auth_method: tls_client_auth":
            "5:33: clients.a.token_endpoint_auth_method: tls_client_auth needs `tls: {cert_file: PATH, key_file: PATH}`",
        "client_key: {file: /nonexistent}":
            "5:24: clients.a.client_key: can't read the secret file /nonexistent: there is no such file: make it, or correct the path",
        "client_assertion: {command: [true]}\n    client_key_id: k":
            "6:20: clients.a.client_key_id: `client_assertion` is already signed: leave this key or `client_assertion` out",
        "client_key: {command: [true]}\n    client_secret: {env: SECRET}":
            "6:20: clients.a.client_secret: private_key_jwt sends no secret: leave this out",
        "client_key: {command: [true]}\n    token_endpoint_auth_signing_alg: HS256":
            "6:38: clients.a.token_endpoint_auth_signing_alg: HS256 is for client_secret_jwt: write the key's algorithm",
        "client_key: {command: [true]}\n    token_endpoint_auth_signing_alg: RS512":
            "6:38: clients.a.token_endpoint_auth_signing_alg: write one of HS256, RS256, PS256, ES256, ES384, EdDSA, not \"RS512\"",
        "client_key: {command: [true]}\n    client_assertion_audience: issuer":
            "6:32: clients.a.client_assertion_audience: there is no `issuer`: write one, or the audience itself",
        "client_assertion: {command: [true]}\n    client_assertion_type: client-authentication+jwt":
            "6:28: clients.a.client_assertion_type: write jwt-bearer, jwt-spiffe or a URI; the `typ` of the JWT is `client_assertion_typ`, not \"client-authentication+jwt\"",
        "client_assertion: {command: [true]}\n    client_assertion_typ: JWT":
            "6:27: clients.a.client_assertion_typ: `client_assertion` is already signed: leave this key or `client_assertion` out",
        "client_key: {command: [true]}\n    client_assertion_type: jwt-spiffe":
            "6:28: clients.a.client_assertion_type: this belongs to `client_assertion`, an assertion made elsewhere: write that too, or leave it out",
        "client_key: {command: [true]}\n    client_assertion_typ: a b":
            "6:27: clients.a.client_assertion_typ: write JWT, client-authentication+jwt or another media type, not \"a b\"",
        "client_assertion_typ: JWT":
            "5:27: clients.a.client_assertion_typ: none does not use this: leave it out, or write another `token_endpoint_auth_method`",
        "client_key_id: k":
            "5:20: clients.a.client_key_id: none does not use this: leave it out, or write another `token_endpoint_auth_method`",
        "client_key: {command: [true]}\n    client_certificate: c.pem":
            "6:25: clients.a.client_certificate: write a mapping of `key: value` lines, not a single value",
        "client_secret: {env: NOPE}":
            "5:26: clients.a.client_secret: the environment variable NOPE is not set: set it",
        "client_secret: ${NOPE}": "5:20: clients.a.client_secret: the environment variable NOPE is not set: set it",
        "client_secret: {env: EMPTY}":
            "5:26: clients.a.client_secret: the environment variable EMPTY is empty: put the secret into it",
        "client_secret: {file: /nonexistent/s}":
            "5:27: clients.a.client_secret: can't read the secret file /nonexistent/s: there is no such file: make it, or correct the path",
        "client_secret: {file: /}":
            "5:27: clients.a.client_secret: can't read the secret file /: this is a directory, not a file",
        "client_secret: {file: /dev/null}":
            "5:27: clients.a.client_secret: can't read the secret file /dev/null: this is not a regular file",
        "client_secret: {command: vault read}":
            "5:30: clients.a.client_secret.command: write a list: [program, argument, …]; no shell reads it",
        "client_secret: {command: [no-such-program-anywhere, x]}":
            "5:31: clients.a.client_secret.command: there is no program \"no-such-program-anywhere\" in PATH: install it, "
            + "or write its absolute path",
        "client_secret: {command: [/nonexistent/x]}":
            "5:31: clients.a.client_secret.command: write the path of a program that this process may run, not "
            + "\"/nonexistent/x\"",
        "client_secret: {command: [/etc]}":
            "5:31: clients.a.client_secret.command: write the path of a program that this process may run, not \"/etc\"",
        "client_secret: {command: [/bin/true], refresh: 10ms}":
            "5:52: clients.a.client_secret.refresh: write a duration from 1s to 24h, not \"10ms\"",
        "client_secret: {env: SECRET, refresh: 5m}":
            "5:43: clients.a.client_secret.refresh: this belongs to `command` and `vault`: other secrets are read at each use",
        "client_secret: {command: [/bin/true], file: x}":
            "5:20: clients.a.client_secret: write either `file` or `command`, not both",
        "client_secret: {path: x}": "5:20: clients.a.client_secret: write {file: PATH} or {env: NAME}",
        "client_secret: {env: SECRET, file: x}":
            "5:20: clients.a.client_secret: write either `file` or `env`, not both",
        "client_secret: [x]": "5:20: clients.a.client_secret: write {file: PATH} or {env: NAME}, not a list",
        "basic_encoding: url": "5:21: clients.a.basic_encoding: write one of form, percent, raw, not \"url\"",
        "scope: \"a\\\"b\"":
            "5:12: clients.a.scope: a scope can't contain \" or \\: write [read, write] or \"read write\", not \"a\"b\"",
        "resource: api":
            "5:15: clients.a.resource: write an absolute URI without a fragment, such as https://api.example.com, not \"api\"",
        "resource: https://a/#b":
            "5:15: clients.a.resource: write an absolute URI without a fragment, such as https://api.example.com, not \"https://a/#b\"",
        "params: {scope: a}":
            "5:14: clients.a.params: \"scope\" has a separate key: write `scope:` beside `params`",
        "params: [a]": "5:13: clients.a.params: write a mapping of `name: value` lines, not a list",
        "params: {a: [b]}": "5:17: clients.a.params.a: write a single value, not a list",
        "params: {a: {b: c}}":
            "5:17: clients.a.params.a: write a single value; only the steps sign_in, token, refresh, exchange have a mapping",
        "params: {refresh: {code: c}}":
            "5:24: clients.a.params.refresh: \"code\" is set by the grant itself and can't be an extra parameter",
        "params: {token: {refresh_token: c}}":
            "5:22: clients.a.params.token: \"refresh_token\" has a separate key: write `refresh_token:` beside `params`",
        "params: {token: {a: {b: c}}}": "5:25: clients.a.params.token.a: write a single value, not a mapping",
        "refresh_scope: asked": "5:20: clients.a.refresh_scope: write one of granted, none, not \"asked\"",
        "headers: {Authorization: x}":
            "5:15: clients.a.headers: \"Authorization\" is set by the token request itself and can't be an extra header",
        "headers: {transfer-encoding: x}":
            "5:15: clients.a.headers: \"transfer-encoding\" is set by the token request itself and can't be an extra header",
        "headers: {\"a b\": x}": "5:15: clients.a.headers: write a header name such as X-Api-Key, not \"a b\"",
        "headers: {a: \"x\\r\\nb: c\"}":
            "5:18: clients.a.headers.a: a header value can't hold line breaks or control characters",
        "username: u":
            "5:15: clients.a.username: this belongs to `grant_type: password`: leave it out, or change `grant_type`",
        "refresh_token: ${SECRET}":
            "5:20: clients.a.refresh_token: this belongs to `grant_type: refresh_token`: leave it out, or change `grant_type`",
        "grant_type: refresh_token": "2:3: clients.a: `grant_type: refresh_token` needs `refresh_token`",
        "default_expires_in: 0s":
            "5:25: clients.a.default_expires_in: write a duration from 1s to 8760h, or off, not \"0s\"",
        "timeout: 2h": "5:14: clients.a.timeout: write a duration from 1ms to 1h, not \"2h\"",
        "proxy: corporate:3128": "5:12: clients.a.proxy: write http://host:port, environment or none",
        "proxy: http://corporate": "5:12: clients.a.proxy: write the port too, as in http://proxy.example.com:3128",
        "tls: {ca_file: /nonexistent.pem}":
            "5:20: clients.a.tls.ca_file: can't use /nonexistent.pem: there is no such file: make it, or correct the path",
        "tls: {ca_file: /etc/hostname}":
            "5:20: clients.a.tls.ca_file: can't use /etc/hostname: the file is not PEM (it has no -----BEGIN line)",
        "tls: {server_name: a}": "5:11: unknown key \"server_name\" in clients.a.tls",
        "labels: {\"a-b\": x}": "5:14: clients.a.labels: write a label name of letters, digits and _, not \"a-b\"",
        "scopes: a": "5:5: unknown key \"scopes\" in clients.a; did you mean \"scope\"?",
        "token_url: https://a": "5:5: unknown key \"token_url\" in clients.a; did you mean \"token_endpoint\"?",
    ]

    @Test("a bad value of a client is refused with its place and the remedy", arguments: client)
    func clientSettings(_ line: String, _ message: String) {
        let yaml = """
            clients:
              a:
                token_endpoint: https://idp.example.com/token
                client_id: a
                \(line)
            upstreams: [{host: a.example.com, client: a}]
            """
        #expect(problems(yaml, environment: ["SECRET": "s", "EMPTY": ""]) == ["c.yaml:" + message])
    }

    static let reservedParams = [
        "grant_type", "client_id", "client_secret", "username", "password", "redirect_uri", "code", "assertion",
        "client_assertion", "client_assertion_type", "state", "response_type", "code_verifier", "code_challenge",
        "code_challenge_method", "nonce", "request", "request_uri", "response_mode", "device_code",
    ]

    @Test("44: reserved parameters can't be set through extra params", arguments: reservedParams)
    func reserved(_ name: String) {
        let yaml = """
            clients:
              a: {token_endpoint: https://i.example/t, client_id: a, params: {ok: 1, \(name): x}}
            upstreams: [{host: a.example.com, client: a}]
            """
        #expect(
            problems(yaml) == [
                "c.yaml:2:74: clients.a.params: \"\(name)\" is set by the grant itself and can't be an extra parameter"
            ])
    }

    @Test("missing keys of a client are named")
    func missing() {
        let yaml = "clients:\n  a: {}\n  b:\n  -c: {}\nupstreams: {}"
        #expect(
            problems(yaml) == [
                "c.yaml:2:3: clients.a.client_id is missing: write the identifier that the authorization server issued",
                "c.yaml:2:3: clients.a.token_endpoint is missing: write the URL that issues tokens, or `issuer`",
                "c.yaml:3:3: clients.b: write a mapping of `key: value` lines, not nothing",
                "c.yaml:4:3: clients: write a name of letters, digits, dots, - and _, not \"-c\"",
                "c.yaml:5:12: upstreams: write a list (`- host: api.example.com`), not a mapping",
            ])
    }

    @Test("63: the password grant needs allow_deprecated")
    func passwordGrant() {
        let yaml = """
            clients:
              a:
                grant_type: password
                token_endpoint: https://i.example/t
                client_id: a
                username: u
                password: ${SECRET}
            upstreams: [{host: a.example.com, client: a}]
            """
        #expect(
            problems(yaml) == [
                "c.yaml:3:17: clients.a.grant_type: the password grant is deprecated (RFC 9700): use another one, or "
                    + "write `allow_deprecated: true`"
            ])
    }

    @Test("a public client can't have a secret, and plain text is written down, for loopback too")
    func clientConsistency() {
        let yaml = """
            clients:
              a:
                token_endpoint: http://127.0.0.1:9/t
                client_id: a
                client_secret: ${SECRET}
                token_endpoint_auth_method: none
            upstreams: [{host: a.example.com, client: a}]
            """
        #expect(
            problems(yaml) == [
                "c.yaml:3:21: clients.a.token_endpoint: secrets and tokens would cross the network in plain text: "
                    + "write https://, or `allow_plaintext: true` if that is meant",
                "c.yaml:6:33: clients.a.token_endpoint_auth_method: none sends no secret: leave out `client_secret`, "
                    + "or write client_secret_basic",
            ])
    }
}
