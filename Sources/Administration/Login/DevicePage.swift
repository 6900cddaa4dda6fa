import HTML
import Heimdallr
import QRCode

/// The page with the code to type on another device.
struct DevicePage {
    let client: String
    let login: DeviceLogin

    var html: HTML {
        let left = max(.zero, ContinuousClock.now.duration(to: login.expiresAt))
        return PageLayout(title: "Sign in", kind: "device", reload: 5).card(
            """
            <h1>Sign in “\(client)” on any device</h1>
            <div id="device" data-poll="3">
            <p>Open this address on your telephone or in another window, and type the code:</p>
            <p><a class="address" translate="no" href="\(address)" rel="noreferrer" target="_blank">\(login.verificationURI)</a></p>
            <p class="code" translate="no" aria-label="The code: \(login.userCode.map { String($0) }.joined(separator: " "))">\
            \(login.userCode)</p>
            \(alreadyHTML: picture)<p class="waiting" role="status">Waiting for you to sign in.</p>
            <p class="minor">The code is valid for another \
            <span data-countdown="\(left.components.seconds)">\(StatusPage.words(left))</span>.</p>
            </div>
            <p class="ways"><a class="button" href="/">To the overview</a></p>
            """)
    }

    private var address: String { login.verificationURIComplete ?? login.verificationURI }

    private var picture: HTML? {
        guard let code = QRCode(address) else { return nil }
        return """
            <svg class="qr" role="img" viewBox="0 0 \(code.extent) \(code.extent)" width="220" height="220" \
            aria-label="QR code with the address"><rect width="\(code.extent)" height="\(code.extent)" fill="#fff"/>\
            <path d="\(code.svgPath)" fill="#000"/></svg>
            <p class="minor">The QR code holds the address\(login.verificationURIComplete == nil ? "" : " and the code").</p>

            """
    }
}
