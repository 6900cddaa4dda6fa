import CLibcurl
import Glibc
import Testing
import WireText

@testable import CurlTransport

@Suite struct ShortageTests {
    @Test(arguments: [EADDRNOTAVAIL, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM])
    func `a lack of this machine is no fault of the network`(number: Int32) {
        let error = TransportError(
            CURLE_COULDNT_CONNECT, message: "", systemError: Int(number), sawResponse: false, verdict: .allowed)
        guard case .shortage(let shortage) = error.kind else {
            Issue.record("\(error.kind)")
            return
        }
        #expect(!shortage.fault.isEmpty && !shortage.remedy.isEmpty)
    }

    @Test(arguments: [ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ECONNRESET])
    func `a fault of the network or the peer is no lack of this machine`(number: Int32) {
        let error = TransportError(
            CURLE_COULDNT_CONNECT, message: "", systemError: Int(number), sawResponse: false, verdict: .allowed)
        #expect(error.kind == (number == ECONNREFUSED ? .connectionRefused : .connectionFailed))
    }
}
