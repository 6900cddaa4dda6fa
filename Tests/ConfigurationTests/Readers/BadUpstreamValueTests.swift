import Configuration
import Testing

@Suite("A value of an upstream that does not fit is refused with its place and what to write instead")
struct BadUpstreamValueTests {
    /// The entry stands in line 4 from column 5 on; clients `a` and `b` exist, `b` is used.
    static let upstream: KeyValuePairs<String, String> = [
        "{client: a}": "4:5: upstreams[1]: `host` is missing: write api.example.com",
        "{host: https://x.example/v1, client: a}":
            "4:12: upstreams[1].host: write x.example, without scheme and path, not \"https://x.example/v1\"",
        "{host: x.example/v1, client: a}":
            "4:12: upstreams[1].host: write x.example here, and the path under `paths`, not \"x.example/v1\"",
        "{host: \"api.*.com\", client: a}":
            "4:12: upstreams[1].host: write * as the whole first label only, as in \"*.example.com\", not \"api.*.com\"",
        "{host: \"*\", client: a}":
            "4:12: upstreams[1].host: write * as the whole first label only, as in \"*.example.com\", not \"*\"",
        "{host: \"*.10.0.0.1\", client: a}":
            "4:12: upstreams[1].host: write * as the whole first label only, as in \"*.example.com\", not \"*.10.0.0.1\"",
        "{host: bücher.example, client: a}":
            "4:12: upstreams[1].host: write internationalised names as punycode (xn--…), not \"bücher.example\"",
        "{host: x.example:0, client: a}":
            "4:12: upstreams[1].host: write a port from 1 to 65535, not \"x.example:0\"",
        "{host: x.example:80, client: a}":
            "4:12: upstreams[1].host: this would go to https:// on port 80: leave the port out (80 and 443 match then), or write `url`",
        "{host: x.example, client: bb}":
            "4:31: upstreams[1].client: there is no client \"bb\" under `clients`; did you mean \"b\"?",
        "{host: x.example, client: other}":
            "4:31: upstreams[1].client: there is no client \"other\" under `clients`: add it, or leave `client` out to forward unsigned",
        "{host: x.example, client: a, paths: v1}":
            "4:41: upstreams[1].paths: write a path that starts with /, not \"v1\"",
        "{host: x.example, client: a, paths: [/a/*]}":
            "4:42: upstreams[1].paths: paths are prefixes already: write /a, not \"/a/*\"",
        "{host: x.example, client: a, paths: [/a/../b]}":
            "4:42: upstreams[1].paths: write the path without . and .. segments, not \"/a/../b\"",
        "{host: x.example, client: a, paths: [/a/%2E%2e]}":
            "4:42: upstreams[1].paths: write the path without . and .. segments, not \"/a/%2E%2e\"",
        "{host: x.example, client: a, paths: [/%zz]}":
            "4:42: upstreams[1].paths: write %25 for a literal %, not \"/%zz\"",
        "{host: x.example, client: a, paths: [\"/a b\"]}":
            "4:42: upstreams[1].paths: percent-encode spaces and other special characters of a path, not \"/a b\"",
        "{host: x.example, client: a, paths: [/a?b]}":
            "4:42: upstreams[1].paths: write the path without ? and #; queries are not matched, not \"/a?b\"",
        "{host: x.example, client: a, methods: get}":
            "4:43: upstreams[1].methods: methods are case-sensitive: write GET, not \"get\"",
        "{host: x.example, client: a, methods: [GET, GET]}":
            "4:49: upstreams[1].methods: this value is repeated",
        "{host: x.example, client: a, methods: [\"G T\"]}":
            "4:44: upstreams[1].methods: write an HTTP method such as GET, not \"G T\"",
        "{host: x.example, client: a, methods: [TRACE]}":
            "4:44: upstreams[1].methods: CONNECT and TRACE never carry a token: leave them out, not \"TRACE\"",
        "{host: x.example, client: a, url: x.example}":
            "4:39: upstreams[1].url: write an absolute URL such as https://api.example.com, not \"x.example\"",
        "{host: x.example, client: a, url: ftp://x.example}":
            "4:39: upstreams[1].url: write an https:// URL, not \"ftp://x.example\"",
        "{host: x.example, client: a, url: https://u:p@x.example}":
            "4:39: upstreams[1].url: write the URL without a user name; the token comes from `client`",
        "{host: x.example, client: a, url: \"https://x.example/?a\"}":
            "4:39: upstreams[1].url: write the URL without a query (from ? on), not \"https://x.example/?a\"",
        "{host: x.example, client: a, url: \"https://x.example/#a\"}":
            "4:39: upstreams[1].url: write the URL without a fragment (from # on), not \"https://x.example/#a\"",
        "{host: x.example, client: a, url: http://x.example}":
            "4:39: upstreams[1].url: the token would cross the network in plain text: write https://, or `allow_plaintext: true` if that is meant",
        "{host: x.example, client: a, url: http://127.0.0.1:9}":
            "4:39: upstreams[1].url: the token would cross the network in plain text: write https://, or `allow_plaintext: true` if that is meant",
        "{host: x.example, client: a, inject: {query: access_token}}":
            "4:50: upstreams[1].inject.query: a token in the query ends up in logs (RFC 9700, section 4.3.2): inject a header, or write `allow_deprecated: true` at this upstream",
        "{host: x.example, client: a, allow_deprecated: true, inject: {query: t, header: X}}":
            "4:85: upstreams[1].inject.header: a token goes into a header or into the query, not both: leave this or `query` out",
        "{host: x.example, client: a, inject: {header: Host}}":
            "4:51: upstreams[1].inject.header: write a header that can carry a token, such as Authorization or X-Api-Key, not \"Host\"",
        "{host: x.example, client: a, inject: {scheme: a b}}":
            "4:51: upstreams[1].inject.scheme: write a scheme such as Bearer, or \"\" for the bare token, not \"a b\"",
        "{host: x.example, set_headers: {Connection: close}}":
            "4:37: upstreams[1].set_headers: \"Connection\" belongs to the connection, which the proxy manages: leave it out",
        "{host: x.example, set_headers: {Transfer_Encoding: chunked}}":
            "4:37: upstreams[1].set_headers: \"Transfer_Encoding\" belongs to the connection, which the proxy manages: leave it out",
        "{host: x.example, set_headers: {Content.Length: 5}}":
            "4:37: upstreams[1].set_headers: \"Content.Length\" belongs to the connection, which the proxy manages: leave it out",
        "{host: x.example, set_headers: {Authorization.: Basic x}}":
            "4:37: upstreams[1].set_headers: \"Authorization.\" carries credentials: use `inject` and `on_existing` instead",
        "{host: x.example, inject: [{header: X-Key, value: a}, {header: X.Key, value: b}]}":
            "4:59: upstreams[1].inject[1]: the field X.Key is already set by upstreams[1].inject[0]: write another field, or leave one of them out",
        "{host: x.example, set_headers: {authorization: Basic x}}":
            "4:37: upstreams[1].set_headers: \"authorization\" carries credentials: use `inject` and `on_existing` instead",
        "{host: x.example, set_headers: {X-A: \"a\\nb\"}}":
            "4:42: upstreams[1].set_headers.X-A: a header value can't hold line breaks or control characters",
        "{host: x.example, set_headers: {X A: b}}":
            "4:37: upstreams[1].set_headers: write a header name such as X-Api-Key, not \"X A\"",
        "{host: x.example, set_headers: {X-A: b, x_a: c}}":
            "4:36: upstreams[1].set_headers: x_a is already in `set_headers`: name it only once",
        "{host: x.example, remove_headers: [X-A, Cookie]}":
            "4:45: upstreams[1].remove_headers: \"Cookie\" carries credentials: use `inject` and `on_existing` instead",
        "{host: x.example, remove_headers: Host}":
            "4:39: upstreams[1].remove_headers: \"Host\" belongs to the connection, which the proxy manages: leave it out",
        "{host: x.example, set_headers: {X-A: b}, remove_headers: [x-a]}":
            "4:62: upstreams[1].remove_headers: x-a is already in `set_headers`: name it only once",
        "{host: x.example, inject: {header: X-Key, value: k}, set_headers: {X-Key: b}}":
            "4:71: upstreams[1].set_headers: X-Key is already in `inject`: name it only once",
        "{host: x.example, client: a, on_existing: drop}":
            "4:47: upstreams[1].on_existing: write one of replace, keep, reject, not \"drop\"",
        "{host: x.example, client: a, on_unauthorized: retry}":
            "4:51: upstreams[1].on_unauthorized: write one of replay, pass, not \"retry\"",
        "{host: x.example, client: a, token_rejected: {status: 500}}":
            "4:59: upstreams[1].token_rejected.status: write a whole number from 400 to 499, not \"500\"",
        "{host: x.example, client: a, token_rejected: {header: {X-A: b}}}":
            "4:50: upstreams[1].token_rejected: write the `status` of answers that reject the token",
        "{host: x.example, client: a, max_replay_bytes: 65MiB}":
            "4:52: upstreams[1].max_replay_bytes: write a size from 0B to 64MiB, not \"65MiB\"",
        "{host: x.example, client: a, response_timeout: never}":
            "4:52: upstreams[1].response_timeout: write a duration such as 500ms, 30s, 5m or 1h, or off, not \"never\"",
        "{host: x.example, client: a, caller: []}":
            "4:34: unknown key \"caller\" in upstreams[1]; did you mean \"callers\"?",
        "{host: x.example, client: a, hosts: [n.example]}":
            "4:41: upstreams[1].hosts: this applies to the upstream's own listener: write `listen` too, or leave it out",
        "{host: x.example, client: a, listen: 127.0.0.1:8080}":
            "4:42: upstreams[1].listen: 127.0.0.1:8080 is taken by 127.0.0.1:8080 in the default: write another port",
        "{host: x.example, client: a, listen: \"[::]:9\"}":
            "4:42: upstreams[1].listen: [::]:9 is not loopback, so other machines could use the tokens: listen on 127.0.0.1, set `users` under `proxy`, or write `open: true` there if that is meant",
        "{host: localhost:8080, client: a}":
            "4:12: upstreams[1]: https://localhost:8080 leads back to this proxy, which listens on 127.0.0.1:8080: write the address of the API in `url`",
        "{host: x.example, client: a, proxy: http://127.0.0.1:8080}":
            "4:12: upstreams[1]: `proxy` is this proxy itself, which listens on 127.0.0.1:8080: write the address of the next proxy",
        "{host: b.example., client: a}":
            "4:12: upstreams[1]: b.example matches the same requests as the upstream in line 3: make `host`, `paths`, `methods` or `callers` differ",
        "{host: b.example, client: a, paths: [/x, /]}":
            "4:12: upstreams[1]: b.example matches the same requests as the upstream in line 3: make `host`, `paths`, `methods` or `callers` differ",
        "5": "4:5: upstreams[1]: write a mapping of `key: value` lines, not a single value",
    ]

    @Test("a bad value of an upstream is refused with its place and the remedy", arguments: upstream)
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
}
