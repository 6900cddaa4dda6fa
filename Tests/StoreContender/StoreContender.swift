// A process of its own for tests of the file store: keeps one token in a directory that others may use too, asks for a
// new one again and again, and says on standard output each time that it has one in use.
//
//     StoreContender DIRECTORY KEY-FILE TOKEN-ENDPOINT CLIENT [SECONDS]
//
// With SECONDS it ends by itself after that time.
import CurlTransport
import Glibc
import Heimdallr
import HeimdallrCurl
import Reactor

@main
enum StoreContender {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 5 else { return say("usage") }
        let store = OAuthAccessTokenFileStore(directory: arguments[1], key: try TokenStoreKey(file: arguments[2]))
        var configuration = HeimdallrConfiguration(tokenEndpoint: arguments[3])
        configuration.allowPlaintext = true
        configuration.headers = [HeimdallrHTTPField(name: "X-Process", value: "\(getpid())")]
        let loop = try EventLoop.start(name: "loop")
        let client = try Heimdallr(
            name: arguments[4], configuration: configuration,
            credentials: OAuthClientSecretCredentials(identifier: "contender", secret: Secret("s3cret")),
            httpClient: CurlHTTPClient(BufferedClient(options: PoolOptions(), loop: loop)), store: store)
        let end = arguments.count > 5 ? Double(arguments[5]).map { ContinuousClock.now + .seconds($0) } : nil
        client.start()
        while end.map({ ContinuousClock.now < $0 }) ?? true {
            do {
                let token = try await client.accessToken(waiting: .seconds(20))
                say("used \(token.value.revealed)")
            } catch {
                say("none \(error)")
            }
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...40)))
            client.invalidateAccessToken()
        }
        client.shutdown()
        say("end \(client.status().storeFault ?? "")")
    }

    /// One write: a line is whole or not there. write(2).
    private static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }
}
