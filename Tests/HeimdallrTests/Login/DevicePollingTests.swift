import Testing

@testable import Heimdallr

@Suite struct `The pace of a device login` {
    private func pause(_ step: DevicePolling.Step) -> Duration? {
        if case .wait(let pause) = step { pause } else { nil }
    }

    private func failure(_ step: DevicePolling.Step) -> LoginError? {
        if case .fail(let error) = step { error } else { nil }
    }

    @Test("authorization_pending waits the interval, slow_down makes it five seconds longer for good")
    func slowDown() {
        var polling = DevicePolling(interval: .seconds(5))
        #expect(pause(polling.next(DrivenLifeCycle.refused(.authorizationPending))) == .seconds(5))
        #expect(pause(polling.next(DrivenLifeCycle.refused(.slowDown))) == .seconds(10))
        #expect(pause(polling.next(DrivenLifeCycle.refused(.authorizationPending))) == .seconds(10))
        #expect(pause(polling.next(DrivenLifeCycle.refused(.slowDown))) == .seconds(15))
    }

    @Test("a server that is away or out of order is asked less and less often, and again")
    func faults() {
        var polling = DevicePolling(interval: .seconds(5))
        let fault = TokenLifeCycle.Outcome.fault(.network(.timeout), retryAfter: nil)
        #expect(pause(polling.next(fault)) == .seconds(10))
        #expect(pause(polling.next(DrivenLifeCycle.status(503))) == .seconds(20))
        #expect(pause(polling.next(DrivenLifeCycle.refused(.serverError, status: 500))) == .seconds(40))
        #expect(pause(polling.next(fault)) == .seconds(60))
        for _ in 0..<100 { #expect(pause(polling.next(fault)) == .seconds(60)) }
        #expect(pause(polling.next(DrivenLifeCycle.status(429, retryAfter: .seconds(90)))) == .seconds(90))
        #expect(pause(polling.next(DrivenLifeCycle.refused(.authorizationPending))) == .seconds(5))
    }

    @Test("expired_token, access_denied and every other refusal end a device login")
    func ends() {
        var polling = DevicePolling(interval: .seconds(5))
        #expect(failure(polling.next(DrivenLifeCycle.refused(.expiredToken))) == .expired)
        #expect(
            failure(polling.next(DrivenLifeCycle.refused(.accessDenied)))
                == .refused(OAuthError(status: 400, code: .accessDenied)))
        #expect(
            failure(polling.next(DrivenLifeCycle.refused(.invalidClient, status: 401)))
                == .refused(OAuthError(status: 401, code: .invalidClient)))
        #expect(failure(polling.next(DrivenLifeCycle.status(404))) == .endpoint(.status(404)))
    }

    @Test("a device answer that could not be shown or asked for is refused")
    func answers() throws {
        func answer(_ text: String) -> DeviceAuthorization? { DeviceAuthorization(Array(text.utf8)) }
        let good = try #require(
            answer(
                #"{"device_code":"D","user_code":"AB-CD","verification_uri":"https://a.example/d","interval":0,"#
                    + #""verification_uri_complete":"javascript:alert(1)","expires_in":"1e9"}"#))
        #expect(good.interval == .seconds(1))
        #expect(good.verificationURIComplete == nil)
        #expect(good.expiresIn == .seconds(86_400))
        let google = answer(#"{"device_code":"D","user_code":"A\u001b[2J","verification_url":"https://a.example"}"#)
        #expect(google?.userCode == "A?[2J")
        #expect(google?.interval == .seconds(5))
        let form = answer(
            "device_code=D&user_code=AB-CD&verification_uri=https%3A%2F%2Fa.example%2Fd&expires_in=899&interval=7")
        #expect(form?.userCode == "AB-CD")
        #expect(form?.verificationURI == "https://a.example/d")
        #expect(form?.interval == .seconds(7) && form?.expiresIn == .seconds(899))
        for bad in [
            "device_code=D", "", "[]", #"{"device_code":"D","user_code":"A"}"#,
            #"{"device_code":"D","user_code":"A","verification_uri":"javascript:alert(1)"}"#,
            #"{"device_code":"D","user_code":"A","verification_uri":"https://a\nb"}"#,
            #"{"device_code":"","user_code":"A","verification_uri":"https://a.example"}"#,
            #"{"device_code":"D","user_code":"","verification_uri":"https://a.example"}"#,
        ] { #expect(answer(bad) == nil, "\(bad)") }
    }
}
