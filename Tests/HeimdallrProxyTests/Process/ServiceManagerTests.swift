import Configuration
import Reactor
import Testing

@testable import HeimdallrProxy

@Suite("what the one gives and wants who started the proxy")
struct ServiceManagerTests {
    private func read(_ environment: [String: String]) throws(ConfigurationError) -> ServiceManager {
        try ServiceManager(environment, process: 42) { descriptor, name throws(PassedSocket.Fault) in
            try PassedSocket(-descriptor, name: name)
        }
    }

    @Test(arguments: ["", "x", "-1", "1025", "99999999999", "1 ", "+1", "-0", "+0"])
    func `a number of passed sockets that is none is refused`(count: String) {
        #expect(throws: ConfigurationError.self) { try read(["LISTEN_PID": "42", "LISTEN_FDS": count]) }
    }

    @Test func `sockets that were passed to another process are not taken`() throws {
        for environment in [
            [:], ["LISTEN_FDS": "2"], ["LISTEN_FDS": "2", "LISTEN_PID": "41"], ["LISTEN_FDS": "0", "LISTEN_PID": "42"],
        ] { #expect(try read(environment).passed.isEmpty) }
    }

    @Test func `each passed descriptor of no use is named`() {
        let error = #expect(throws: ConfigurationError.self) {
            try read(["LISTEN_PID": "42", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "a:b:c"])
        }
        #expect(
            error?.problems.map(\.message) == [
                "descriptor 3 (FileDescriptorName=a) can't be used: it is not open",
                "descriptor 4 (FileDescriptorName=b) can't be used: it is not open",
            ])
    }

    @Test func `the watchdog's interval and the socket for notices are read from the environment`() throws {
        #expect(try read(["WATCHDOG_USEC": "30000000"]).watchdog == .seconds(15))
        #expect(try read(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "42"]).watchdog == .seconds(15))
        for environment in [
            ["WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"], ["WATCHDOG_USEC": "0"], ["WATCHDOG_USEC": "x"],
        ] { #expect(try read(environment).watchdog == nil) }
        #expect(try read(["NOTIFY_SOCKET": "vsock:2:1"]).notify == nil)
        #expect(try read(["NOTIFY_SOCKET": "@x"]).notify != nil)
    }
}
