import Heimdallr
import Hummingbird
import QRCode
import QRCode

/// What people see when a login begins, ends or fails. Never a code, a state or a token.
enum LoginPage {
    static func success(_ client: String) -> Response {
        .page(
            .ok,
            PageMarkup.render(
                .message,
                [
                    "title": "Signed in", "kind": "callback", "tone": "good", "headline": "Signed in", "goHome": 3,
                    "lines": [
                        "Client \(client) has its token, and keeps it fresh from now on.", "You can close this window.",
                    ],
                ]))
    }

    static func failure(
        _ status: HTTPResponse.Status, _ headline: String, _ lines: String..., again: String? = nil,
        isCallback: Bool = false
    ) -> Response {
        var values: [String: Any] = ["title": headline, "tone": "bad", "headline": headline, "lines": lines]
        if let again { values["again"] = again }
        if isCallback { values["kind"] = "callback" }
        return .page(status, PageMarkup.render(.message, values))
    }

    static func refusal(_ refusal: LoginDesk.Refusal) -> Response {
        switch refusal {
        case .unknown:
            failure(
                .badRequest, "This sign-in is not known here",
                "It was finished before, took longer than ten minutes, or was begun elsewhere. Nothing was stored.",
                "Begin again from the overview.", isCallback: true)
        case .foreign:
            failure(
                .badRequest, "This sign-in was begun in another browser",
                "It has to end where it began, so that nobody can slip you a sign-in of theirs. Nothing was stored.",
                "Begin again from the overview.", isCallback: true)
        case .commands:
            // The address is what the command waits for, so it stays in the address bar.
            failure(
                .badRequest, "Go back to the terminal",
                "This sign-in was begun by heimdallr-proxy login --paste. Copy the whole address of this page and paste "
                    + "it there.")
        }
    }

    static func sentence(_ error: LoginError) -> String {
        let text = "\(error)"
        return text.prefix(1).uppercased() + text.dropFirst() + "."
    }

    static func status(of error: LoginError) -> HTTPResponse.Status {
        switch error {
        case .endpoint, .discovery, .noEndpoint, .idToken: .badGateway
        case .stopped, .noRandomness: .serviceUnavailable
        default: .badRequest
        }
    }

    static func device(_ client: String, _ login: DeviceLogin) -> String {
        let left = max(.zero, ContinuousClock.now.duration(to: login.expiresAt))
        let address = login.verificationURIComplete ?? login.verificationURI
        var values: [String: Any] = [
            "title": "Sign in", "kind": "device", "reload": 5, "name": client, "code": login.userCode,
            "spelled": login.userCode.map { String($0) }.joined(separator: " "), "address": address,
            "shown": login.verificationURI, "seconds": left.components.seconds, "left": StatusPage.words(left),
            "complete": login.verificationURIComplete != nil,
        ]
        if let code = QRCode(address) { values["qr"] = ["extent": code.extent, "path": code.svgPath] as [String: Any] }
        return PageMarkup.render(.device, values)
    }
}
