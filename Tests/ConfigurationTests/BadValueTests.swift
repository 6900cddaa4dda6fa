import Configuration
import Testing

@Suite("A value that does not fit is refused with its place and what to write instead")
struct BadValueTests {
    /// The key stands in line 2, column 3; short values from column 5 + its length on.
    static let proxy: [(line: String, message: String)] = [
        ("threads: two", "2:12: proxy.threads: write a whole number from 1 to 256, not \"two\""),
        ("threads: 0", "2:12: proxy.threads: write a whole number from 1 to 256, not \"0\""),
        ("threads: -1", "2:12: proxy.threads: write a whole number from 1 to 256, not \"-1\""),
        (
            "threads: 99999999999999999999",
            "2:12: proxy.threads: write a whole number from 1 to 256, not \"99999999999999999999\""
        ),
        ("threads: [1]", "2:12: proxy.threads: write a single value, not a list"),
        ("open: yes", "2:9: proxy.open: write true or false, not \"yes\""),
        ("open: {}", "2:9: proxy.open: write a single value, not a mapping"),
        ("unmatched: froward", "2:14: proxy.unmatched: write forward, not \"froward\""),
        ("unmatched: allow", "2:14: proxy.unmatched: write one of reject, forward, not \"allow\""),
        (
            "connect: tunnel",
            "2:12: proxy.connect: a tunnel needs a place to go: list HOST:PORT pairs under `tunnels`, or \"*\" for any"
        ),
        ("connect: open", "2:12: proxy.connect: write one of reject, tunnel, not \"open\""),
        (
            "tunnels: [x.test]",
            "2:13: proxy.tunnels: write HOST:PORT such as github.com:443, or \"*\" for any, not \"x.test\""
        ),
        (
            "tunnels: [\"*.test:443\"]",
            "2:13: proxy.tunnels: write HOST:PORT such as github.com:443, or \"*\" for any, not \"*.test:443\""
        ),
        (
            "tunnels: [\"https://x.test:443\"]",
            "2:13: proxy.tunnels: write HOST:PORT such as github.com:443, or \"*\" for any, not \"https://x.test:443\""
        ),
        ("tunnels: [x.test:443, X.test.:443]", "2:25: proxy.tunnels: this value stands here twice"),
        ("header_timeout: 30", "2:19: proxy.header_timeout: write a duration such as 500ms, 30s, 5m or 1h, not \"30\""),
        ("header_timeout: 1d", "2:19: proxy.header_timeout: write a duration such as 500ms, 30s, 5m or 1h, not \"1d\""),
        (
            "header_timeout: off",
            "2:19: proxy.header_timeout: write a duration such as 500ms, 30s, 5m or 1h, not \"off\""
        ),
        ("header_timeout: 0s", "2:19: proxy.header_timeout: write a duration from 1ms to 24h, not \"0s\""),
        ("max_header_bytes: 64KB", "2:21: proxy.max_header_bytes: write a size such as 64KiB or 1MiB, not \"64KB\""),
        ("max_header_bytes: 10", "2:21: proxy.max_header_bytes: write a size from 1KiB to 16MiB, not \"10\""),
        (
            "max_body_bytes: none",
            "2:19: proxy.max_body_bytes: write a size such as 64KiB or 1MiB, or off, not \"none\""
        ),
        ("max_connections: 0", "2:20: proxy.max_connections: write a whole number from 1 to 1000000, not \"0\""),
        ("header_timeot: 1s", "2:3: unknown key \"header_timeot\" in proxy; did you mean \"header_timeout\"?"),
        ("header-timeout: 1s", "2:3: unknown key \"header-timeout\" in proxy; did you mean \"header_timeout\"?"),
        ("listen: 8080", "2:11: proxy.listen: write host:port, such as 127.0.0.1:8080 or [::1]:8080, not \"8080\""),
        (
            "listen: :8080",
            "2:11: proxy.listen: write 127.0.0.1:8080 for this machine only, or 0.0.0.0:8080 for every address, not \":8080\""
        ),
        (
            "listen: 127.0.0.1:99999",
            "2:11: proxy.listen: write host:port, such as 127.0.0.1:8080 or [::1]:8080, not \"127.0.0.1:99999\""
        ),
        (
            "listen: ::1:8080",
            "2:11: proxy.listen: write host:port, such as 127.0.0.1:8080 or [::1]:8080, not \"::1:8080\""
        ),
        ("listen: []", "2:11: proxy.listen: write at least one address, such as 127.0.0.1:8080"),
        ("listen: [localhost:1, ~]", "2:25: proxy.listen: write a single value, not nothing"),
        (
            "listen: unix:run/h.sock",
            "2:11: proxy.listen: write unix: and an absolute path, not \"unix:run/h.sock\""
        ),
        (
            "listen: {unix: /run/h.sock, mode: \"0888\"}",
            "2:37: proxy.listen.mode: write permissions in octal such as \"0600\", \"0660\" or \"0666\", not \"0888\""
        ),
        (
            "listen: [{unix: /run/h.sock, moed: \"0660\"}]",
            "2:32: unknown key \"moed\" in proxy.listen; did you mean \"mode\"?"
        ),
        ("listen: [unix:/run/h.sock, {unix: /run/h.sock}]", "2:30: proxy.listen: this value stands here twice"),
        ("listen: {mode: \"0660\"}", "2:11: proxy.listen: write host:port, or {unix: PATH, mode: \"0660\"}"),
        (
            "listen: 0.0.0.0:8080",
            "2:11: proxy.listen: 0.0.0.0:8080 is not loopback, so other machines could use the tokens: listen on 127.0.0.1, set `users` under `proxy`, or write `open: true` there if that is meant"
        ),
        ("listen: [\"[::1]:80\", \"[0::1]:80\"]", "2:24: proxy.listen: this value stands here twice"),
        (
            "listen: [127.0.0.1:80, localhost:80]",
            "2:26: proxy.listen: localhost:80 is taken by 127.0.0.1:80 in line 2: write another port"
        ),
        (
            "private_networks: 10.0.0.0",
            "2:21: proxy.private_networks: write an address block such as 10.0.0.0/8 or fd00::/8, not \"10.0.0.0\""
        ),
        (
            "private_networks: [10.0.0.0/33]",
            "2:22: proxy.private_networks: write a prefix length from 0 to 32, not \"10.0.0.0/33\""
        ),
        (
            "private_networks: [fd00::/129]",
            "2:22: proxy.private_networks: write a prefix length from 0 to 128, not \"fd00::/129\""
        ),
        (
            "drain_timeout: ${NOPE}",
            "2:18: proxy.drain_timeout: the environment variable NOPE is not set: set it, or write $${ for a literal ${"
        ),
        (
            "drain_timeout: ${no pe}",
            "2:18: proxy.drain_timeout: write ${NAME} for an environment variable, or $${ for a literal ${, not \"${no pe}\""
        ),
    ]

