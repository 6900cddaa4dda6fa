import Glibc
import Heimdallr
import HeimdallrCurl
import Testing

@Suite struct EnvironmentTests {
    @Test func `a client has removed SSLKEYLOGFILE before libcurl could open the file`() async {
        await #expect(processExitsWith: .success) {
            let file = "/tmp/heimdallr-keys-\(getpid())"
            _ = unsafe setenv("SSLKEYLOGFILE", file, 1)
            let client = try CurlHTTPClient()
            precondition(unsafe getenv("SSLKEYLOGFILE") == nil)
            precondition(CurlHTTPClient.removedEnvironmentVariables == ["SSLKEYLOGFILE"])
            _ = try? await client.send(
                HeimdallrHTTPRequest(
                    method: "GET", url: "https://127.0.0.1:9/", headers: [], body: [], timeout: .seconds(5),
                    maxBodyBytes: 1024))
            precondition(unsafe access(file, F_OK) != 0)
        }
    }
}
