import Configuration
import Testing

@Suite("check prints the resolved routes")
struct RouteTests {
    @Test("the most specific rule comes first")
    func order() throws {
        let yaml = """
            clients:
              a: {token_endpoint: https://i.example/t, client_id: a}
            upstreams:
              - host: "*.example.com"
              - {host: "*.eu.example.com", client: a}
              - host: b.example.com
              - {host: a.example.com, client: a}
              - {host: a.example.com, client: a, paths: [/v1/, /v1/deep], methods: [GET, HEAD]}
              - {host: a.example.com, client: a, paths: [/v1/], inject: {header: X-Api-Key, scheme: ""}}
              - {host: "a.example.com:8443", client: a, allow_deprecated: true, inject: {query: t}}
            """
        let routes = try good(yaml).configuration.resolvedRoutes
        #expect(
            routes.map(\.description) == [
                "a.example.com:8443  /…  *  -> https://a.example.com:8443  client a (client_credentials)  ?t=<token>",
                "a.example.com:80,443  /v1/deep/…  GET,HEAD  -> https://a.example.com  client a (client_credentials)  "
                    + "Authorization: Bearer <token>",
                "a.example.com:80,443  /v1/…  GET,HEAD  -> https://a.example.com  client a (client_credentials)  "
                    + "Authorization: Bearer <token>",
                "a.example.com:80,443  /v1/…  *  -> https://a.example.com  client a (client_credentials)  "
                    + "X-Api-Key: <token>",
                "a.example.com:80,443  /…  *  -> https://a.example.com  client a (client_credentials)  "
                    + "Authorization: Bearer <token>",
                "b.example.com:80,443  /…  *  -> https://b.example.com  unsigned",
                "*.eu.example.com:80,443  /…  *  -> https://*.eu.example.com  client a (client_credentials)  "
                    + "Authorization: Bearer <token>",
                "*.example.com:80,443  /…  *  -> https://*.example.com  unsigned",
            ])
    }

    @Test("the table is aligned")
    func table() throws {
        let configuration = try good("upstreams: [{host: a.example}, {host: longer.example}]").configuration
        let table = ResolvedRoute.table(configuration.resolvedRoutes)
        #expect(
            table == [
                "a.example:80,443       /…  *  -> https://a.example       unsigned",
                "longer.example:80,443  /…  *  -> https://longer.example  unsigned",
            ])
    }
}