    @Test("proxy", arguments: proxy)
    func proxySettings(_ line: String, _ message: String) {
        #expect(problems("proxy:\n  \(line)") == ["c.yaml:" + message])
    }

    /// The key stands in line 5, column 5, in a client that is good without it.
    static let client: [(line: String, message: String)] = [
        (
            "issuer: https://i.example?a=b",
            "5:13: clients.a.issuer: write the issuer without a query (from ? on), not \"https://i.example?a=b\""
        ),
        (
            "redirect_uri: http://127.0.0.1/cb",
            "5:19: clients.a.redirect_uri: this belongs to `grant_type: authorization_code` and `implicit`: leave it out, or change `grant_type`"
        ),
        (
            "authorization_endpoint: https://i.example",
            "5:29: clients.a.authorization_endpoint: this belongs to `grant_type: authorization_code` and `implicit`: leave it out, or change `grant_type`"
        ),
        (
            "device_authorization_endpoint: https://i.example",
            "5:36: clients.a.device_authorization_endpoint: this belongs to `grant_type: device_code`: leave it out, or change `grant_type`"
        ),
        (
            "grant_type: urn:ietf:params:oauth:grant-type:jwt-bearer",
            "5:17: clients.a.grant_type: jwt-bearer is not supported yet: write client_credentials, authorization_code, device_code, password, refresh_token, token-exchange or an extension grant's URI"
        ),
        (
            "grant_type: client_credential",
            "5:17: clients.a.grant_type: write client_credentials, not \"client_credential\""
        ),
        (
            "grant_type: saml",
            "5:17: clients.a.grant_type: write client_credentials, authorization_code, device_code, password, refresh_token or an extension grant's URI, not \"saml\""
        ),
        (
            "grant_type: token-exchange\n    params: {subject_token_type: x}",
            "6:13: clients.a.params: token-exchange needs `subject_token` under `params` (RFC 8693, section 2.1)"
        ),
        (
            "token_endpoint_auth_method: basic",
            "5:33: clients.a.token_endpoint_auth_method: write client_secret_basic, not \"basic\""
        ),
        (
            "token_endpoint_auth_method: client_secret_post",
            "5:33: clients.a.token_endpoint_auth_method: client_secret_post needs `client_secret`"
        ),
        (
            "token_endpoint_auth_method: private_key_jwt",
            "5:33: clients.a.token_endpoint_auth_method: private_key_jwt is not supported yet: write client_secret_basic, client_secret_post or none"
        ),
        ("{client_secret: {env: SECRET}, token_endpoint_auth_method: none}", ""),
        (
            "client_secret: {env: NOPE}",
            "5:26: clients.a.client_secret: the environment variable NOPE is not set: set it"
        ),
        ("client_secret: ${NOPE}", "5:20: clients.a.client_secret: the environment variable NOPE is not set: set it"),
        (
            "client_secret: {env: EMPTY}",
            "5:26: clients.a.client_secret: the environment variable EMPTY is empty: put the secret into it"
        ),
        (
            "client_secret: {file: /nonexistent/s}",
            "5:27: clients.a.client_secret: can't read the secret file /nonexistent/s: there is no such file"
        ),
        (
            "client_secret: {file: /}",
            "5:27: clients.a.client_secret: can't read the secret file /: this is a directory, not a file"
        ),
        (
            "client_secret: {file: /dev/null}",
            "5:27: clients.a.client_secret: can't read the secret file /dev/null: this is not a regular file"
        ),
        ("client_secret: {path: x}", "5:20: clients.a.client_secret: write {file: PATH} or {env: NAME}"),
        (
            "client_secret: {env: SECRET, file: x}",
            "5:20: clients.a.client_secret: write either `file` or `env`, not both"
        ),
        ("client_secret: [x]", "5:20: clients.a.client_secret: write {file: PATH} or {env: NAME}, not a list"),
        (
            "client_secret: \"\"",
            "5:20: clients.a.client_secret: the secret is empty: write {file: PATH} or {env: NAME}"
        ),
        ("basic_encoding: url", "5:21: clients.a.basic_encoding: write one of form, percent, raw, not \"url\""),
        (
            "scope: \"a\\\"b\"",
            "5:12: clients.a.scope: write scopes as in [read, write] or \"read write\", without \" and \\, not \"a\"b\""
        ),
        (
            "resource: api",
            "5:15: clients.a.resource: write an absolute URI without a fragment, such as https://api.example.com, not \"api\""
        ),
        (
            "resource: https://a/#b",
            "5:15: clients.a.resource: write an absolute URI without a fragment, such as https://api.example.com, not \"https://a/#b\""
        ),
        (
            "params: {scope: a}",
            "5:14: clients.a.params: \"scope\" has a key of its own: write `scope:` beside `params`"
        ),
        ("params: [a]", "5:13: clients.a.params: write a mapping of `name: value` lines, not a list"),
        ("params: {a: [b]}", "5:17: clients.a.params.a: write a single value, not a list"),
        (
            "headers: {Authorization: x}",
            "5:15: clients.a.headers: \"Authorization\" is set by the token request itself and can't be an extra header"
        ),
        (
            "headers: {transfer-encoding: x}",
            "5:15: clients.a.headers: \"transfer-encoding\" is set by the token request itself and can't be an extra header"
        ),
        ("headers: {\"a b\": x}", "5:15: clients.a.headers: write a header name such as X-Api-Key, not \"a b\""),
        (
            "headers: {a: \"x\\r\\nb: c\"}",
            "5:18: clients.a.headers.a: a header value can't hold line breaks or control characters"
        ),
        (
            "username: u",
            "5:15: clients.a.username: this belongs to `grant_type: password`: leave it out, or change `grant_type`"
        ),
        (
            "refresh_token: ${SECRET}",
            "5:20: clients.a.refresh_token: this belongs to `grant_type: refresh_token`: leave it out, or change `grant_type`"
        ),
        ("grant_type: refresh_token", "2:3: clients.a: `grant_type: refresh_token` needs `refresh_token`"),
        ("default_expires_in: 0s", "5:25: clients.a.default_expires_in: write a duration from 1s to 8760h, not \"0s\""),
        ("timeout: 2h", "5:14: clients.a.timeout: write a duration from 1ms to 1h, not \"2h\""),
        ("proxy: corporate:3128", "5:12: clients.a.proxy: write http://host:port, environment or none"),
        ("proxy: http://corporate", "5:12: clients.a.proxy: write the port too, as in http://proxy.example.com:3128"),
        (
            "tls: {ca_file: /nonexistent.pem}",
            "5:20: clients.a.tls.ca_file: can't use /nonexistent.pem: there is no such file"
        ),
        (
            "tls: {ca_file: /etc/hostname}",
            "5:20: clients.a.tls.ca_file: can't use /etc/hostname: the file is not PEM (it has no -----BEGIN line)"
        ),
        ("tls: {server_name: a}", "5:11: unknown key \"server_name\" in clients.a.tls"),
        ("labels: {\"a-b\": x}", "5:14: clients.a.labels: write a label name of letters, digits and _, not \"a-b\""),
        ("scopes: a", "5:5: unknown key \"scopes\" in clients.a; did you mean \"scope\"?"),
        ("token_url: https://a", "5:5: unknown key \"token_url\" in clients.a; did you mean \"token_endpoint\"?"),
    ].filter { !$0.message.isEmpty }

