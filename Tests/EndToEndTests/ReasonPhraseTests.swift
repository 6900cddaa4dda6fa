import Foundation
import TestSupport
import Testing

/// None of these shows the body of a refused CONNECT.
@Suite("programs show the reason phrase", .timeLimit(.minutes(3)))
struct ReasonPhraseTests {
    private static let java = """
        import java.net.URI;
        public class Ask {
            public static void main(String[] arguments) throws Exception {
                ((java.net.HttpURLConnection) URI.create(arguments[0]).toURL().openConnection()).getInputStream();
            }
        }
        """
    private static let go = """
        package main
        import ("fmt"; "net/http"; "os")
        func main() { _, err := http.Get(os.Args[1]); fmt.Println(err) }
        """

    private static func python(_ program: String) throws -> [String] {
        [try Repository.python(), "-c", "import sys; url = sys.argv[1]\n\(program)"]
    }

    @Test(arguments: ["curl", "wget", "urllib", "httpx", "aiohttp", "Node", "Go", "Java"])
    func `programs show the reason phrase of a refused CONNECT`(name: String) async throws {
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: "http://127.0.0.1:1/token",
                upstreams: ProxyConfiguration.upstream(url: "http://127.0.0.1:1")))
        let folder = try TemporaryDirectory()
        let port = URL(string: proxy.url)?.port ?? 0
        let command: [String] =
            switch name {
            case "curl": ["curl", "-sv"]
            case "wget": ["wget", "-O-", "--tries=1"]
            case "urllib": try Self.python("import urllib.request; urllib.request.urlopen(url)")
            case "httpx": try Self.python("import httpx; httpx.get(url)")
            case "aiohttp":
                try Self.python(
                    """
                    import aiohttp, asyncio
                    async def main():
                        async with aiohttp.ClientSession(trust_env=True) as session: await session.get(url)
                    asyncio.run(main())
                    """)
            case "Node":
                [
                    "node", "-e",
                    """
                    const url = new URL(process.argv[1]);
                    require('http').request({ port: \(port), method: 'CONNECT', path: url.host + ':443' })
                        .on('connect', (response) => { console.log(response.statusMessage); process.exit(); }).end();
                    """,
                ]
            case "Go": ["go", "run", try folder.write(Self.go, to: "ask.go")]
            default:
                [
                    "java", "-XX:TieredStopAtLevel=1", "-Dhttps.proxyHost=127.0.0.1", "-Dhttps.proxyPort=\(port)",
                    try folder.write(Self.java, to: "Ask.java"),
                ]
            }
        let child = try await ChildProcess.run(
            command + ["https://api.test/"],
            environment: ["https_proxy": proxy.url, "HTTPS_PROXY": proxy.url, "no_proxy": nil, "NO_PROXY": nil])
        #expect(
            child.transcript.contains("Use http://api.test instead of https, or set intercept: true"),
            "\(child.transcript)")
    }

    @Test func `wget shows the reason phrase of a refused request`() async throws {
        let proxy = try await RunningProxy("{proxy: {listen: \"127.0.0.1:0\"}, upstreams: [{host: api.example.com}]}")
        let child = try await ChildProcess.run(
            ["wget", "-O-", "--tries=1", "http://api.exmaple.com/"],
            environment: ["http_proxy": proxy.url, "no_proxy": nil, "NO_PROXY": nil])
        #expect(
            child.errors.contains("ERROR 403: No upstream for api.exmaple.com: did you mean api.example.com?"),
            "\(child.errors)")
    }
}
