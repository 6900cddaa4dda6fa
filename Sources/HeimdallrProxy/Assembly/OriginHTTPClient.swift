import Configuration
import CurlTransport
import HTTPMessage
import Heimdallr
import HeimdallrCurl
import Proxy
import Reactor

/// Sends requests to one origin with `own`, and all others with `others`.
struct OriginHTTPClient: HeimdallrHTTPClient {
    let origin: Origin?
    let own: any HeimdallrHTTPClient
    let others: any HeimdallrHTTPClient

    func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse {
        let isOwn = origin != nil && Origin(url: request.url) == origin
        return try await (isOwn ? own : others).send(request)
    }
}

extension ClientAssembly {
    /// Returns the HTTP client of `client: auto`. The API's address is configured. Other addresses come from
    /// documents, so they must be public or in `private_networks` (rule 9). No address may be in `listeners`: a request
    /// to a listener would get other clients' tokens, or reach the admin port.
    static func enrolling(
        _ auto: AutoSettings, _ options: PoolOptions, anchors: String?, privateNetworks: [AddressBlock],
        listeners: OwnListeners, on loop: EventLoop, last: TokenRequestNotes
    ) -> OriginHTTPClient {
        var options = options
        options.addressPolicy.own = listeners
        var found = options
        found.addressPolicy.publicOnly = true
        found.addressPolicy.exceptions = privateNetworks
        var own = options
        own.trustAnchors = PoolOptions.TrustAnchors(own: auto.tls.caFile, extra: anchors)
        own.certificateFile = auto.tls.certFile
        own.keyFile = auto.tls.keyFile
        own.material = nil
        return OriginHTTPClient(
            origin: Origin(url: auto.resource),
            own: CurlHTTPClient(BufferedClient(options: own, loop: loop)) { last.failed($0) },
            others: CurlHTTPClient(BufferedClient(options: found, loop: loop)) { last.failed($0) })
    }
}

extension Configuration {
    /// Private networks to which addresses in documents may belong. Includes loopback for the playground's server.
    var discoveryNetworks: [AddressBlock] {
        let loopback = playground ? AddressBlock(.ipv4(0x7F00_0000), length: 8) : nil
        return proxy.privateNetworks + (loopback.map { [$0] } ?? [])
    }
}