    @Test("client", arguments: client)
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

    /// The entry stands in line 4 from column 5 on; clients `a` and `b` exist, `b` is used.
    static let upstream: [(entry: String, message: String)] = [
        ("{client: a}", "4:5: upstreams[1]: `host` is missing: write api.example.com"),
        (
            "{host: https://x.example/v1, client: a}",
            "4:12: upstreams[1].host: write x.example, without scheme and path, not \"https://x.example/v1\""
        ),
        (
            "{host: x.example/v1, client: a}",
            "4:12: upstreams[1].host: write x.example here, and the path under `paths`, not \"x.example/v1\""
        ),
        (
            "{host: \"api.*.com\", client: a}",
            "4:12: upstreams[1].host: write * as the whole first label only, as in \"*.example.com\", not \"api.*.com\""
        ),
        (
            "{host: \"*\", client: a}",
            "4:12: upstreams[1].host: write * as the whole first label only, as in \"*.example.com\", not \"*\""
        ),
        (
            "{host: \"*.10.0.0.1\", client: a}",
            "4:12: upstreams[1].host: write * as the whole first label only, as in \"*.example.com\", not \"*.10.0.0.1\""
        ),
        (
            "{host: bücher.example, client: a}",
            "4:12: upstreams[1].host: write internationalised names as punycode (xn--…), not \"bücher.example\""
        ),
        (
            "{host: x.example:0, client: a}",
            "4:12: upstreams[1].host: write a host such as api.example.com or api.example.com:8443, not \"x.example:0\""
        ),
        (
            "{host: x.example:80, client: a}",
            "4:12: upstreams[1].host: this would go to https:// on port 80: leave the port out (80 and 443 match then), or write `url`"
        ),
        (
            "{host: x.example, client: bb}",
            "4:31: upstreams[1].client: there is no client \"bb\" under `clients`; did you mean \"b\"?"
        ),
        (
            "{host: x.example, client: other}",
            "4:31: upstreams[1].client: there is no client \"other\" under `clients`: add it, or leave `client` out to forward unsigned"
        ),
        (
            "{host: x.example, client: a, paths: v1}",
            "4:41: upstreams[1].paths: write a path that starts with /, not \"v1\""
        ),
        (
            "{host: x.example, client: a, paths: [/a/*]}",
            "4:42: upstreams[1].paths: paths are prefixes already: write /a, not \"/a/*\""
        ),
        (
            "{host: x.example, client: a, paths: [/a/../b]}",
            "4:42: upstreams[1].paths: write the path without . and .. segments, not \"/a/../b\""
        ),
        (
            "{host: x.example, client: a, paths: [/a/%2E%2e]}",
            "4:42: upstreams[1].paths: write the path without . and .. segments, not \"/a/%2E%2e\""
        ),
        (
            "{host: x.example, client: a, paths: [/%zz]}",
            "4:42: upstreams[1].paths: write %25 for a literal %, not \"/%zz\""
        ),
        (
            "{host: x.example, client: a, paths: [\"/a b\"]}",
            "4:42: upstreams[1].paths: percent-encode spaces and other special characters of a path, not \"/a b\""
        ),
        (
            "{host: x.example, client: a, paths: [/a?b]}",
            "4:42: upstreams[1].paths: write the path without ? and #; queries are not matched, not \"/a?b\""
        ),
        (
            "{host: x.example, client: a, methods: get}",
            "4:43: upstreams[1].methods: methods are case-sensitive: write GET, not \"get\""
        ),
        (
            "{host: x.example, client: a, methods: [GET, GET]}",
            "4:49: upstreams[1].methods: this value stands here twice"
        ),
        (
            "{host: x.example, client: a, methods: [\"G T\"]}",
            "4:44: upstreams[1].methods: write an HTTP method such as GET, not \"G T\""
        ),
        (
            "{host: x.example, client: a, methods: [TRACE]}",
            "4:44: upstreams[1].methods: CONNECT and TRACE never carry a token: leave them out, not \"TRACE\""
        ),
        (
            "{host: x.example, client: a, url: x.example}",
            "4:39: upstreams[1].url: write an absolute URL such as https://api.example.com, not \"x.example\""
        ),
        (
            "{host: x.example, client: a, url: ftp://x.example}",
            "4:39: upstreams[1].url: write an https:// URL, not \"ftp://x.example\""
        ),
        (
            "{host: x.example, client: a, url: https://u:p@x.example}",
            "4:39: upstreams[1].url: write the URL without a user name; the token comes from `client`"
        ),
        (
            "{host: x.example, client: a, url: \"https://x.example/?a\"}",
            "4:39: upstreams[1].url: write the URL without a query (from ? on), not \"https://x.example/?a\""
        ),
        (
            "{host: x.example, client: a, url: \"https://x.example/#a\"}",
            "4:39: upstreams[1].url: write the URL without a fragment (from # on), not \"https://x.example/#a\""
        ),
        (
            "{host: x.example, client: a, url: http://x.example}",
            "4:39: upstreams[1].url: the token would cross the network in plain text: write https://, or `allow_plaintext: true` if that is meant"
        ),
        (
            "{host: x.example, client: a, url: http://127.0.0.1:9}",
            "4:39: upstreams[1].url: the token would cross the network in plain text: write https://, or `allow_plaintext: true` if that is meant"
        ),
        (
            "{host: x.example, client: a, inject: {query: access_token}}",
            "4:50: upstreams[1].inject.query: a token in the query ends up in logs (RFC 9700, section 4.3.2): inject a header, or write `allow_deprecated: true` at this upstream"
        ),
        (
            "{host: x.example, client: a, allow_deprecated: true, inject: {query: t, header: X}}",
            "4:85: upstreams[1].inject.header: a token goes into a header or into the query, not both: leave this or `query` out"
        ),
        (
            "{host: x.example, client: a, inject: {header: Host}}",
            "4:51: upstreams[1].inject.header: write a header that can carry a token, such as Authorization or X-Api-Key, not \"Host\""
        ),
        (
            "{host: x.example, client: a, inject: {scheme: a b}}",
            "4:51: upstreams[1].inject.scheme: write a scheme such as Bearer, or \"\" for the bare token, not \"a b\""
        ),
        (
            "{host: x.example, client: a, on_existing: drop}",
            "4:47: upstreams[1].on_existing: write one of replace, keep, reject, not \"drop\""
        ),
        (
            "{host: x.example, client: a, on_unauthorized: retry}",
            "4:51: upstreams[1].on_unauthorized: write one of replay, pass, not \"retry\""
        ),
        (
            "{host: x.example, client: a, max_replay_bytes: 65MiB}",
            "4:52: upstreams[1].max_replay_bytes: write a size from 0B to 64MiB, not \"65MiB\""
        ),
        (
            "{host: x.example, client: a, response_timeout: never}",
            "4:52: upstreams[1].response_timeout: write a duration such as 500ms, 30s, 5m or 1h, or off, not \"never\""
        ),
        (
            "{host: x.example, client: a, caller: []}",
            "4:34: unknown key \"caller\" in upstreams[1]; did you mean \"callers\"?"
        ),
        (
            "{host: x.example, client: a, hosts: [n.example]}",
            "4:41: upstreams[1].hosts: this is about the upstream's own listener: write `listen` too, or leave it out"
        ),
        (
            "{host: x.example, client: a, listen: 127.0.0.1:8080}",
            "4:42: upstreams[1].listen: 127.0.0.1:8080 is taken by 127.0.0.1:8080 in the default: write another port"
        ),
        (
            "{host: x.example, client: a, listen: \"[::]:9\"}",
            "4:42: upstreams[1].listen: [::]:9 is not loopback, so other machines could use the tokens: listen on 127.0.0.1, set `users` under `proxy`, or write `open: true` there if that is meant"
        ),
        ("{host: x.example, client: a, tls: {cert_file: /nonexistent}}", ""),
        (
            "{host: localhost:8080, client: a}",
            "4:12: upstreams[1]: https://localhost:8080 leads back to this proxy, which listens on 127.0.0.1:8080: write the address of the API in `url`"
        ),
        (
            "{host: x.example, client: a, proxy: http://127.0.0.1:8080}",
            "4:12: upstreams[1]: `proxy` is this proxy itself, which listens on 127.0.0.1:8080: write the next one's address"
        ),
        (
            "{host: b.example., client: a}",
            "4:12: upstreams[1]: b.example matches the same requests as the upstream in line 3: make `host`, `paths`, `methods` or `callers` differ"
        ),
        (
            "{host: b.example, client: a, paths: [/x, /]}",
            "4:12: upstreams[1]: b.example matches the same requests as the upstream in line 3: make `host`, `paths`, `methods` or `callers` differ"
        ),
        ("5", "4:5: upstreams[1]: write a mapping of `key: value` lines, not a single value"),
    ].filter { !$0.message.isEmpty }

