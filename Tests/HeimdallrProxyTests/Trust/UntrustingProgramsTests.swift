import Proxy
import Reports
import TLSServer
import Testing

@testable import HeimdallrProxy

@Suite("programs that do not trust the proxy")
struct UntrustingProgramsTests {
    private func failure(_ program: String?, _ target: String = "api.test:443") -> FailedHandshake {
        var failure = FailedHandshake(target: target, end: .ended)
        failure.caller = "127.0.0.1"
        failure.program = program
        return failure
    }

    @Test(
        arguments: [
            ("curl/7.88.1", "CURL_CA_BUNDLE"), ("python-requests/2.34.0", "REQUESTS_CA_BUNDLE"),
            ("Go-http-client/1.1", "SSL_CERT_FILE"), ("Java/17.0.12", "JAVA_TOOL_OPTIONS"),
            ("Java/17.0.12", "JAVA_TOOL_OPTIONS"), ("node", "NODE_EXTRA_CA_CERTS"),
            ("git/2.39.5", "GIT_SSL_CAINFO"), ("Wget/1.21.3", "WGETRC"), ("wget2/2.0.1", "WGET2RC"),
            ("Debian APT-HTTP/1.3 (2.6.1)", "APT_CONFIG"), ("Python/3.11 aiohttp/3.14.1", "SSL_CERT_FILE"),
            ("npm/10.8.2 node/v20.19.2 linux x64 workspaces/false", "npm_config_cafile"),
            ("pip/23.0.1 {\"ci\":null}", "PIP_CERT"), ("libwww-perl/6.68", "PERL_LWP_SSL_CA_FILE"),
        ])
    func `advice for a program that does not trust us names the variable of its kind`(program: String, variable: String)
    {
        #expect(failure(program).remedy.contains("exec, which sets \(variable);"), "\(failure(program).remedy)")
    }

    @Test(arguments: [nil, "", "Mozilla/5.0 (X11) curly/1", "/curl", "x curl-thing/1"])
    func `advice for an unknown program is the general one`(program: String?) {
        #expect(failure(program).remedy == failure(nil).advice())
    }

    @Test func `the list of programs is bounded, and failures of one kind are counted`() {
        let programs = UntrustingPrograms()
        for number in 0..<100 { programs.note(failure("curl/8", "host-\(number):443")) }
        #expect(programs.current.count == 20)
        #expect(programs.current.first?.target == "host-99:443")
        for _ in 0..<3 { programs.note(failure("curl/8", "host-90:443")) }
        #expect(programs.current.count == 20)
        #expect(programs.current.first?.target == "host-90:443")
        #expect(programs.current.first?.count == 4)
        // A refusal by the proxy says nothing of trust.
        programs.note(FailedHandshake(target: "refused:443", end: .refused(nil)))
        #expect(programs.current.first?.target == "host-90:443")
    }
}
