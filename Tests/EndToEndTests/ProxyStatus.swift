import Foundation
import TestSupport

/// The token that a plain token endpoint gives out.
let token = TokenEndpoint.plainToken

/// The secret of the client `api`.
let clientSecret = ProxyConfiguration.secret

/// The `error` parameter of the proxy's member of Proxy-Status (RFC 9209).
func proxyError(of response: RawResponse) -> String? {
    guard let status = response.field("Proxy-Status"), status.hasPrefix("heimdallr-proxy") else { return nil }
    for parameter in status.split(separator: ";").dropFirst() {
        let pair = parameter.split(separator: "=", maxSplits: 1).map { $0.trimmingPrefix(while: { $0 == " " }) }
        if pair.count == 2, pair[0] == "error" { return String(pair[1]) }
    }
    return nil
}

extension String {
    var base64: String { Data(utf8).base64EncodedString() }
}