    @Test("upstream", arguments: upstream)
    func upstreamSettings(_ entry: String, _ message: String) {
        let client = "{token_endpoint: https://i.example/t, client_id: a}"
        let yaml = """
            clients: {a: \(client), b: \(client)}
            upstreams:
              - {host: b.example, client: b}
              - \(entry)
            """
        #expect(problems(yaml) == ["c.yaml:" + message])
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

    @Test("an admin port that others can reach needs a token, and one of its own")
    func admin() {
        #expect(
            problems("proxy: {open: true}\nadmin: {listen: 0.0.0.0:8081}") == [
                "c.yaml:2:17: admin.listen: 0.0.0.0:8081 is not loopback, so other machines could read the status: "
                    + "listen on 127.0.0.1, or set `token` under `admin`"
            ])
        #expect(problems("admin: {listen: 0.0.0.0:8081, token: {env: SECRET}}") == [])
        #expect(
            problems("proxy: {listen: 127.0.0.1:8081}\nadmin: {}") == [
                "c.yaml:2:8: admin.listen: 127.0.0.1:8081 is taken by 127.0.0.1:8081 in line 1: write another port"
            ])
        #expect(
            problems("admin: {hosts: [a.example:1], socket: /\(String(repeating: "x", count: 107)), page: 1}") == [
                "c.yaml:1:17: admin.hosts: write a host name such as api.example.com, without a port, not "
                    + "\"a.example:1\"",
                "c.yaml:1:39: admin.socket: write a path of at most 107 bytes, not \"/\(String(repeating: "x", count: 79))…\"",
                "c.yaml:1:149: unknown key \"page\" in admin",
            ])
    }

    @Test("a store on disk needs a directory and a key of 32 bytes")
    func store() throws {
        #expect(problems("store: {kind: file}") == ["c.yaml:1:8: store: `kind: file` needs `directory` and `key`"])
        #expect(problems("store: {}") == ["c.yaml:1:8: store: write `kind: memory` or `kind: file`"])
        #expect(
            problems("store: {kind: memory, directory: /d}") == [
                "c.yaml:1:34: store.directory: this belongs to `kind: file`: leave it out"
            ])
        let folder = try TemporaryFolder()
        let noKey =
            "store.key: this key is no key of 32 bytes, raw or base64: make one with "
            + "`heimdallr-proxy keygen --output FILE`"
        for text in ["short", String(repeating: "k", count: 33), String(repeating: "f0", count: 32)] {
            let file = try folder.write("key", text)
            #expect(
                problems("store: {kind: file, directory: d, key: {file: \(file)}}") == ["c.yaml:1:40: \(noKey)"])
            #expect(
                problems("store: {kind: file, directory: d, key: {env: KEY}}", environment: ["KEY": text]) == [
                    "c.yaml:1:40: \(noKey)"
                ])
        }
    }

    @Test("everything is reported at once, in the order of the file")
    func allAtOnce() {
        let yaml = """
            proxy:
              listen: 0.0.0.0:8080
              threads: many
            clients:
              billing:
                token_endpoint: http://idp.example.com/token
                client_secret: {file: /nonexistent/secret}
                clinet_id: billing
            upstreams:
              - host: billing.example.com
                client: biling
              - host: billing.example.com
            """
        #expect(
            problems(yaml).map { $0.split(separator: " ", maxSplits: 1).first.map(String.init) } == [
                "c.yaml:2:11:", "c.yaml:3:12:", "c.yaml:5:3:", "c.yaml:6:21:", "c.yaml:7:27:", "c.yaml:8:5:",
                "c.yaml:11:13:", "c.yaml:12:11:",
            ])
    }

    @Test("a secret's value is never in a message")
    func secretsStayOut() {
        let yaml = """
            clients:
              a:
                token_endpoint: "https://idp.example.com:${SECRET}/t"
                client_id: "${SECRET}\\t"
                client_secret: hunter2-literal
                proxy: http://u:${SECRET}@bad host
                headers: {X: "${SECRET}\\n"}
            upstreams: [{host: "${SECRET} x", client: "${SECRET}"}]
            """
        let text = problems(yaml, environment: ["SECRET": "s3cr3t"]).joined(separator: "\n")
        #expect(text.split(separator: "\n").count >= 5)
        #expect(!text.contains("hunter2"))
        #expect(!text.contains("s3cr3t"))
    }
}
