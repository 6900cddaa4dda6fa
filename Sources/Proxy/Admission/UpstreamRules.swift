import Configuration
import HTTPMessage

/// What the configuration says of one upstream, in the form that requests are judged and written by. An object, since
/// each request refers to its own.
final class UpstreamRules: Sendable {
    let settings: UpstreamSettings
    /// Its place in the configuration; `nil`: it is for hosts that the configuration does not name.
    let index: Int?
    /// In logs, metrics and answers.
    let name: String
    /// `nil`: the authority that was asked for, by https (a wildcard without `url`).
    let fixed: Destination?
    /// Put in front of every path.
    let pathPrefix: [UInt8]
    /// What is put on.
    let injection: InjectionRules
    /// Requests stay below the path of `url`.
    let isConfined: Bool
    /// It is not for the whole of its server.
    let isLimited: Bool

    init(_ settings: UpstreamSettings, index: Int) {
        self.settings = settings
        self.index = index
        name = settings.host.description
        fixed = settings.url.map { url in
            Destination(
                scheme: url.scheme == .https ? .https : .http, authority: url.authority,
                serverName: settings.tls.serverName)
        }
        pathPrefix = Array((settings.url?.path ?? "").utf8)
        injection = InjectionRules(settings)
        isConfined = pathPrefix.contains { $0 != UInt8(ascii: "/") }
        isLimited = isConfined || !settings.paths.isEmpty
    }

    /// For hosts that the configuration does not name (`unmatched: forward`): unsigned, by plain http.
    static let unmatched = UpstreamRules()

    private init() {
        settings = UpstreamSettings(host: HostPattern(wildcard: true, host: .name("unmatched"), port: nil))
        index = nil
        name = "unmatched"
        fixed = nil
        pathPrefix = []
        injection = InjectionRules(settings)
        isConfined = false
        isLimited = false
    }

    /// Where a request for `authority` goes.
    func destination(for authority: Authority, scheme: Scheme) -> Destination {
        fixed ?? Destination(scheme: scheme, authority: authority, serverName: settings.tls.serverName)
    }

    /// How its addresses look to who asked for it as `asked`; `nil`: they are left as they are.
    func addressMap(_ asked: AskedAddress, _ destination: Destination) -> AddressMap? {
        settings.rewrite ? map(asked, destination) : nil
    }

    /// Whether rules on paths let through what Destination names (COPY and MOVE write there: RFC 4918, section 10.3).
    func covers(destinationField value: Span<UInt8>, _ asked: AskedAddress, _ destination: Destination) -> Bool {
        map(asked, destination)
            .covers(destination: value, paths: settings.paths, isRewritten: settings.rewrite)
    }

    private func map(_ asked: AskedAddress, _ destination: Destination) -> AddressMap {
        // A wildcard has no host of its own.
        let host = settings.host
        return AddressMap(
            asked: asked, destination: destination,
            host: host.wildcard ? nil : Authority(host: host.host, port: host.port), prefix: pathPrefix,
            keepsHost: settings.keepsHost, changesCookies: index != nil)
    }
}
