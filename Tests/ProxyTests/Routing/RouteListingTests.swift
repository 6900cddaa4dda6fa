import Configuration
import Proxy
import Reports
import TestSupport
import Testing

@Suite("check shows what the gate says")
struct RouteListingTests {
    private func configuration(_ text: String) throws -> Configuration {
        try Configuration.parse(yaml: text, file: "test.yaml", environment: [:]).0
    }

    private static let many = """
        proxy: {users: {alice: sesame-sesame-sesame}}
        clients:
          a: {token_endpoint: https://i.example/t, client_id: a}
        upstreams:
          - {host: "*.example.com"}
          - {host: "*.eu.example.com", client: a}
          - {host: any.eu.example.com, url: https://elsewhere.example/base}
          - {host: a.example.com, client: a}
          - {host: a.example.com, client: a, paths: [/v1/, /v1/deep], methods: [GET, HEAD]}
          - {host: a.example.com, client: a, paths: [/v1/], url: https://b.example.com:8443/}
          - {host: a.example.com, callers: {users: [alice]}, url: https://alice.example}
          - {host: "a.example.com:8443", client: a}
          - {host: "127.0.0.1:9000", url: http://127.0.0.1:9001}
        """

    @Test func `each rule leads where why says, for a request that it is for`() throws {
        let configuration = try configuration(Self.many)
        let listing = RouteListing(configuration)
        #expect(listing.routes.count == configuration.resolvedRoutes.count)
        #expect(
            listing.routes.map(\.destination) == [
                "http://127.0.0.1:9001", "https://a.example.com:8443", "https://a.example.com", "https://a.example.com",
                "https://b.example.com:8443", "https://alice.example", "https://a.example.com",
                "https://elsewhere.example/base", "https://*.eu.example.com", "https://*.example.com",
            ])
        for (method, url, index) in [
            ("GET", "http://a.example.com/v1/x", 4), ("POST", "http://a.example.com/v1/x", 5),
            ("GET", "http://a.example.com:8443/", 7), ("GET", "http://any.eu.example.com/", 2),
            ("GET", "http://other.eu.example.com/", 1), ("GET", "http://127.0.0.1:9000/", 8),
        ] {
            let route = try #require(listing.routes.first { $0.upstream == index })
            guard case .upstream(let found) = RouteExplanation(configuration, method: method, url: url),
                found.index == index
            else {
                Issue.record("\(method) \(url) is another rule's")
                continue
            }
            let shown = route.destination.replacing("*", with: "other")
            #expect(found.destination == shown, "\(method) \(url)")
        }
    }

    @Test func `a rule with conditions on fields is listed with its destination`() throws {
        let listing = RouteListing(
            try configuration(
                """
                upstreams:
                  - {host: a.test, url: https://blue.example, fields: {X-Tenant: [blue, "navy-*"]}}
                  - {host: b.test, url: https://soap.example, fields: {SOAPAction: "urn:*"}}
                """))
        #expect(listing.routes.map(\.destination) == ["https://blue.example", "https://soap.example"])
    }

    @Test func `a rule behind another one for many methods is listed with its own destination`() throws {
        let configuration = try configuration(
            """
            upstreams:
              - {host: a.test, url: https://rest.example}
              - {host: a.test, url: https://named.example, methods: [GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS, ANOTHER]}
            """)
        #expect(
            RouteListing(configuration).routes.map(\.destination) == ["https://named.example", "https://rest.example"])
    }

    @Test func `each rule says what a program with https gets, and why says the same`() throws {
        let configuration = try configuration(
            """
            proxy: {unmatched: forward, connect: tunnel, tunnels: ["tunnel.test:443", "port.test:8443"]}
            upstreams:
              - {host: open.test, intercept: true}
              - {host: "*.wild.test", intercept: true, paths: [/v1/]}
              - {host: tunnel.test}
              - {host: "port.test:8443"}
              - {host: closed.test}
              - {host: base.test, listen: "127.0.0.1:0"}
            """)
        let expected = [
            "open.test": "intercepted", "*.wild.test": "intercepted", "tunnel.test": "tunnelled",
            "port.test:8443": "tunnelled", "closed.test": "refused", "base.test": "refused",
        ]
        for route in RouteListing(configuration).routes {
            let host = configuration.upstreams[route.upstream].host.description
            #expect(route.https == expected[host], "\(host)")
            #expect(route.description.hasSuffix("https: \(route.https)"))
            for scheme in ["http", "https"] where scheme == "http" || route.https == "intercepted" {
                let url = "\(scheme)://\(host.replacing("*", with: "a"))/v1/"
                guard case .upstream(let found) = RouteExplanation(configuration, method: "GET", url: url) else {
                    Issue.record("\(url) is no upstream's")
                    continue
                }
                #expect(found.https.rawValue == route.https, "\(url)")
            }
        }
        for (host, treatment) in [("tunnel.test", HTTPSTreatment.tunnelled), ("nobody.test", .refused)] {
            let rules = try self.configuration(
                "proxy: {unmatched: forward, connect: tunnel, tunnels: [\"tunnel.test:443\"]}\nupstreams: []")
            #expect(
                RouteExplanation(rules, method: "GET", url: "http://\(host)/")
                    == .unmatched(destination: "http://\(host)", https: treatment))
        }
    }

    @Test func `the listing says what other hosts and CONNECT get, and why says the same`() throws {
        let closed = RouteListing(try configuration("upstreams: [{host: a.test}]"))
        #expect(!closed.forwardsOthers)
        #expect(closed.tunnels.isEmpty)
        let open = RouteListing(
            try configuration(
                """
                proxy: {unmatched: forward, connect: tunnel, tunnels: ["b.test:443", "*"]}
                upstreams: [{host: a.test}]
                """))
        #expect(open.forwardsOthers)
        #expect(open.tunnels.map(\.description) == ["b.test:443", "*"])
    }
}
